#!/usr/bin/env bash
# Propose a pull request that records what a target's registry has and Git does not. Ends with 0 where nothing differs or the pull request is
# there, else as `schemactl drift` does.
#   SCHEMACTL_TARGET   the target
#   SCHEMACTL_BASE     the branch to propose it for (default: the remote's default branch, which history.sh has asked for)
#   SCHEMACTL_REPORTS, SCHEMACTL_TOKEN, SCHEMACTL_HOME  as in check.sh; the report is drift.md
set -euo pipefail

scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PATH=${SCHEMACTL_HOME:+$SCHEMACTL_HOME/bin:}$PATH
reports=$SCHEMACTL_REPORTS
mkdir -p "$reports"

git() { command git -c safe.bareRepository=explicit -c user.name=schemactl -c user.email=schemactl@localhost "$@"; }
base=${SCHEMACTL_BASE:-$(git symbolic-ref --short refs/remotes/origin/HEAD)}
base=${base#origin/}
shown=text
if [[ -n ${GITHUB_ACTIONS:-} ]]; then
  shown=github
fi
code=0
schemactl drift --target "$SCHEMACTL_TARGET" --detailed-exitcode --format "$shown" --format "markdown=$reports/drift.md" || code=$?
# 2: there are differences; 100: some of them make messages unreadable.
if [[ $code != 2 && $code != 100 ]]; then
  exit "$code"
fi
git switch --quiet --force-create "schemactl/drift-$SCHEMACTL_TARGET" "origin/$base"
schemactl drift --target "$SCHEMACTL_TARGET" --accept --reason "found by the nightly job: write why it is right, or repair it and close this"
git add --all
if git diff --cached --quiet; then
  # What only an apply repairs is not recorded.
  exit "$code"
fi
git commit --quiet --no-verify -m "Record what $SCHEMACTL_TARGET has and Git does not"
"$scripts/push.sh" --quiet --force origin "HEAD:refs/heads/schemactl/drift-$SCHEMACTL_TARGET"
python3 -I "$scripts/host.py" propose "schemactl/drift-$SCHEMACTL_TARGET" "$base" "$reports/drift.md"
