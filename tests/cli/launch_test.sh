#!/usr/bin/env bash
# Goal: machine code goes in and out by hand, and what is wrong with a kernel is named: it never ends, stores outside of
# everything, is not for this GPU, is cut short.
set -u
. "$(dirname "$0")/lib.sh"

check 0 '' asm --arch gfx1100 "$source_dir/tests/cli/kernels.s" -o "$work/k.o"
check 1 '' disasm --arch gfx1100 "$work/k.o" # one of its instructions is none
says 's_sleep 1|s_sleep 0x1'
says '^store_item:$'
check 0 '' asm --arch gfx1100 "$source_dir/samples/vector_add.s" -o "$work/v.o"
check 0 '' disasm --arch gfx1100 "$work/v.o"
says 's_cbranch_execz 9  // 00000054 <vector_add\+0x54>$'
says '^ +\.\.\. [0-9]+ more s_code_end$'
[ "$(grep -c 's_code_end' <<<"$out")" = 2 ] || complain "$last" 'padding on two lines' "$out"
check 0 '' disasm --arch gfx1100 "$work/v.o" --json
says '"target": *84'
check 2 "architecture 'gfx900'.*decoders exist for: gfx1100, .*gfx1201" disasm --arch gfx900 "$work/v.o"
: >"$work/nothing"
check 1 'nothing holds no instructions' disasm --arch gfx1100 "$work/nothing"
printf '  s_nop 0\n  s_bogus 1 // what\n' >"$work/bad.s"
check 1 "bad.s:2:3: invalid instruction: observed 's_bogus 1 // what'" asm --arch gfx1100 "$work/bad.s" -o "$work/bad.o"
run() { # STATUS PATTERN KERNEL ARGS...
  local status=$1 pattern=$2 kernel=$3
  shift 3
  check "$status" "$pattern" launch "$work/k.o" --kernel "$kernel" --grid 1 --block 64 "$@"
}

run 0 '' store_item --arg buf:256 --output "$work/out"
says 'arg0 u8\[256\]: 0 0 0 0 1 0 0 0'
says 'store_item on mockkfd\+amd:0@gfx1100: .* wave-instructions in 2 waves'
run 0 '' store_item --arg "buf:$work/out/arg0.npy" --json
says '"dtype": *"u8"'
says '"file": *null'
BW_WAIT_MS=1000 run 4 'compute queue 0: kernel endless: .*after [0-9]{4,}\.[0-9]+ ms \(ETIMEDOUT\). kernel endless.*wave . at pc 0x[0-9a-f]+ of endless: s_' endless --arg buf:64K
run 4 'compute queue 0, kernel wild: memory fault at 0x123400005678 .not mapped.: observed no buffer is near' wild --arg buf:64K
run 4 'kernel null: memory fault at 0x0 .*null address' null --arg buf:64K
run 4 'kernel past_end: .*observed 16 bytes past the end of a 65536-byte buffer at 0x' past_end --arg buf:64K
run 4 'kernel beyond_scratch: memory fault at 0x[0-9a-f]+ .not mapped.: observed 4000 bytes into scratch .EIO.\. .*at pc 0x0 of beyond_scratch, .*: scratch_store_b32 off, v0, off offset:4000$' beyond_scratch --arg buf:64K
# The cause first, where it was in names, then what the kernel driver made of it.
run 4 'compute queue 0, kernel illegal: illegal instruction: no instruction: 0xffffffff \(EIO\)\. mec queue .: kernel illegal at pc 0x0 of illegal, group \(0, 0, 0\) wave 0; hardware exception: engine reset' illegal --arg buf:64K
run 4 'by kernel past_end at pc 0x18 of past_end, group' past_end --arg buf:64K
# The page that is missing, not the one in which the access began.
run 4 'kernel across_end: memory fault at 0x[0-9a-f]+000 .not mapped.: observed 0 bytes past the end of a 65536-byte buffer at .*pc 0x14 of across_end, group .0, 0, 0. wave 0 lane 0: of 16 bytes from 0x[0-9a-f]+ff8 on: global_store_b128' across_end --arg buf:64K
run 4 'kernel odd_lds: misaligned LDS access at 0x6: ds_add_u32 v0, v0 .EIO.\. mec queue 0: kernel odd_lds at pc 0x4 of odd_lds' odd_lds --arg buf:64K
run 4 'kernel into_buffer: memory fault at 0x[0-9a-f]+ .not permitted.: observed 0 bytes into a 65536-byte buffer.*fetch of' into_buffer --arg buf:64K
check 1 'kernel registers: a group of 32 waves of 32 with 264 vector registers each: expected at most 20 waves .4 SIMDs of 1536 registers, 5 waves on each., observed 32 .E2BIG.' launch "$work/k.o" --kernel registers --grid 1 --arg buf:64K --block 1024
run 4 'kernel trapped: trap: s_trap 2 .EIO.\. mec queue 0: kernel trapped at pc 0x4 of trapped, group' trapped --arg buf:64K
run 1 'expected 1, observed 0.*its arguments: 0 p buffer' store_item
BW_MOCK_FAULTS=doorbell:drop BW_WAIT_MS=500 run 4 \
  'mockkfd.amd:0@gfx1100: upload queue: machine code to 0x.* after [0-9]{3,}\.[0-9]+ ms .*its doorbell said' store_item --arg buf:64
run 1 'it has: endless, wild, null' nothing --arg buf:64
run 1 'argument 0' store_item --arg i32:5
check 2 'several kernels.*--kernel says which.*it has: endless' launch "$work/k.o" --grid 1 --block 64 --arg buf:64
run 2 '--arg buf: expected buf:64K' store_item --arg buf:
run 2 "'true' is not of type bool, which is 0 or 1" store_item --arg bool:true
run 2 "'2' is not of type bool, which is 0 or 1" store_item --arg bool:2
for option in '--output -' '--output='; do
  run 2 'names no file' store_item --arg buf:64 $option
done
check 1 'work-items per group' launch "$work/k.o" --kernel store_item --grid 1 --block 2048 --arg buf:64
check 1 'ENOENT' launch "$work/none.o" --grid 1 --block 64
check 1 'ENOENT' launch "$work/k.o" --kernel store_item --grid 1 --block 64 --arg "buf:$work/none.npy" # a file, not a size
run 1 'device memory available \(ENOMEM\)' store_item --arg buf:20M --device mockkfd+amd@gfx1100,vram=16M
run 1 'no relocatable object for x86-64, which this device takes: ' store_item --arg buf:64 --device host:0
for bytes in 10 63 64 500 1500; do
  head -c $bytes "$work/k.o" >"$work/cut.o"
  check 1 'elf|amd' launch "$work/cut.o" --kernel store_item --grid 1 --block 64 --arg buf:256
done
check 1 'elf|amd' launch "$bellwire" --kernel store_item --grid 1 --block 64 --arg buf:256
check 1 'elf|amd' launch "$source_dir/CONTRIBUTING.md" --kernel store_item --grid 1 --block 64 --arg buf:256

# Kernels without metadata have no described arguments: those that are given are packed where they fill the segment.
grep -v '^  - {\|^amdhsa\|^---\|^\.\.\.\|amdgpu_metadata' "$source_dir/tests/cli/kernels.s" >"$work/bare.s"
check 0 '' asm --arch gfx1100 "$work/bare.s"
bare() { # STATUS PATTERN ARGS...
  local status=$1 pattern=$2
  shift 2
  check "$status" "$pattern" launch "$work/bare.o" --kernel store_item --grid 1 --block 64 "$@"
}
bare 0 '' --arg 'buf:u32[64]'
says '^arg0 u32\[64\]: 0 1 2 3'
for wrong in '' '--arg i32:1' '--arg buf:256 --arg i32:1' '--arg i32:1 --arg buf:256' '--arg u8:1 --arg u8:1'; do
  bare 1 'expected such as fill 8 bytes, observed [012] .*fill its 8 bytes.*amdgpu_metadata' $wrong
done
printf '%s\n' '.text' '.globl mixed' '.p2align 8' '.type mixed,@function' 'mixed: s_load_b128 s[4:7], s[0:1], 0x0' ' s_load_b128 s[8:11], s[0:1], 0x10' \
  ' v_lshlrev_b32 v1, 2, v0' ' s_waitcnt lgkmcnt(0)' ' s_and_b32 s4, s4, 0xff' ' v_mul_lo_u32 v2, v0, s4' ' v_add_nc_u32 v2, s5, v2' ' v_add_nc_u32 v2, s8, v2' \
  ' global_store_b32 v1, v2, s[6:7]' ' s_endpgm' '.rodata' '.p2align 6' '.amdhsa_kernel mixed' '.amdhsa_next_free_vgpr 8' '.amdhsa_next_free_sgpr 16' \
  '.amdhsa_kernarg_size SIZE' '.amdhsa_user_sgpr_kernarg_segment_ptr 1' '.amdhsa_wavefront_size32 1' '.end_amdhsa_kernel' >"$work/mixed.s"
for size in 20 24; do # u8 at 0, i32 at 4, a pointer at 8, i16 at 16: 18 bytes, as a structure 24; u32 at 16: 20
  sed "s/SIZE/$size/" "$work/mixed.s" >"$work/mixed_$size.s"
  check 0 '' asm --arch gfx1100 "$work/mixed_$size.s"
done
mixed='--grid 1 --block 4 --arg u8:3 --arg i32:100 --arg buf:u32[4]'
check 0 '' launch "$work/mixed_20.o" $mixed --arg u32:1000
says '^arg2 u32\[4\]: 1100 1103 1106 1109$'
check 0 '' launch "$work/mixed_24.o" $mixed --arg i16:1000
says '^arg2 u32\[4\]: 1100 1103 1106 1109$'
check 1 'fill its 20 bytes' launch "$work/mixed_20.o" $mixed --arg i16:1000
check 1 'fill its 24 bytes' launch "$work/mixed_24.o" $mixed
BW_WAIT_MS=500 check 4 'kernel endless: ' launch "$work/bare.o" --kernel endless --grid 1 --block 64 --arg u64:0

# Text that is no code, and code that is no code.
echo 'v_fly v0, v1' >"$work/bad.s"
check 1 'bad|instruction|line' asm --arch gfx1100 "$work/bad.s"
check 2 'gfx9999' asm --arch gfx9999 "$work/bad.s"
check 1 'ENOENT' asm --arch gfx1100 "$work/none.s"
check 2 "architecture 'gfx90a'" disasm --arch gfx90a "$work/k.o"
check 1 'ELF|elf' disasm --arch gfx1100 "$work/cut.o"
printf '\377\377\377\377' >"$work/raw"
check 1 '' disasm --arch gfx1100 --raw "$work/raw"
says 'not an instruction'
check 1 'raw is no ELF file \(EINVAL\)\. --raw takes all bytes' disasm --arch gfx1100 "$work/raw"
[ -z "$out" ] || complain "$last" 'no instructions' "$out"
check 1 'README\.md is no ELF file' disasm --arch gfx1100 "$source_dir/README.md" --json
check 1 'elf: [^ ]*/cut\.o: ' disasm --arch gfx1100 "$work/cut.o"
check 1 'nothing holds no instructions' disasm --arch gfx1100 --raw "$work/nothing"
# What is launched and is no code object: which file, and what to do.
source=$source_dir/samples/vector_add.s
check 1 "elf: [^ ]*/vector_add\.s: magic at 0x0: .*assemble it first: bellwire asm --arch gfx1100 [^ ]*/vector_add\.s --output" launch "$source" --grid 1 --block 64
check 1 "elf: [^ ]*/README\.md: .*a code object is an ELF file for gfx1100" launch "$source_dir/README.md" --grid 1 --block 64
check 1 "elf: [^ ]*/vector_add\.s: .*a code object is an ELF file for x86_64" launch "$source" --grid 1 --block 64 --device host:0
check 1 "elf: [^ ]*/k\.o: .*for an AMD GPU" launch "$work/k.o" --grid 1 --block 64 --device host:0
check 1 "elf: [^ ]*/cut\.o: " launch "$work/cut.o" --grid 1 --block 64
# Code of gfx12 is listed, but not run.
printf '\174\000\005\356\004\000\034\000\010\020\000\000\000\000\307\277' >"$work/raw"
check 0 '' disasm --arch gfx1201 --raw "$work/raw"
says 'global_load_b32 v4, v\[8:9\], off offset:16 th:TH_LOAD_NT scope:SCOPE_SYS'
says 's_wait_kmcnt 0x0'
check 1 '' disasm --arch gfx1100 --raw "$work/raw"
check 3 'no mock executes the machine code of gfx1201' launch "$work/k.o" --device mockkfd+amd@gfx1201 --kernel store_item --grid 1 --block 64 --arg buf:256
finish
