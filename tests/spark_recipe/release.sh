#!/bin/sh
# release.sh VERSION [PYTEST ARGUMENTS]: the tests of Spark pass on that release of PySpark.
#
# The release is installed, in front of the packages of .venv, in an environment of its own that is kept between runs.
#
# Environment
#   SCHEMACTL_SPARK_RELEASES   folder for the environments, half a gigabyte each   [.releases in the checkout]
#   PYTHON                     the Python whose packages they share                [.venv/bin/python in the checkout]
#   and what jars.sh reads
set -eu
version=${1:?usage: release.sh VERSION [PYTEST ARGUMENTS]}; shift
here=$(cd "$(dirname "$0")" && pwd); root=$(cd "$here/../.." && pwd)
python=${PYTHON:-$root/.venv/bin/python}
environment=${SCHEMACTL_SPARK_RELEASES:-$root/.releases}/$version
site='import site; print(site.getsitepackages()[0])'
if [ ! -f "$environment/.complete" ]; then
  echo "installing pyspark $version into $environment" >&2
  rm -rf "$environment"; "$python" -m venv "$environment"
  printf '%s\n' "$root" "$("$python" -c "$site")" >"$("$environment/bin/python" -c "$site")/checkout.pth"
  grep "^pyspark==$version " "$here/pyspark.txt" >"$environment/pyspark.txt" || {
    echo "no SHA-256 of pyspark $version is recorded in $here/pyspark.txt" >&2
    exit 1
  }
  "$environment/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --no-build-isolation \
    -r "$environment/pyspark.txt"
  touch "$environment/.complete"
fi
sh "$here/jars.sh" "$version" >/dev/null
cd "$root"
[ $# -gt 0 ] || set -- tests/spark tests/codegen/test_topic_struct.py
echo "Spark $version" >&2
"$environment/bin/python" -m pytest -q -p no:cacheprovider "$@"
