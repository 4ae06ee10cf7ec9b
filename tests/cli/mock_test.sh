#!/usr/bin/env bash
# Goal: `bellwire mock` gives any command mock GPUs with faults injected, ends with its status, and refuses what does not parse.
set -u
. "$(dirname "$0")/lib.sh"
digits=$source_dir/samples/digits/digits.onnx
check 0 '' run "$digits" # fills the cache

check 0 '' mock --gpu gfx1100,vram=64M -- devices
says 'mockkfd\+amd:0@gfx1100,vram=64M .* 64 MiB'
check 0 '' mock --gpu gfx1100*2 -- bellwire devices
says 'mockkfd\+amd:1@gfx1100\*2'
check 0 '' mock -- run "$digits" --top 1
says 'on mockkfd\+amd:0@gfx1100'
check 4 'compute queue 0: kernel .*ETIMEDOUT.*mec hangs' mock --fault mec:hang -- env BW_WAIT_MS=500 "$bellwire" run "$digits"
check 1 'CREATE_QUEUE.*EBUSY' mock --fault ioctl.CREATE_QUEUE:fail=EBUSY -- run "$digits"
check 1 'ENOMEM' mock --fault ioctl.ALLOC_MEMORY_OF_GPU:fail=ENOMEM,nth=3 -- run "$digits"
check 4 'copy queue 0: .*ETIMEDOUT.*sdma0 hangs' mock --fault sdma0:hang -- env BW_WAIT_MS=500 "$bellwire" run "$digits"
BW_MOCK_FAULTS=mec:fail=EIO check 4 'compute queue 0.*injected failure' run "$digits" --device mockdrm+amd@gfx1100 # also where a submission meets it
check 4 'copy queue 0, copy of .*sdma0 queue .*injected failure' mock --fault sdma0:fail=EIO -- run "$digits"
check 4 'upload queue, copy of .*sdma1 queue .*injected failure' mock --fault sdma1:fail=EIO -- run "$digits"
# the engine fails at its first packet: the queue's kernels may not be submitted yet
check 4 'compute queue 0(, kernel [^:]*)?: .*mec queue .*injected failure' mock --fault mec:fail=EIO -- run "$digits"
check 4 'mockkfd\+amd:0@gfx1100: copy queue 0: .* after [0-9]{3,}\.[0-9]+ ms .*its doorbell said' mock --fault doorbell:drop -- \
  env BW_WAIT_MS=500 "$bellwire" run "$digits"
check 0 '' mock --fault doorbell:delay=20 -- run "$digits"
check 0 '' mock --fault irq:drop -- run "$digits"
check 3 'there are' mock -- run "$digits" --device tpu
# A trace has what was asked of the machine and what it did: names, results, words, kernels, errors.
traced() {
  checks=$((checks + 1))
  grep -qE -- "$1" "$work/trace" || complain "$last: trace" "a line like '$1'" "$(head -c 2000 "$work/trace")"
}
echo stale >"$work/trace"
check 0 '' mock --trace "$work/trace" -- run "$digits" --json
kernels=$(echo "$out" | grep -oE '"kernels": *[0-9]+' | grep -oE '[0-9]+$')
traced '^[0-9]+\.[0-9]{9} machine: 1 x gfx1100$'
traced 'kfd ioctl ALLOC_MEMORY_OF_GPU = 0: va_addr=0x[0-9a-f]+ size=0x[0-9a-f]+ handle=0x[0-9a-f]+ mmap_offset=0x[0-9a-f]+ gpu_id=0x[0-9a-f]+ flags=0x[0-9a-f]+$'
traced 'kfd ioctl CREATE_QUEUE = 0: .* queue_type=0x1 '
traced 'gpu0 doorbell 0x0: 0x[0-9a-f]+$'
traced 'gpu0 mec queue 0: RELEASE_MEM( 0x[0-9a-f]+){7}$'
traced 'gpu0 sdma[01] queue [0-9]+: COPY_LINEAR( 0x[0-9a-f]+){7}$'
checks=$((checks + 2))
grep -q stale "$work/trace" && complain "$last" 'a new trace' 'the old one'
[ "$(grep -c ': kernel at 0x' "$work/trace")" = "$kernels" ] || complain "$last" "$kernels kernels" "$(grep -c ': kernel at 0x' "$work/trace")"
check 1 'ENOMEM' mock --trace "$work/trace" --fault ioctl.ALLOC_MEMORY_OF_GPU:fail=ENOMEM,nth=3 -- run "$digits"
traced 'kfd ioctl ALLOC_MEMORY_OF_GPU = ENOMEM: va_addr=0x'
traced 'error: ALLOC_MEMORY_OF_GPU: injected failure$'
check 1 'no/where' mock --trace "$work/no/where" -- run "$digits"
check 2 'names no file' mock --trace - -- run "$digits"

check 7 '' mock -- sh -c 'exit 7'
# A word after `bellwire` is a subcommand of this one, not of whatever has that name on the path.
mkdir "$work/path" && printf '#!/bin/sh\nexit 0\n' >"$work/path/bellwire" && chmod +x "$work/path/bellwire"
PATH=$work/path:$PATH check 127 "command 'nosuch' .ENOENT" mock -- bellwire nosuch
check 127 "command 'nosuchprog' \(ENOENT\)" mock -- nosuchprog
check 0 '' mock --gpu gfx942*8 --fault mec:hang --fault irq:drop -- sh -c 'echo "$BW_DEV $BW_MOCK_FAULTS"'
says '^mockkfd\+amd@gfx942\*8 mec:hang;irq:drop$'
check 3 'no mock executes.*gfx1201.*mocks of gfx1100, .*there are: host:0' mock --gpu gfx1201 -- run "$digits"
check 0 '' mock --gpu gfx1201 -- devices
says 'mockkfd\+amd:0@gfx1201 .*no mock executes'
check 3 'gfx999.*not modelled.*known: gfx1100, ' mock --gpu gfx999 -- devices
check 2 'not the architecture' mock --gpu sm_90 -- devices
check 2 'cu' mock --gpu gfx1100,cu=0 -- devices
check 2 'fault "mec"' mock --fault mec -- devices
check 0 '' mock --fault ioctl.WAIT_EVENTS:fail=ETIME,nth=100000 --fault ioctl.SVM:fail=ENOTSUP -- run "$digits"
check 2 'explode' mock --fault mec:explode -- devices
for error in EWOULDBLOCK EDEADLOCK ENOTSUP EAGAIN ewouldblock 11; do
  check 0 '' mock --fault ioctl.WAIT_EVENTS:fail=$error,nth=100000 -- devices
done
check 1 'EAGAIN' mock --fault ioctl.CREATE_QUEUE:fail=EWOULDBLOCK -- env BW_WAIT_MS=500 "$bellwire" run "$digits"
for error in EFOO 0 4096 '' -5; do
  check 2 "fail=.$error. is no errno.*such as EIO, ENOMEM.*from 1 to 4095" mock --fault mec:fail=$error -- devices
done
check 2 'delay="1s" is no delay.*milliseconds, from 0 to 86400000' mock --fault mec:delay=1s -- devices
check 0 '' mock --gpu gfx1100,seed=7,jitter=3 -- sh -c 'echo "$BW_DEV"'
says '^mockkfd\+amd@gfx1100,seed=7,jitter=3$'
check 2 'no site "sdma7".*sites: .*sdma0, sdma1, ioctl.NAME' mock --fault sdma7:hang -- devices
check 2 'no site "psp"' mock --fault psp:fail=EIO -- run "$digits"
check 2 'no site "ioctl.NOSUCH".*ioctls: .*CREATE_QUEUE' mock --fault ioctl.NOSUCH:fail=EIO -- run "$digits"
check 2 'does not fit.*actions there: drop' mock --fault doorbell:hang -- devices
check 2 'gpu=2 on a machine of 2' mock --gpu gfx1100*2 --fault mec:hang,gpu=2 -- devices
check 2 "one per --fault" mock --fault 'mec:hang;irq:drop' -- devices
check 127 'no-such-program' mock -- no-such-program
check 2 'unknown option' mock --speed 3 -- devices
finish
