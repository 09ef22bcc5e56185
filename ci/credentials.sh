# shellcheck shell=bash
# Sourced: with the host's token, Git reaches the host, whose clone keeps no token. The token is in no file and in no list of processes.
#   SCHEMACTL_TOKEN  the host's token
url=$(git remote get-url origin)
if [[ -n ${SCHEMACTL_TOKEN:-} && $url == https://* ]]; then
  user=x-access-token
  if [[ -n ${GITLAB_CI:-} ]]; then
    user=oauth2
    # GitLab's runner writes another token into the address.
    url=$CI_PROJECT_URL.git
    git remote set-url --push origin "$url"
  fi
  if ! git config --get-urlmatch http.extraheader "$url" >/dev/null; then
    basic=$(printf '%s:%s' "$user" "$SCHEMACTL_TOKEN" | base64 | tr -d '\n')
    number=${GIT_CONFIG_COUNT:-0}
    export GIT_CONFIG_COUNT=$((number + 1))
    export "GIT_CONFIG_KEY_$number=http.$url.extraheader" "GIT_CONFIG_VALUE_$number=AUTHORIZATION: basic $basic"
  fi
fi
