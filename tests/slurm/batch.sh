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
status=0
sbatch --wait --quiet --output="$log" "${options[@]}" \
  --wrap="$(printf '%q ' "$@")" || status=$?
cat "$log"
exit $status
