#!/usr/bin/env bash
# Check what the merge of this branch makes, and write the report as a comment. Ends as `schemactl check` does.
#   SCHEMACTL_BASE     the branch to be merged into
#   SCHEMACTL_REPORTS  the folder for report.json, check.md, check.sarif, check.xml and check.json (GitLab's Code Quality)
#   SCHEMACTL_TOKEN    the host's token; without one, or with SCHEMACTL_COMMENT=false, nothing is commented
#   SCHEMACTL_HOME     where install.sh put schemactl; without it, schemactl is on the path
set -euo pipefail

scripts=$(dirname "${BASH_SOURCE[0]}")
PATH=${SCHEMACTL_HOME:+$SCHEMACTL_HOME/bin:}$PATH
reports=$SCHEMACTL_REPORTS
mkdir -p "$reports"

shown=text
if [[ -n ${GITHUB_ACTIONS:-} ]]; then
  shown=github
fi
formats=("$shown" json="$reports/report.json" markdown="$reports/check.md" sarif="$reports/check.sarif")
formats+=(junit="$reports/check.xml" gitlab="$reports/check.json")
code=0
schemactl check --base "origin/$SCHEMACTL_BASE" "${formats[@]/#/--format=}" || code=$?

if [[ -f $reports/check.md ]]; then
  # A comment that cannot be written says why, and changes no verdict.
  python3 -I "$scripts/host.py" comment "$reports/check.md" "$reports/report.json" || true
  python3 -I "$scripts/host.py" suggest "$reports/report.json" || true
fi
exit "$code"
