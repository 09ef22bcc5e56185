#!/bin/sh
# environment.sh VERSION WHEEL FOLDER: FOLDER is an environment with that release of PySpark and the wheel of schemactl, as users
# install them: `pip install WHEEL[delta,proto,pulsar] pyspark==VERSION`. Prints its Python.
#
# Everything but the wheel has the version of constraints.txt and a recorded SHA-256 (pyspark.txt for PySpark), and is kept between
# runs. The wheel is installed anew: its requirements must be met by what is there, so a missing one is an error.
#
# Environment
#   PYTHON   the Python that makes it   [python3]
set -eu
usage="usage: environment.sh VERSION WHEEL FOLDER"
version=${1:?$usage}; wheel=${2:?$usage}; folder=${3:?$usage}
here=$(cd "$(dirname "$0")" && pwd); root=$(cd "$here/../.." && pwd)
pip() { "$folder/bin/python" -I -m pip --quiet --disable-pip-version-check install "$@"; }

if ! grep "^pyspark==$version " "$here/pyspark.txt" >/dev/null; then
  echo "no SHA-256 of pyspark $version is recorded. If you trust where it comes from, record it in $here/pyspark.txt:" >&2
  echo "  pip download --no-deps --no-binary :all: pyspark==$version && sha256sum pyspark-$version.tar.gz" >&2
  exit 1
fi
state=$(cat "$root/pip.txt" "$root/constraints.txt" "$here/packages.txt" "$here/pyspark.txt" "$0" | cksum)
if [ "$(cat "$folder/.complete" 2>/dev/null)" != "$state" ]; then
  echo "installing pyspark $version into $folder" >&2
  rm -rf "$folder"; mkdir -p "$folder"
  "${PYTHON:-python3}" -I -m venv "$folder"
  awk 'NR == FNR { wanted[$1]; next } /^[a-z0-9]/ { split($0, part, "=="); is_wanted = part[1] in wanted } is_wanted' \
    "$here/packages.txt" "$root/constraints.txt" >"$folder/requirements.txt"
  grep "^pyspark==$version " "$here/pyspark.txt" >"$folder/pyspark.txt"
  pip --require-hashes --only-binary :all: -r "$root/pip.txt"
  pip --require-hashes --only-binary :all: -r "$folder/requirements.txt"
  # PySpark is a source distribution, which the installed setuptools builds.
  pip --require-hashes --no-deps --no-build-isolation -r "$folder/pyspark.txt"
  echo "$state" >"$folder/.complete"
fi
pip --no-index --force-reinstall --no-deps "$wheel"
pip --no-index "${wheel}[delta,proto,pulsar]" "pyspark==$version"
echo "$folder/bin/python"
