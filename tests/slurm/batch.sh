#!/usr/bin/env bash
# Runs a command as the body of a batch job, and prints what it printed.
#
#   batch.sh OPTION... PROGRAM ARGUMENT...
# Options of sbatch come first and start with a dash.
set -euo pipefail
options=()
while [ "${1#-}" != "$1" ]; do
  options+=("$1")
  shift
done
log=$(mktemp)
trap 'rm -f "$log"' EXIT
job=$(sbatch --parsable --output="$log" "${options[@]}" \
  --wrap="$(printf '%q ' "$@")")
# sbatch --wait would look only every ten seconds.
for _ in $(seq 600); do
  state=$(scontrol show job "$job" | sed -n 's/.*JobState=\([A-Z]*\).*/\1/p')
  case $state in PENDING | CONFIGURING | RUNNING | COMPLETING) ;; *) break ;; esac
  sleep 0.2
done
cat "$log"
[ "$state" = COMPLETED ]
