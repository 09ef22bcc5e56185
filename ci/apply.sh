#!/usr/bin/env bash
# Apply what a merge brought: exactly the plan whose digest plan.sh noted on the pull request that made this commit. Ends as
# `schemactl apply` does.
#   SCHEMACTL_TARGET   the target
#   SCHEMACTL_COMMIT   the commit of the approved branch
#   SCHEMACTL_DIGEST   the digest to apply instead, which a person has read and approved
#   SCHEMACTL_REPORTS, SCHEMACTL_TOKEN, SCHEMACTL_HOME  as in check.sh; the apply's record is result.json
set -euo pipefail

scripts=$(dirname "${BASH_SOURCE[0]}")
PATH=${SCHEMACTL_HOME:+$SCHEMACTL_HOME/bin:}$PATH
reports=$SCHEMACTL_REPORTS
mkdir -p "$reports"
rm -f "$reports/plan.json"

formats=(--format text)
if [[ -n ${GITHUB_ACTIONS:-} ]]; then
  # This is what writes the job's summary.
  formats+=(--format "github=$reports/plan.txt")
fi
code=0
schemactl plan --target "$SCHEMACTL_TARGET" --at "$SCHEMACTL_COMMIT" --out "$reports/plan.json" --detailed-exitcode \
  "${formats[@]}" || code=$?
# 0: there is nothing to do; 2: there is.
if [[ $code != 2 ]]; then
  exit "$code"
fi
digest=${SCHEMACTL_DIGEST:-$(python3 "$scripts/host.py" approved "$SCHEMACTL_TARGET" "$SCHEMACTL_COMMIT")}
schemactl apply "$reports/plan.json" --expect-digest "$digest" --result "$reports/result.json"
