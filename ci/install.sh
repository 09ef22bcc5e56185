#!/usr/bin/env bash
# Install the schemactl of this checkout into the folder FOLDER, with the packages and versions that it is tested with, by hash.
#   install.sh FOLDER [PYTHON]
set -euo pipefail

source_folder=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
folder=$1
"${2:-python3}" -I -m venv "$folder"

# Of constraints.txt what stands in packages.txt: a check, a plan and an apply need no more.
awk 'NR == FNR { wanted[$1]; next } /^[a-z0-9]/ { split($0, part, "=="); is_wanted = part[1] in wanted } is_wanted' \
  "$source_folder/ci/packages.txt" "$source_folder/constraints.txt" >"$folder/requirements.txt"

install() {
  "$folder/bin/python" -I -m pip --quiet --disable-pip-version-check --no-cache-dir install "$@"
}
install --require-hashes --only-binary :all: -r "$source_folder/pip.txt"
install --require-hashes --only-binary :all: -r "$folder/requirements.txt"
install --no-deps --no-build-isolation "$source_folder"
"$folder/bin/schemactl" --version
