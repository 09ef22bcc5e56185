#!/usr/bin/env bash
# Apply what a merge brought: exactly the plan whose digest plan.sh noted on the pull request that made this commit. Ends as
# `schemactl apply` does.
#   SCHEMACTL_TARGET   the target
#   SCHEMACTL_RESULTS  optional: the result of another target's last apply, or a folder of them, for `after`; an artifact of another job
#   SCHEMACTL_COMMIT   the commit of the approved branch
#   SCHEMACTL_DIGEST   the digest to apply instead, which a person has read and approved
#   SCHEMACTL_REPORTS, SCHEMACTL_TOKEN, SCHEMACTL_HOME  as in check.sh; the apply's record is result.json
set -euo pipefail

scripts=$(dirname "${BASH_SOURCE[0]}")
PATH=${SCHEMACTL_HOME:+$SCHEMACTL_HOME/bin:}$PATH
reports=$SCHEMACTL_REPORTS
mkdir -p "$reports"
rm -f "$reports/plan.json"

options=(--format text)
if [[ -n ${GITHUB_ACTIONS:-} ]]; then
  # This is what writes the job's summary.
  options+=(--format "github=$reports/plan.txt")
fi

# Others may have merged since. But a merge does not move a target that has a position of its own.
read_position='import json, sys
print(*(each["promoted"] for each in json.load(sys.stdin)["targets"] if each["target"] == sys.argv[1] and each["promoted"]))'
position=$(schemactl targets --format json | python3 -I -c "$read_position" "$SCHEMACTL_TARGET")
if [[ -z $position ]]; then
  options+=(--at "$SCHEMACTL_COMMIT")
fi
results=()
if [[ -n ${SCHEMACTL_RESULTS:-} ]]; then
  results=(--results "$SCHEMACTL_RESULTS")
fi
code=0
schemactl plan --target "$SCHEMACTL_TARGET" --out "$reports/plan.json" --detailed-exitcode "${options[@]}" "${results[@]}" || code=$?
# 0: there is nothing to do; 2: there is.
if [[ $code != 2 ]]; then
  exit "$code"
fi
digest=${SCHEMACTL_DIGEST:-$(python3 -I "$scripts/host.py" approved "$SCHEMACTL_TARGET" "$SCHEMACTL_COMMIT")}
schemactl apply "$reports/plan.json" --expect-digest "$digest" --result "$reports/result.json" "${results[@]}"
