#!/usr/bin/env bash
# PipeDream's Table 1: its plans and speed-ups over data parallelism beside what Plumbline plans and simulates.
# SPDX-License-Identifier: MIT
# Usage: table.sh BINARY PROFILES_FOLDER        exit code 77: no profiles, nothing shown
#
# PROFILES_FOLDER holds vgg16/graph.txt, resnet50/graph.txt and gnmt/graph.txt as PipeDream's authors published
# them: https://github.com/msr-fiddle/pipedream, folders profiler/image_classification/profiles and
# profiler/translation/profiles. Copy the model folders of both into one folder.
set -euo pipefail
export LC_ALL=C
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
[[ $# -eq 2 ]] || { echo "usage: table.sh BINARY PROFILES_FOLDER" >&2; exit 2; }
binary=$(realpath -e -- "$1") || exit 2
for model in vgg16 resnet50 gnmt; do
  if [[ ! -r $2/$model/graph.txt ]]; then
    echo "skipped: $2/$model/graph.txt is not there; the profiles are published in" \
         "https://github.com/msr-fiddle/pipedream (profiler/*/profiles)"
    exit 77
  fi
done
profiles=$(realpath -e -- "$2")

value() { sed -n "s/^ \"$1\": \"\\{0,1\\}\\([^\",]*\\).*/\\1/p" | head -n 1; }  # KEY of the outermost object

# Prints four fields: plan found, its ms for each micro-batch, data parallelism's, and the share it waits.
measure() {  # TEMPLATE MODEL DEVICES [--straight] [key=value ...]
  local template=$here/$1.yaml model=model.pipedream=$profiles/$2/graph.txt devices=$3 flags=() config period data
  shift 3
  if [[ ${1-} == --straight ]]; then flags=(--straight); shift; fi
  config=$("$binary" plan "$template" "$model" "$@" "${flags[@]}" --json | value config)
  "$binary" plan "$template" "$model" "$@" "${flags[@]}" -o "$scratch/plan.yaml" > /dev/null
  period=$("$binary" simulate "$template" "$model" "plan.file=$scratch/plan.yaml" "$@" --json | value period_s)
  data=$("$binary" simulate "$template" "$model" schedule.name=data-parallel schedule.micro_batches=1 "$@" --json)
  # Data parallelism runs one micro-batch on every device in an iteration; a period is one micro-batch in all.
  echo "$config $period $(value iteration_time_s <<< "$data") $(value communication_stall_fraction <<< "$data") $devices" |
    awk '{ if (NF != 5) exit 1; printf "%s %.2f %.2f %.0f\n", $1, 1000 * $2, 1000 * $3 / $5, 100 * $4 }'
}

row() {  # TITLE CLUSTER PAPER_PLAN PAPER_SPEED_UP TEMPLATE MODEL DEVICES ...
  local title=$1 cluster=$2 paper_plan=$3 paper=$4 config period data stall
  shift 4
  read -r config period data stall <<< "$(measure "$@")"
  [[ -n ${stall-} ]] || { echo "error: no result for $title on $cluster" >&2; exit 1; }
  awk -v a="$title" -v b="$cluster" -v c="$config" -v p="$period" -v d="$data" -v s="$stall" -v e="$paper_plan" -v f="$paper" \
    'BEGIN { printf "%-10s %-5s %-14s %8.2f %8.2f %5d %% %7.2fx   %-9s %6s\n", a, b, c, p, d, s, d / p, e, f }'
}

heading() {
  printf '%-10s %-5s %-14s %8s %8s %7s %8s   %-9s %6s\n' model size plan 'plan ms' 'dp ms' 'stall' 'speed-up' paper ''
}

scratch=$(mktemp -d)
trap 'rm -rf -- "$scratch"' EXIT
echo "ms for each micro-batch of all devices together; dp: data parallelism, stall: the share of time it waits"
heading
row VGG-16    4x4 15-1     5.28x vgg16-4x4    vgg16    16
row VGG-16    2x8 15-1     2.98x vgg16-2x8    vgg16    16
row ResNet-50 4x4 16       1x    resnet50-4x4 resnet50 16
row ResNet-50 2x8 16       1x    resnet50-2x8 resnet50 16
row GNMT-8    3x4 straight 2.95x gnmt-3x4     gnmt     12
row GNMT-8    2x8 16       1x    gnmt-2x8     gnmt     16

echo
echo "GNMT-8 with the paper's kind of plan, one replica a stage: 32 samples, then 64 (estimated)"
row GNMT-8    3x4 straight 2.95x gnmt-3x4     gnmt     12 --straight
row GNMT-8    3x4 straight 2.95x gnmt-3x4     gnmt     12 --straight training.micro_batch_size=64

servers() {  # BANDWIDTH: of the network between servers
  echo "cluster.levels.1.bandwidth=$1"
}
for gbit in 10 5 2.5; do
  echo
  echo "the network between servers at an effective $gbit Gbit/s; 64 samples a device for VGG-16 as in the paper (estimated)"
  row VGG-16    4x4 15-1     5.28x vgg16-4x4    vgg16    16 "$(servers "$gbit Gbit/s")" training.micro_batch_size=64
  row VGG-16    2x8 15-1     2.98x vgg16-2x8    vgg16    16 "$(servers "$gbit Gbit/s")" training.micro_batch_size=64
  row ResNet-50 4x4 16       1x    resnet50-4x4 resnet50 16 "$(servers "$gbit Gbit/s")"
  row ResNet-50 2x8 16       1x    resnet50-2x8 resnet50 16 "$(servers "$gbit Gbit/s")"
done
echo
echo "GNMT-8 on 2x8, the network at 25 and at 100 Gbit/s, 64 samples a device (estimated)"
for gbit in 25 100; do
  row GNMT-8  2x8 16       1x    gnmt-2x8     gnmt     16 "$(servers "$gbit Gbit/s")" training.micro_batch_size=64
done
