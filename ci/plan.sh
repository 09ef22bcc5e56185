#!/usr/bin/env bash
# Plan what the merge of this branch does to a target, write that as a comment, and note the plan's digest on the branch's newest commit.
# Ends as `schemactl plan` does.
#   SCHEMACTL_TARGET   the target
#   SCHEMACTL_BASE, SCHEMACTL_REPORTS, SCHEMACTL_TOKEN, SCHEMACTL_HOME  as in check.sh; the plan is plan.json
set -euo pipefail

scripts=$(dirname "${BASH_SOURCE[0]}")
PATH=${SCHEMACTL_HOME:+$SCHEMACTL_HOME/bin:}$PATH
reports=$SCHEMACTL_REPORTS
mkdir -p "$reports"
rm -f "$reports/plan.json"

code=0
schemactl plan --target "$SCHEMACTL_TARGET" --base "origin/$SCHEMACTL_BASE" --out "$reports/plan.json" >"$reports/plan.txt" || code=$?
cat "$reports/plan.txt"
if [[ ! -f $reports/plan.json ]]; then
  exit "$code"
fi

{
  printf '<!-- schemactl:report:plan %s -->\n\n### What the merge does to %s\n\n<pre>\n' "$SCHEMACTL_TARGET" "$SCHEMACTL_TARGET"
  # A comment has at most 65,536 characters.
  head -c 50000 "$reports/plan.txt" | sed 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g'
  printf '</pre>\n\nWho approves this change approves the digest: after the merge exactly that is applied, or nothing.\n'
} >"$reports/plan.md"
cat "$reports/plan.md" >>"${GITHUB_STEP_SUMMARY:-/dev/null}"
python3 "$scripts/host.py" comment "$reports/plan.md" "$reports/plan.json" || true
# What would be rejected is not to be approved.
if [[ $code == 0 ]]; then
  python3 "$scripts/host.py" publish "$SCHEMACTL_TARGET" "$reports/plan.json"
fi
exit "$code"
