# Shared by the tests of this folder; sourced with their arguments: PROGRAM SOURCE_DIR JSON_CHECK TRACE_CHECK.
#
#   check STATUS PATTERN ARGS...   runs `bellwire ARGS`: exit code STATUS; PATTERN '': nothing on standard error, else exactly
#                                  one line that matches it (extended). Never a crash, never a sanitizer's report.
#   says PATTERN                   the last command's standard output matches
#   is_json                        the last command's standard output is JSON to the letter
#   document SUBCOMMAND            it is that, and its man page explains each of its keys
#   finish                         ends the test
bellwire=$1 source_dir=$2 json_check=$3 trace_check=${4-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export BW_DEV=mockkfd+amd@gfx1100 BW_CACHE=$work/cache BW_WAIT_MS=20000
unset BW_MOCK_FAULTS BW_MOCK_TRACE
failures=0 checks=0

complain() {
  failures=$((failures + 1))
  printf 'FAILED: %s\n  expected %s\n  observed %s\n' "$1" "$2" "$3"
}

check() {
  local expected=$1 pattern=$2 status lines
  shift 2
  checks=$((checks + 1))
  last="bellwire $*"
  "$bellwire" "$@" >"$work/.out" 2>"$work/.err"
  status=$?
  out=$(tr -d '\0' <"$work/.out" | tr '\t' ' ') err=$(tr -d '\0' <"$work/.err")
  lines=$(grep -c '' "$work/.err")
  [ "$status" = "$expected" ] || complain "$last" "exit code $expected" "$status, $err"
  if [ -z "$pattern" ]; then
    [ "$lines" = 0 ] || complain "$last" "nothing on standard error" "$err"
  elif [ "$lines" != 1 ] || ! grep -qE -- "$pattern" "$work/.err"; then
    complain "$last" "one line like '$pattern'" "$err"
  fi
}

says() {
  checks=$((checks + 1))
  echo "$out" | grep -qE -- "$1" || complain "$last" "output like '$1'" "$out"
}

is_json() {
  local why
  checks=$((checks + 1))
  why=$("$json_check" <"$work/.out" 2>&1) || complain "$last" "JSON" "$why"
}

document() { # PAGE: the last output is JSON, and each of its keys stands in the page
  local key explained
  is_json
  explained=$(sed -n '/^\.SH JSON/,/^\.SH EXIT/p' "$source_dir/docs/man/bellwire-$1.1")
  for key in $(grep -oE '"[a-z_0-9]+":' <<<"$out" | sort -u); do
    checks=$((checks + 1))
    grep -qF -- "${key%:}" <<<"$explained" || complain "$last" "keys that bellwire-$1(1) explains" "$key"
  done
}

finish() {
  echo "$checks checks, $failures failed"
  [ "$failures" = 0 ]
  exit
}
