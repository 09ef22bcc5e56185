#!/usr/bin/env bash
# Fetch what version numbers are counted from: every commit of every branch, and the tags. The clone may be of any depth.
#   SCHEMACTL_TOKEN  the host's token, for a clone that keeps none
set -euo pipefail

# A folder of the pull request that is laid out as a bare repository is not one: its `config` would name programs that Git runs.
git() { command git -c safe.bareRepository=explicit "$@"; }
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$(git rev-parse --show-toplevel)"

if [[ -n ${GITHUB_ACTIONS:-} ]]; then
  # shellcheck source=ci/credentials.sh
  source "$scripts/credentials.sh"
fi

fetch=(git fetch --quiet --no-recurse-submodules)
if [[ $(git rev-parse --is-shallow-repository) == true ]]; then
  fetch+=(--unshallow)
fi
"${fetch[@]}" --tags --force origin '+refs/heads/*:refs/remotes/origin/*'
git remote set-head origin --auto >/dev/null

# GitLab checks a merge request of a fork in the fork: the branch that it is to be merged into is elsewhere.
if [[ -n ${CI_MERGE_REQUEST_PROJECT_URL:-} && ${CI_MERGE_REQUEST_PROJECT_PATH:-} != "${CI_PROJECT_PATH:-}" ]]; then
  branch=$CI_MERGE_REQUEST_TARGET_BRANCH_NAME
  git fetch --quiet --no-recurse-submodules "$CI_MERGE_REQUEST_PROJECT_URL.git" "+refs/heads/$branch:refs/remotes/origin/$branch"
fi
