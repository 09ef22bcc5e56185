#!/usr/bin/env bash
# Run check.sh, plan.sh, apply.sh, promote.sh or drift.sh as a step of the action, and tell the next steps what there is to upload.
#   github.sh check|plan|apply|promote|drift
set -euo pipefail

scripts=$(dirname "${BASH_SOURCE[0]}")
command=$1
export SCHEMACTL_BASE=${SCHEMACTL_BASE#refs/heads/}

script=("$scripts/$command.sh")
if [[ $command == promote || ($command == plan && -n $SCHEMACTL_TO) ]]; then
  script=("$scripts/promote.sh" "$command")
fi
case ${script[1]:-$command} in
check | plan)
  if [[ -z $SCHEMACTL_BASE && -z ${script[1]:-} ]]; then
    echo "schemactl $command: this is for pull requests and merge queues; after a merge there is \`run: apply\`" >&2
    exit 64
  fi
  if [[ $command == plan && -z $SCHEMACTL_TOKEN && -z ${script[1]:-} ]]; then
    echo "schemactl plan: nothing is planned for a fork's pull request or in a merge queue: no registry may be asked here" >&2
    exit 0
  fi
  ;;
promote)
  if [[ -z $SCHEMACTL_TO || -z $SCHEMACTL_DIGEST ]]; then
    echo "schemactl promote: name the commit and the approved digest: \`with: {run: promote, to: origin/main, digest: ...}\`" >&2
    exit 64
  fi
  ;;
apply | drift) ;;
*)
  echo "schemactl: \`run: $command\` is unknown; write check, plan, apply, promote or drift" >&2
  exit 64
  ;;
esac
if [[ $command != check && -z $SCHEMACTL_TARGET && ($command != plan || -z $SCHEMACTL_TO) ]]; then
  echo "schemactl $command: name the target: \`with: {run: $command, target: prod}\`" >&2
  exit 64
fi

code=0
"${script[@]}" || code=$?
if [[ -n $SCHEMACTL_TOKEN && -f $SCHEMACTL_REPORTS/check.sarif ]]; then
  echo "sarif=$SCHEMACTL_REPORTS/check.sarif" >>"$GITHUB_OUTPUT"
fi
if [[ -f $SCHEMACTL_REPORTS/plan.env ]]; then
  sed 's/^SCHEMACTL_DIGEST=/digest=/' "$SCHEMACTL_REPORTS/plan.env" >>"$GITHUB_OUTPUT"
fi
if [[ -f $SCHEMACTL_REPORTS/plan.json ]]; then
  echo "plan=$SCHEMACTL_REPORTS" >>"$GITHUB_OUTPUT"
fi
exit "$code"
