#!/usr/bin/env bash
# Show what a promotion does to a target, or carry out exactly that.
#   promote.sh plan      plan for the commit, write that as a comment on the commit, and tell the plan's digest. Ends as `schemactl plan` does.
#   promote.sh promote   move the target there, push that, and apply the plan if it has the digest. Ends as `schemactl apply` does.
#   SCHEMACTL_TO       the commit of the approved branch to go to, such as origin/main
#   SCHEMACTL_TARGET   the target, which has `promoted`; plan without one shows the plans of all targets, and tells no digest
#   SCHEMACTL_DIGEST   promote: the digest that a person has read and approved
#   SCHEMACTL_RESULTS  optional: the result of another target's last apply, or a folder of them, for `after`; an artifact of another job
#   SCHEMACTL_REPORTS, SCHEMACTL_TOKEN, SCHEMACTL_HOME  as in check.sh; the plan is plan.json and plan.md, its digest is in plan.env, the
#                      apply's record is result.json
set -euo pipefail

scripts=$(dirname "${BASH_SOURCE[0]}")
PATH=${SCHEMACTL_HOME:+$SCHEMACTL_HOME/bin:}$PATH
command=$1
reports=$SCHEMACTL_REPORTS
mkdir -p "$reports"
rm -f "$reports"/plan.{json,env,md}

commit=$(git rev-parse --verify --quiet "$SCHEMACTL_TO^{commit}") || {
  echo "schemactl $command: there is no commit $SCHEMACTL_TO" >&2
  exit 64
}
formats=(--format text)
if [[ -n ${GITHUB_ACTIONS:-} ]]; then
  # This is what writes the job's summary.
  formats=(--format github)
fi
if [[ $command == plan && -z ${SCHEMACTL_TARGET:-} ]]; then
  exec schemactl plan --all-targets --at "$commit" "${formats[@]}"
fi

results=()
if [[ -n ${SCHEMACTL_RESULTS:-} ]]; then
  results=(--results "$SCHEMACTL_RESULTS")
fi
code=0
schemactl plan --target "$SCHEMACTL_TARGET" --at "$commit" --out "$reports/plan.json" "${results[@]}" "${formats[@]}" \
  --format "markdown=$reports/plan.md" || code=$?
if [[ ! -f $reports/plan.json ]]; then
  exit "$code"
fi
digest=$(python3 -I -c 'import json, sys; print(json.load(open(sys.argv[1]))["digest"])' "$reports/plan.json")

if [[ $command == plan ]]; then
  schemactl promote "$SCHEMACTL_TARGET" --to "$commit" --dry-run
  python3 -I "$scripts/host.py" note "$reports/plan.md" "$commit" || true
  if [[ $code == 0 ]]; then
    echo "SCHEMACTL_DIGEST=$digest" >"$reports/plan.env"
  fi
  exit "$code"
fi

if [[ $code != 0 ]]; then
  exit "$code"
fi
if [[ $digest != "$SCHEMACTL_DIGEST" ]]; then
  echo "schemactl promote: the digest of this plan is $digest, approved was $SCHEMACTL_DIGEST; nothing was changed" >&2
  exit 4
fi
# Git says first where the target is: an apply that fails is then pending, and can be run again.
pushed=$(schemactl promote "$SCHEMACTL_TARGET" --to "$commit" --format json |
  python3 -I -c 'import json, sys; print(json.load(sys.stdin)["push"] or "")')
if [[ -n $pushed ]]; then
  read -ra words <<<"$pushed"
  "$scripts/push.sh" "${words[@]:2}"
fi
schemactl apply "$reports/plan.json" --expect-digest "$digest" --result "$reports/result.json" "${results[@]}"
