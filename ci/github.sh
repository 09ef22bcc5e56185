#!/usr/bin/env bash
# Run check.sh, plan.sh or apply.sh as a step of the action, and tell the next steps what there is to upload.
#   github.sh check|plan|apply
set -euo pipefail

scripts=$(dirname "${BASH_SOURCE[0]}")
command=$1
export SCHEMACTL_BASE=${SCHEMACTL_BASE#refs/heads/}

case $command in
check | plan)
  if [[ -z $SCHEMACTL_BASE ]]; then
    echo "schemactl $command: this is for pull requests and merge queues; after a merge there is \`run: apply\`" >&2
    exit 64
  fi
  if [[ $command == plan && -z $SCHEMACTL_TOKEN ]]; then
    echo "schemactl plan: nothing is planned for a fork's pull request or in a merge queue: no registry may be asked here" >&2
    exit 0
  fi
  ;;
apply) ;;
*)
  echo "schemactl: \`run: $command\` is unknown; write check, plan or apply" >&2
  exit 64
  ;;
esac
if [[ $command != check && -z $SCHEMACTL_TARGET ]]; then
  echo "schemactl $command: name the target: \`with: {run: $command, target: prod}\`" >&2
  exit 64
fi

code=0
"$scripts/$command.sh" || code=$?
if [[ -n $SCHEMACTL_TOKEN && -f $SCHEMACTL_REPORTS/check.sarif ]]; then
  echo "sarif=$SCHEMACTL_REPORTS/check.sarif" >>"$GITHUB_OUTPUT"
fi
if [[ -f $SCHEMACTL_REPORTS/plan.json ]]; then
  echo "plan=$SCHEMACTL_REPORTS" >>"$GITHUB_OUTPUT"
fi
exit "$code"
