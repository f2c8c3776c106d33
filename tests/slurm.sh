#!/usr/bin/env bash
# The job array of examples/slurm under a real Slurm on this machine: a sweep and a search in shards, a task requeued while
# it runs, one killed, all merged to the bytes of one run.
# SPDX-License-Identifier: MIT
# Usage: tests/slurm.sh BINARY          exits with 77 where no Slurm can be started; KEEP=1 leaves its folder
# Its daemons, their state and munge's key are in a temporary folder; nothing of the system is touched.
set -u
export LC_ALL=C
plumbline=$(realpath -- "$1")
cd "$(dirname "$0")/.." || exit 1
for program in munged slurmctld slurmd sbatch scontrol squeue; do
  command -v "$program" > /dev/null || PATH=$PATH:/usr/sbin command -v "$program" > /dev/null ||
    { echo "skipped: there is no $program (apt-get install slurm-wlm munge)"; exit 77; }
done
PATH=$PATH:/usr/sbin
[ "$(id -u)" -eq 0 ] || { echo "skipped: slurmd starts jobs as root alone"; exit 77; }

work=$(mktemp -d /tmp/plumbline-slurm.XXXXXX)
end() {
  for daemon in slurmd slurmctld munged; do
    [ ! -e "$work/$daemon.pid" ] || kill "$(cat "$work/$daemon.pid")" 2> /dev/null
  done
  sleep 0.5
  [ -n "${KEEP-}" ] || rm -rf "$work"
}
trap end EXIT
passed=0
failed=0
expect() {  # expect NAME WANTED GOT
  if [ "$2" = "$3" ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $1: wanted '$2', got '$3'"; fi
}

# ---- A cluster of this machine, with two CPUs whatever it has ----
host=$(hostname -s)
port=$((20000 + $$ % 10000))
mkdir "$work/ctld" "$work/d"
head -c 128 /dev/urandom > "$work/munge.key"
chmod 600 "$work/munge.key"
cat > "$work/slurm.conf" <<CONF
ClusterName=plumbline
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 10000))
AuthType=auth/munge
AuthInfo=socket=$work/munge.socket
SlurmUser=root
StateSaveLocation=$work/ctld
SlurmdSpoolDir=$work/d
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=1
NodeName=$host NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF=$work/slurm.conf
munged --force --socket="$work/munge.socket" --key-file="$work/munge.key" --log-file="$work/munged.log" \
  --pid-file="$work/munged.pid" --seed-file="$work/munge.seed" 2> "$work/munged.err"
slurmctld -L "$work/slurmctld.log" 2> "$work/slurmctld.err"
slurmd -L "$work/slurmd.log" 2> "$work/slurmd.err"
idle=
for _ in $(seq 60); do
  idle=$(sinfo -h -o %t 2> /dev/null)
  [ "$idle" = idle ] && break
  sleep 0.5
done
skip() {
  echo "skipped: $1"
  tail -n 3 "$work"/*.err "$work"/*.log
  exit 77
}
[ "$idle" = idle ] || skip "no Slurm could be started here (sinfo says '$idle')"

# ---- Jobs ----
submit() {  # submit ARRAY ARGUMENT...: the job's number
  local array=$1
  shift
  PLUMBLINE=${held:-$plumbline} sbatch --parsable --array="$array" --cpus-per-task=1 -o "$work/out-%a" examples/slurm/shards.sbatch "$@"
}
wait_for() {  # wait_for SECONDS COMMAND...
  for _ in $(seq $((10 * $1))); do
    "${@:2}" && return 0
    sleep 0.1
  done
  echo "FAILED: not within $1 s: ${*:2}"
  failed=$((failed + 1))
  return 1
}
ends() {  # ends SECONDS JOB
  for _ in $(seq $((10 * $1))); do
    over "$2" && return 0
    sleep 0.1
  done
  return 1
}
over() { [ -z "$(squeue -h -j "$1" 2> /dev/null)" ]; }
has_rows() { [ "$(cat -- "$1" 2> /dev/null | wc -l)" -gt "$2" ]; }
state() { scontrol show job "$1" | sed -n 's/.*JobState=\([A-Z_]*\).*/\1/p' | sort | uniq -c | xargs; }
merged() {  # merged NAME FOLDER FILE
  "$plumbline" merge "$work/$2"/shard-*.json --json > "$work/merged"
  cmp -s "$work/merged" "$3"
  expect "$1: the bytes of one run" 0 $?
}

first=$(sbatch --parsable -o /dev/null --wrap true 2> "$work/first.err")
if ! ends 60 "$first" || [ "$(state "$first")" != "1 COMPLETED" ]; then skip "Slurm runs no job here"; fi

# The command, which stands still once it has some rows, until $work/go is there: so a task is met in its middle.
cat > "$work/held" <<HELD
#!/usr/bin/env bash
"$plumbline" "\$@" &
child=\$!
trap 'kill -TERM \$child; kill -CONT \$child' TERM
while kill -0 \$child 2> /dev/null && [ ! -e "$work/go" ]; do
  [ "\$(cat -- "$work/sweep/shard-\$SLURM_ARRAY_TASK_ID.json.partial" 2> /dev/null | wc -l)" -gt 5 ] && kill -STOP \$child
  sleep 0.01
done
kill -CONT \$child 2> /dev/null
wait \$child
HELD
chmod +x "$work/held"

sweep=(sweep examples/sweep.yaml 'schedule.micro_batches=range(1000,1060)' schedule.recompute=none
       cluster.link.bandwidth="25 GB/s" 'training.optimizer_state=range(0,4)')
"$plumbline" "${sweep[@]}" --json > "$work/sweep-one"
job=$(held=$work/held submit 1-4 "$work/sweep" "${sweep[@]}")
wait_for 60 has_rows "$work/sweep/shard-1.json.partial" 5
rows=$(wc -l < "$work/sweep/shard-1.json.partial")
scontrol requeue "${job}_1"
wait_for 30 has_rows "$work/sweep/shard-2.json.partial" 5
pkill -9 -f -- "^$plumbline .*--shard 2/4 .*$work/sweep/shard-2.json"
touch "$work/go"
# A task that was requeued may begin again after two minutes; this one need not wait.
over_at_once() {
  scontrol update JobId="${job}_1" StartTime=now 2> /dev/null
  over "$job"
}
wait_for 300 over_at_once
expect "the array: three ended, one was killed" "3 COMPLETED 1 FAILED" "$(state "$job")"
expect "the requeued task went on with what it had" 1 "$([ "$rows" -gt 5 ] && [ -e "$work/sweep/shard-1.json" ] && echo 1)"
expect "the requeued task began twice" 1 "$(scontrol show job "${job}_1" | sed -n 's/.*Restarts=\([0-9]*\).*/\1/p')"
expect "the killed task left no file" "" "$(ls "$work/sweep/shard-2.json" 2> /dev/null)"
"$plumbline" merge "$work"/sweep/shard-*.json > /dev/null 2> "$work/err"
expect "merge says which is missing" "error: of 4 shards 2 is missing" "$(head -n 1 "$work/err")"
again=$(SHARDS=4 submit 2 "$work/sweep" "${sweep[@]}")
wait_for 120 over "$again"
expect "the killed task again" "1 COMPLETED" "$(state "$again")"
merged "a sweep" sweep "$work/sweep-one"

search=(search examples/layouts.yaml --free model.context_parallel=1 schedule.name=1f1b)
"$plumbline" "${search[@]}" --all --json > "$work/search-one"
job=$(submit 1-3 "$work/search" "${search[@]}")
after=$(sbatch --parsable --dependency="afterok:$job" -o "$work/after" --wrap \
  "'$plumbline' merge '$work'/search/shard-*.json --json > '$work/after.json'")
wait_for 120 over "$after"
expect "a search: all ended" "3 COMPLETED" "$(state "$job")"
merged "a search" search "$work/search-one"
cmp -s "$work/after.json" "$work/search-one"
expect "a job behind the array merges it" 0 $?

if [ "$failed" -gt 0 ]; then tail -n 5 "$work"/out-* "$work"/slurm*.log; fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
