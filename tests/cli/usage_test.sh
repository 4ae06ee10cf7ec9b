#!/usr/bin/env bash
# Goal: every subcommand explains itself, and says in one line what is wrong with its arguments (exit code 2).
set -u
. "$(dirname "$0")/lib.sh"

check 0 '' --help
says 'run +runs an ONNX model'
check 0 '' help run
says '^usage: bellwire run MODEL'
check 2 "no subcommand named 'nothing'" help nothing
check 0 '' --version
says '^bellwire [0-9]+\.[0-9]+'
check 2 "no subcommand named 'fly'" fly
for name in devices run compile launch bench decode asm disasm mock; do
  check 0 '' $name --help
  says "usage: bellwire $name"
  check 2 "unknown option --nonsense|a name is needed" $name --nonsense
done
for name in run compile launch asm disasm mock; do
  check 2 "bellwire: $name: .* needed" $name
done
check 2 'unexpected argument' devices now
check 2 '--device needs a value' run model.onnx --device
check 2 "expected NAME=FILE" run model.onnx --input x
check 2 "expected NAME=1x3x48x48" run model.onnx --shape x
check 2 'not REL,ABS' run model.onnx --tolerance 1e-3
check 2 'from 1 to' run model.onnx --repeat 0
check 2 'not a number' run model.onnx --repeat many
check 2 'not A,B,C' run model.onnx --png-mean 1,2
check 2 'zero' run model.onnx --png-std 1,0,1
check 2 'not X,Y,Z' launch x.o --grid 0 --block 1
check 2 'not X,Y,Z' launch x.o --grid 1,2,3,4 --block 1
check 2 'not of type i8' launch x.o --grid 1 --block 1 --arg i8:200
check 2 'not of type u32' launch x.o --grid 1 --block 1 --arg u32:-1
check 2 'unknown type; there are: bool, i8, u8, .* f64, buf, lds;' launch x.o --grid 1 --block 1 --arg half:1
check 2 'expected TYPE:VALUE' launch x.o --grid 1 --block 1 --arg 7
check 2 'no bytes' launch x.o --grid 1 --block 1 --arg buf:0
check 2 "'pm5' is not one of" decode --kind pm5
check 2 "not one of graph" compile model.onnx --arch gfx1100 --dump everything
for value in soon ' 5' +5 -5 '5 ' 5s 1e3 18446744073709551616; do
  for variable in BW_WAIT_MS BW_HOST_THREADS BW_MOCK_THREADS; do
    export $variable="$value"
    check 2 "environment variable $variable" devices
    unset $variable
  done
done

# What is given twice, by one name or by two.
twice() { # OPTION VALUE ARGS...
  local option=$1 value=$2
  shift 2
  check 2 "$option is given twice" "$@" "$option" "$value" "$option" "$value"
  [ "${option#--}" = "$option" ] || check 2 "$option is given twice" "$@" "$option=$value" "$option=$value"
}
models=$source_dir/tests/cli/models
for pair in '--device host:0' '--output x' '--profile x' '--tolerance 1,1' '--top 1' '--repeat 1' '--seed 1' '--png-mean 1' '--png-std 1'; do
  twice ${pair% *} ${pair#* } run model.onnx
done
for pair in '--kernel k' '--grid 1' '--block 1' '--device host:0' '--output x'; do
  twice ${pair% *} ${pair#* } launch k.o
done
for pair in '-b 1' '-e 1' '-f 2' '--devices host:0' '--repeats 1'; do
  twice ${pair% *} ${pair#* } bench copy
done
twice --arch host compile model.onnx
twice --arch gfx1100 asm x.s
twice -o x.o asm x.s
twice --arch gfx1100 disasm x.o
twice --kind pm4 decode
twice --gpu gfx1100 mock
check 2 'shape x: given twice' run "$models/relu.onnx" --device host:0 --shape x=1x1 --shape @0=2x2
check 2 'expect y: given twice' run "$models/relu.onnx" --device host:0 --shape x=1x1 --expect y=/dev/null --expect @0=/dev/null
check 3 'cu= is given twice' run "$models/relu.onnx" --shape x=1x1 --device mockkfd+amd@gfx1100,cu=1,cu=2
check 2 'cu= is given twice' mock --gpu gfx1100,cu=1,cu=2 -- devices

# Numbers with a space or a sign in front are none.
for value in ' 1' +1 '1 ' ''; do
  check 2 'not a number' run model.onnx --repeat "$value"
  check 2 'not X,Y,Z' launch x.o --grid "$value" --block 1
  check 2 'not X,Y,Z' launch x.o --grid "1,$value,1" --block 1
  check 2 'not A,B,C' run model.onnx --png-mean "1,1,$value"
  check 2 'not REL,ABS' run model.onnx --tolerance "1,$value"
  check 2 'not of type i32' launch x.o --grid 1 --block 1 --arg "i32:$value"
  check 2 'not of type u8' launch x.o --grid 1 --block 1 --arg "u8:$value"
  check 2 'not of type f32' launch x.o --grid 1 --block 1 --arg "f32:$value"
done
check 2 'not A,B,C' run model.onnx --png-mean nan
check 2 'not A,B,C' run model.onnx --png-std inf

# Names of what there is not.
for arch in '' gfx1 sm_90; do
  check 2 "architecture '$arch'.*known: " compile model.onnx --arch "$arch"
  check 2 "architecture '$arch'.*known: " asm "$source_dir/tests/cli/kernels.s" -o "$work/k.o" --arch "$arch"
  check 2 "architecture '$arch'.*decoders exist for" disasm "$source_dir/tests/cli/kernels.s" --arch "$arch"
done
check 2 'output is given twice' asm x.s -o x.o --output y.o
check 2 '-d: ' bench all2all -d float99
check 2 '-o: ' bench allreduce -o nope
check 2 '--strategy: ' bench allreduce --strategy nope
check 2 '--transport: ' bench allreduce --transport nope
check 2 '--model is for mock GPUs' bench all2all --devices host:0,host:1 --model mi300x
check 3 'more than 512 GiB.*there are: host:0' run "$models/relu.onnx" --shape x=1x1 --device mockkfd+amd@gfx1100,vram=1T
check 3 '97 compute units' run "$models/relu.onnx" --shape x=1x1 --device mockkfd+amd@gfx1100,cu=97
check 2 'more than 512 GiB' mock --gpu gfx1100,vram=1T -- devices
finish
