#!/usr/bin/env bash
# Plan what the merge of this branch does to a target, write that as a comment, and note the plan's digest on the branch's newest commit.
# Ends as `schemactl plan` does.
#   SCHEMACTL_TARGET   the target
#   SCHEMACTL_RESULTS  optional: the result of another target's last apply, or a folder of them, for `after`; an artifact of another job
#   SCHEMACTL_BASE, SCHEMACTL_REPORTS, SCHEMACTL_TOKEN, SCHEMACTL_HOME  as in check.sh; the plan is plan.json, plan.md and plan.html
set -euo pipefail

scripts=$(dirname "${BASH_SOURCE[0]}")
PATH=${SCHEMACTL_HOME:+$SCHEMACTL_HOME/bin:}$PATH
reports=$SCHEMACTL_REPORTS
mkdir -p "$reports"
rm -f "$reports/plan.json" "$reports/report.md"

shown=text
if [[ -n ${GITHUB_ACTIONS:-} ]]; then
  shown=github
fi
code=0
schemactl plan --target "$SCHEMACTL_TARGET" ${SCHEMACTL_RESULTS:+--results "$SCHEMACTL_RESULTS"} --base "origin/$SCHEMACTL_BASE" --out "$reports/plan.json" \
  --format "$shown" --format "markdown=$reports/report.md" --format "html=$reports/plan.html" || code=$?

if [[ -f $reports/report.md ]]; then
  {
    # Its first line names the target: each has a comment of its own.
    cat "$reports/report.md"
    if [[ $code == 0 ]]; then
      printf '\nWhoever approves this change approves the digest: after the merge, exactly this plan is applied to %s, or none.\n' "$SCHEMACTL_TARGET"
    fi
  } >"$reports/plan.md"
  python3 -I "$scripts/host.py" comment "$reports/plan.md" "$reports/plan.json" || true
fi
# What would be rejected is not to be approved.
if [[ $code == 0 && -f $reports/plan.json ]]; then
  python3 -I "$scripts/host.py" publish "$SCHEMACTL_TARGET" "$reports/plan.json"
fi
exit "$code"
