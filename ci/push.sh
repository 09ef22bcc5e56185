#!/usr/bin/env bash
# Push to the host: push.sh ARGUMENT..., those of `git push`.
#   SCHEMACTL_TOKEN  the host's token, for a clone that keeps none
set -euo pipefail

git() { command git -c safe.bareRepository=explicit "$@"; }
# shellcheck source=ci/credentials.sh
source "$(dirname "${BASH_SOURCE[0]}")/credentials.sh"
git push "$@"
