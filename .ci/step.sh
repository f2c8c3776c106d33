# What the lists of steps share.
# SPDX-License-Identifier: MIT
. scripts/packages.sh

# Data that is not ours to ship; the tests that need it are skipped where it is not at hand.
if [ -d ../shared/data ]; then
  PLUMBLINE_PROFILES=$(realpath ../shared/data/pipedream)
  PLUMBLINE_REFERENCE_SCHEDULES=$(realpath ../shared/data/schedules)
  PLUMBLINE_HF_CONFIGS=$(realpath ../shared/data/hf)
  PLUMBLINE_RUNS=$(realpath ../shared/data/runs)
  PLUMBLINE_CONFIG_FILES=$(realpath ../shared/data/hf-configs)
  export PLUMBLINE_CONFIG_FILES PLUMBLINE_HF_CONFIGS PLUMBLINE_PROFILES PLUMBLINE_REFERENCE_SCHEDULES PLUMBLINE_RUNS
fi

began=$SECONDS
skipped=()
last=$SECONDS
took() {
  [ -z "${step_name-}" ] || echo "-- $step_name: $((SECONDS - last)) s"
  last=$SECONDS
}
# step NAME: what begins now; says how long the step before took.
step() {
  took
  step_name=$1
  echo
  echo "== $1 ($(date +%T))"
}
end() {
  took
  echo
  echo "== $1: done in $((SECONDS - began)) s"
  [ "${#skipped[@]}" -eq 0 ] || printf 'SKIPPED: %s\n' "${skipped[@]}"
}

# time_for MINUTES NAME: whether so many minutes are left for all lists. Where they are not, it tells that NAME is skipped.
time_for() {
  local of=${PLUMBLINE_CI_MINUTES:-85} left
  left=$((of - ($(date +%s) - ${PLUMBLINE_CI_BEGAN:-$(date +%s)}) / 60))
  [ "$left" -lt "$1" ] || return 0
  echo
  echo "SKIPPED: $2: $left of $of minutes are left (PLUMBLINE_CI_MINUTES)"
  skipped+=("$2")
  return 1
}

# door NAME MINUTES COMMAND...: a step with a limit, which says so where it is skipped (77).
door() {
  local name=$1 minutes=$2 rc=0
  shift 2
  time_for "$minutes" "$name" || return 0
  step "$name"
  timeout "${minutes}m" "$@" || rc=$?
  case $rc in
    0) ;;
    77) echo "SKIPPED: $name" && skipped+=("$name") ;;
    124) echo "$name did not end within $minutes minutes"; return 1 ;;
    *) return "$rc" ;;
  esac
}
