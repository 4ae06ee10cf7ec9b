#!/usr/bin/env bash
# Goal: the cache of compiled kernels only ever saves time: where it cannot be, be read or be written, the run goes on
# without it, silently, and leaves nothing half written.
set -u
. "$(dirname "$0")/lib.sh"
digits=$source_dir/samples/digits/digits.onnx
cd "$work" || exit 1

runs() { # COMPILED PATTERN: what the cache gave
  check 0 '' run "$digits" --device host:0
  says "^[1-9][0-9]* kernels, $1 compiled now, $2 from the cache"
}
BW_CACHE=$work/a/b/c runs '[5-9]' 0
n=$(echo "$out" | sed -n 's/.* kernels, \([0-9]*\) compiled now.*/\1/p')
BW_CACHE=$work/a/b/c runs 0 "$n"
[ "$(stat -c %a "$work/a/b/c")" = 700 ] || complain "$last" "a cache that is its owner's" "$(stat -c %a "$work/a/b/c")"

# No cache at all.
: >file
mkfifo fifo
ln -s loop loop
long=$(printf 'x%.0s' {1..5000})
for path in "" "$work/file" "$work/file/below" /proc/none /dev/full "$work/fifo" "$work/loop" "$work/$long"; do
  BW_CACHE=$path runs "$n" 0
  BW_CACHE=$path runs "$n" 0
done
find . -name '*bellwire*' | grep -q . && complain "$last" "nothing left behind" "$(find . -name '*bellwire*')"

# A directory that cannot be written (root may write everywhere: then it is a cache like any other).
cp -r a/b/c readonly
find readonly -type f | head -n 3 | xargs rm
chmod -R a-w readonly
if [ ! -w readonly ]; then
  BW_CACHE=$work/readonly runs 3 $((n - 3))
  BW_CACHE=$work/readonly runs 3 $((n - 3))
fi
chmod -R u+w readonly

# Entries that cannot be read are as good as none; a FIFO is not waited for.
cp -r a/b/c broken
find broken -type f | sed -n '1p;2p;3p' | while read -r entry; do rm "$entry" && mkfifo "$entry"; done
entry=$(find broken -type f | head -n 1) && rm "$entry" && mkdir "$entry"
BW_CACHE=$work/broken runs 4 $((n - 4))

# A full disk, as a limit on the size of files: every entry is larger.
mkdir full
(
  ulimit -f 1
  BW_CACHE=$work/full "$bellwire" run "$digits" --device host:0 >"$work/.out" 2>"$work/.err"
  echo $? >"$work/.status"
)
checks=$((checks + 1))
[ "$(cat .status)" = 0 ] && [ ! -s .err ] || complain "run with a full cache" "exit code 0" "$(cat .status .err)"
[ -z "$(find full -type f)" ] || complain "run with a full cache" "no file left" "$(find full -type f)"

# Where it is when nobody says. A home that does not exist may be meant not to: it is not made.
unset BW_CACHE
mkdir home
HOME=$work/nobody runs "$n" 0
[ ! -e nobody ] || complain "$last" "no home" "one"
XDG_CACHE_HOME=$work/xdg HOME=$work/home runs "$n" 0
[ -d xdg/bellwire/kernels ] || complain "$last" "entries in XDG_CACHE_HOME" "none"
XDG_CACHE_HOME=relative HOME=$work/home runs "$n" 0 # the XDG specification: a relative path is ignored
[ -d home/.cache/bellwire/kernels ] && [ ! -e relative ] || complain "$last" "entries in HOME" "none"
XDG_CACHE_HOME='' HOME=$work/home runs 0 "$n"
HOME=relative runs "$n" 0
[ ! -e relative ] || complain "$last" "no cache in a relative HOME" "one"
checks=$((checks + 1))
env -u HOME -u XDG_CACHE_HOME "$bellwire" run "$digits" --device host:0 >.out 2>.err
[ $? = 0 ] && [ ! -s .err ] && grep -q " $n compiled now" .out || complain "run without HOME" "exit code 0" "$(cat .err)"
finish
