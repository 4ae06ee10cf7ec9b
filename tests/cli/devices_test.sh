#!/usr/bin/env bash
# Goal: every device is listed, the unusable ones with what is missing; a name that names none lists those that exist.
set -u
. "$(dirname "$0")/lib.sh"

check 0 '' devices
says 'host:0 +x86_64'
says '^null '
says 'mockkfd\+amd:0@gfx1100 +gfx1100 +24\.0 GiB +AMD Radeon RX 7900 XTX \(mock\)'
checks=$((checks + 1)) # one of them is what no name stands for
[ "$(grep -c ', default$' <<<"$out")" = 1 ] || complain "$last" 'one default' "$out"
if [ ! -e /dev/dri ]; then
  says '^drm\+amd .*not usable: .*amdgpu'
fi
if [ ! -e /dev/kfd ] && [ ! -d /sys/devices/virtual/kfd ]; then
  says '^kfd\+amd .*not usable: .*amdgpu'
fi
check 0 '' devices --json
says '"name": *"host:0"'
says '"vram_bytes": *257[0-9]+'
says '"usable": *true'
says '"default": *true'
BW_DEV=mockkfd+amd@gfx942*2,vram=1G check 0 '' devices
says 'mockkfd\+amd:1@gfx942\*2,vram=1G +gfx942 +1\.0 GiB .*not usable: .*not driven'
checks=$((checks + 1)) # columns: "arch" stands above what it names, whatever the length of the names
[ "$(sed -n 's/arch .*//p' <<<"$out" | head -n 1 | wc -c)" = "$(sed -n '/^host:0/s/x86_64.*//p' <<<"$out" | wc -c)" ] || complain "$last" 'columns' "$out"
checks=$((checks + 1))
! grep -q ' $' <<<"$out" || complain "$last" 'no blanks at the ends of lines' "$out"
BW_DEV=mockdrm+amd@gfx1100*2,cu=4 check 0 '' devices
says 'mockdrm\+amd:0@gfx1100\*2,cu=4 +gfx1100 +24\.0 GiB +AMD Radeon RX 7900 XTX \(mock\), default$'
says 'mockdrm\+amd:1@gfx1100\*2,cu=4 +gfx1100 +24\.0 GiB +AMD Radeon RX 7900 XTX \(mock\)$'
BW_DEV=mockdrm+amd@gfx999 check 0 '' devices
says 'gfx999 .*not usable: .*not modelled'
# Two sockets: which GPU is near which, and what a container says.
BW_DEV=mockkfd+amd@gfx1100*4,nodes=2 check 0 '' devices
says 'mockkfd\+amd:1@gfx1100\*4,nodes=2 .*\(mock\), memory node 0$'
says 'mockkfd\+amd:2@gfx1100\*4,nodes=2 .*\(mock\), memory node 1$'
BW_DEV=mockdrm+amd@gfx1100*4,nodes=2 check 0 '' devices --json
says '"numa_node": *1,'
says '"numa_placed": *true'
BW_MOCK_FAULTS=node:fail=EPERM BW_DEV=mockkfd+amd@gfx1100*2,nodes=2 check 0 '' devices
says 'mockkfd\+amd:1@.*\(mock\), memory node 1 \(the kernel refuses to place memory there: EPERM\)$'
BW_MOCK_FAULTS=node:fail=EPERM BW_DEV=mockkfd+amd:1@gfx1100*2,nodes=2 check 0 '' run "$source_dir/samples/digits/digits.onnx"
BW_DEV=mockkfd+amd@gfx1100,nodes=9 check 3 'nodes' devices
dev=$BW_DEV
unset BW_DEV
check 0 '' devices # both mocks, where no other is named
says 'mockkfd\+amd:0@gfx1100 '
says 'mockdrm\+amd:0@gfx1100 +gfx1100 +24\.0 GiB +AMD Radeon RX 7900 XTX \(mock\)$'
export BW_DEV=$dev
BW_DEV=mockkfd+amd@gfx999 check 0 '' devices
says 'gfx999 .*not usable: .*not modelled'

# BW_DEV that names nothing is told, and what there is listed.
for name in tpu rm+nv amd:63 'host:0,tpu' mockkfd+amd; do
  BW_DEV=$name check 3 "BW_DEV: .*${name/+/\\+}" devices
  says '^host:0 '
  BW_DEV=$name check 3 "BW_DEV: .*${name/+/\\+}" devices --json
  is_json
done
for name in host:3 host:0,host:1 amd "disk:$source_dir/README.md"; do
  BW_DEV=$name check 0 '' devices
done
for name in host:0 null mockdrm+amd:1@gfx1100*2; do
  BW_DEV=$name check 0 '' devices
  says "^${name//[+*]/.} .*, default$"
  checks=$((checks + 1))
  [ "$(grep -c ', default$' <<<"$out")" = 1 ] || complain "$last, BW_DEV=$name" 'one default' "$out"
done

# What the texts give as an example of a mock can be opened.
cd "$source_dir" || exit 1
examples=$(sed 's/\\-/-/g' README.md CONTRIBUTING.md docs/*.md docs/man/*.1 include/bellwire/*.h iface/*.h hcq/*.[ch] bench/*.[ch] samples/*.c tools/*.[ch] |
  grep -oP 'mock(kfd|drm)\+amd(:[0-9]+)?@gfx[0-9a-z]+(\*[0-9]+)?(,(cu|vram|bar|xgmi|nodes|seed|jitter)=[0-9]+[KMG]?)*' | sort -u)
cd - >/dev/null || exit 1
[ "$(wc -l <<<"$examples")" -gt 4 ] || complain 'examples of mocks in the texts' 'some' "$examples"
for name in $examples; do
  BW_DEV=$name check 0 '' devices
  says "^${name%%+*}.amd.*, default"
done

digits=$source_dir/samples/digits/digits.onnx
for name in tpu 'amd:' mockkfd+amd mockkfd+amd@gfx999 mockkfd+amd@gfx9999 mockkfd+amd@gfx942 \
  mockkfd+amd@gfx1201 'mockkfd+amd@gfx942*8' mockkfd+amd:2@gfx1100*2 mockkfd+amd@gfx1100,cu=none kgsl+qcom; do
  check 3 'there are: .*host:0.*mockkfd\+amd:0@gfx1100' run "$digits" --device "$name"
  case $name in
    mockkfd+amd@gfx9* | *1201) check 3 'no mock executes.*mocks of gfx1100' launch none.o --grid 1 --block 1 --device "$name" ;;
  esac
done
check 3 'amdgpu.*there are: |GPU index 63|there are: ' run "$digits" --device amd:63

# What the grammar has and this version does not is refused as such; one device where one is taken.
digits=$source_dir/samples/digits/digits.onnx
check 3 "'amd:0000:83:00.0': .*no device by its PCI address.*there are: host:0" run "$digits" --device amd:0000:83:00.0
check 3 "'rm\+nv': this version has no driver nv for interface rm.*there are" run "$digits" --device rm+nv
# A disk is the device of a file: without one there is none. Nor is what executes nothing a device to run on.
for use in "run $digits --device" 'bench copy --devices' 'bench gemm --devices' 'bench all2all --devices'; do
  # shellcheck disable=SC2086
  check 3 'disk disk:/none/x: .*ENOENT' $use disk:/none/x
  # shellcheck disable=SC2086
  check 3 'disk disk:/: .*expected a file.*EISDIR' $use disk:/
  # shellcheck disable=SC2086
  check 3 'EOPNOTSUPP|executes nothing' $use "disk:$digits"
done
check 3 'executes nothing.*run on host:0' run "$digits" --device "disk:$digits"
check 3 'it executes nothing: run on host:0' run "$digits" --device null
check 3 'it executes nothing: run on host:0' bench gemm --devices null
check 3 'no built-in kernel for disk:' bench launch --devices "disk:$digits"
for devices in host:0,mockkfd+amd@gfx1100 host:0,host:1,host:2; do
  check 2 'names several devices' run "$digits" --device "$devices"
  BW_DEV=$devices check 2 'names several devices' run "$digits"
done
check 0 '' run "$digits" --device 'mockkfd+amd@gfx1100*2,cu=2'
finish
