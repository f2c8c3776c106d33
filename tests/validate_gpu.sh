#!/usr/bin/env bash
# scripts/validate-gpu: without a GPU it says so; rehearsed on cores it keeps to its budget and goes on where it stopped.
# SPDX-License-Identifier: MIT
# Usage: tests/validate_gpu.sh BINARY      exit code 77: nothing runs on the cores of this machine or build, or other work keeps them
set -u
export LC_ALL=C
binary=$(realpath -e -- "${1:?usage: tests/validate_gpu.sh BINARY}") || exit 2
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." || exit 2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
passed=0
failed=0
text=''
code=0
call() { code=0; text=$(scripts/validate-gpu --plumbline "$binary" "$@" 2>&1) || code=$?; }
check() {  # WHAT CONDITION...
  local what=$1
  shift
  if "$@"; then passed=$((passed + 1)); else
    failed=$((failed + 1))
    printf 'FAILED: %s; exit code %s and\n%s\n' "$what" "$code" "$text"
  fi
}
says() { [[ $text == *"$1"* ]]; }

for wrong in '--budget 0' '--budget soon' '--speed' '-o'; do
  # shellcheck disable=SC2086  # words
  call $wrong
  check "'$wrong' is refused" test "$code" -eq 2
done
if [[ $("$binary" list backends) == *'no CUDA driver'* ]]; then
  call -o "$work/gpu"
  check 'without a driver it ends with 5' test "$code" -eq 5
  check 'and says why' says 'there is no CUDA driver on this machine'
  check 'and writes nothing' test ! -e "$work/gpu"
fi

# A program that plays a GPU which cannot be split in 4: the steps, their order, and what is kept of them.
cat >"$work/plays" <<'END'
#!/usr/bin/env bash
echo "$*" >>"$PLAYED"
out=''
devices=''
arguments=("$@")
for ((i = 0; i < $#; ++i)); do
  case ${arguments[i]} in -o | --trace) out=${arguments[i + 1]} ;; esac
  [ "${arguments[i]}" != --devices ] || devices=${arguments[i + 1]}
done
case " $* " in
  *' --check '*)
    [ ! -f "$PLAYED.wrong" ] || { echo 'error: layer gelu on [77], bf16 is not the reference' >&2; exit 1; }
    [ ! -f "$PLAYED.broken" ] || { echo 'error: layers do not run: cuLaunchKernel: lost' >&2; exit 1; }
    [ ! -f "$PLAYED.bare" ] || echo 'cuDNN       not found (libcudnn.so.9):'
    [ "$devices" != 4 ] || { echo 'error: devices share SMs' >&2; exit 1; }; echo "proof of $devices" ;;
  *' calibrate '*mlp-wide*) printf 'links:\nlibrary: cublasLt 13.1.0 and plain kernels\n' >"$out" ;;
  *' calibrate '*)
    printf 'links:\noverheads: {per_op: 1.9 us, hand_over: 5.25 us, per_iteration: 0 s}\n' >"$out" ;;
  *' validate '*vgg-small-1.yaml*) echo 'error: the device is lost' >&2; exit 5 ;;
  *' validate '*mlp-8.yaml*) echo '{}' >"$out"; exit 6 ;;  # inconclusive
  *' validate '*) echo '{}' >"$out"; exit 1 ;;
esac
END
chmod +x "$work/plays"
export PLAYED=$work/played
: >"$PLAYED"
played() { code=0; text=$(scripts/validate-gpu --plumbline "$work/plays" -o "$work/g" "$@" 2>&1) || code=$?; }
played --budget 20
check 'what came to plain kernels is told' says "calibrate-mlp-wide-2: plain kernels, not the libraries'"
check 'spins know what launches take' grep -qx 'overhead: {per_op: 1.9 us, hand_over: 5.25 us}' "$work/g/spin-2.yaml"
check 'those of a doubtful split do not' test "$(grep -c overhead "$work/g/spin-4.yaml")" -eq 0
check 'a doubtful split only spins' test -f "$work/g/spin-4.json"
check 'what fails is told' test "$code" -eq 1
check 'by name' says 'without results: check-4 validate-vgg-small-1'
check 'with what it said' says 'error: the device is lost'
check 'a split that is not proven is not used' test ! -e "$work/g/gpt-small-4.json"
for there in check-2.proof check-8.proof gpt2-1.json gpt2-2.json mlp-wide-8.json gpt-small-1.json gnmt-lstm-1.json spin-2.json gpt-small-8-hybrid.json resnet-small-8.json vgg-small-8.trace.json.gz; do
  check "$there is there" test -f "$work/g/$there"
done
check 'no proof of what failed' test ! -e "$work/g/check-4.proof"
check 'proofs come first' test "$(grep -n -m 1 'check --devices 2' "$PLAYED" | cut -d : -f 1)" -lt \
  "$(grep -n -m 1 'mlp.network.yaml' "$PLAYED" | cut -d : -f 1)"
check 'other kinds of layers come behind what all splits are asked' test \
  "$(grep -n -m 1 'calibrate.*gpt-small.* --devices 2' "$PLAYED" | cut -d : -f 1)" -lt \
  "$(grep -n -m 1 'vgg-small' "$PLAYED" | cut -d : -f 1)"
check 'links that were measured are used' grep -q 'link: measured' "$work/g/gpt-small-2.yaml"
check 'the archive has it all' grep -qx g/resnet-small-8.json <(tar -tzf "$work/g.tar.gz")
touch "$PLAYED.bare"
code=0; text=$(scripts/validate-gpu --plumbline "$work/plays" -o "$work/bare" 2>&1) || code=$?
check 'a missing library ends it with 3' test "$code" -eq 3
check 'and says what to do' says 'or go on with --plain-kernels'
check 'and runs nothing' test ! -e "$work/bare"
code=0; text=$(scripts/validate-gpu --plumbline "$work/plays" -o "$work/bare" --budget 20 --plain-kernels 2>&1) || code=$?
check 'unless it is told to' test -f "$work/bare/gpt2-2.json"
rm "$PLAYED.bare"
touch "$PLAYED.wrong"
code=0; text=$(scripts/validate-gpu --plumbline "$work/plays" -o "$work/wrong" --budget 20 2>&1) || code=$?
check 'wrong layers are told' says 'LAYERS ARE WRONG on this GPU'
check 'and measured all the same' test -f "$work/wrong/gpt2-8.json"
rm "$PLAYED.wrong"
touch "$PLAYED.broken"
code=0; text=$(scripts/validate-gpu --plumbline "$work/plays" -o "$work/broken" --budget 20 2>&1) || code=$?
check 'layers that do not run end it' test "$code" -eq 1
check 'and nothing is measured' test ! -e "$work/broken"
rm "$PLAYED.broken"
: >"$PLAYED"
played --budget 20
check 'the same call again only asks what failed' test "$(grep -cE 'validate|calibrate' "$PLAYED")" -eq 3

if [[ $("$binary" list backends --json) != *'"available": true'*'"available": true'* ]] || [ "$(nproc)" -lt 2 ]; then
  echo "skipped: nothing runs on two cores here ($passed passed, $failed failed before that)"
  [ "$failed" -eq 0 ] && exit 77
  exit 1
fi
call --rehearse -o "$work/r" --budget 1
if says 'too much other work on this machine'; then
  echo "skipped: other work keeps this machine from measuring ($passed passed, $failed failed before that)"
  [ "$failed" -eq 0 ] && exit 77
  exit 1
fi
# How far a minute goes, depends on the machine.
next=''
[ -f "$work/r/mlp-2.json" ] || next=validate-mlp-2
[ -f "$work/r/mlp-2.profile.yaml" ] || next=calibrate-mlp-2
[ -f "$work/r/spin-2.json" ] || next=validate-spin-2
[ -z "$next" ] || check 'and tells what its budget did not hold' says "left for the next call: $next"
check 'which is no failure' test "$code" -eq 0
call --rehearse -o "$work/r" --budget 9
[ "$next" = validate-spin-2 ] || check 'the second one keeps what is there' says 'validate-spin-2: kept'
check 'and does the rest' test -f "$work/r/mlp-2.json"
check 'the practicals, too' test -f "$work/r/mlp-2-blocking.json"
check 'without a failure' test "$code" -eq 0
call --rehearse -o "$work/r" --budget 1
check 'a third one has nothing to do' says 'validate-mlp-2: kept'
for name in machine.txt spin-2.json spin-2.yaml mlp-2.json mlp-2.profile.yaml mlp-2.yaml mlp.network.yaml validate-mlp-2.txt; do
  check "the archive holds $name" grep -qx "r/$name" <(tar -tzf "$work/r.tar.gz")
done
cd "$work" && rm -rf r && tar -xzf r.tar.gz
code=0
text=$("$binary" simulate r/mlp-2.yaml 2>&1) || code=$?
check 'the scenario of an archive can be read elsewhere' test "$code" -eq 0
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
