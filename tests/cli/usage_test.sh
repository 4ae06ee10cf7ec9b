#!/usr/bin/env bash
# Goal: every subcommand explains itself, and says in one line what is wrong with its arguments (exit code 2).
set -u
. "$(dirname "$0")/lib.sh"

check 0 '' --help
says 'run +runs an ONNX model'
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
check 2 'unknown type' launch x.o --grid 1 --block 1 --arg half:1
check 2 'expected TYPE:VALUE' launch x.o --grid 1 --block 1 --arg 7
check 2 'no bytes' launch x.o --grid 1 --block 1 --arg buf:0
check 2 "'pm5' is not one of" decode --kind pm5
check 2 "not one of graph" compile model.onnx --arch gfx1100 --dump everything
BW_WAIT_MS=soon check 2 'BW_WAIT_MS' devices
finish
