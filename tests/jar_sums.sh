#!/bin/sh
# jar_sums.sh FOLDER SUMS [JAR]: each jar in FOLDER, or the one that is named, has the SHA-256 that the file SUMS records; without
# a name each jar of SUMS is there, too. Exit 1, naming the first ten jars for which that is not so.
set -eu
folder=${1:?usage: jar_sums.sh FOLDER SUMS [JAR]}; sums=${2:?usage: jar_sums.sh FOLDER SUMS [JAR]}; only=${3:-}
if [ ! -f "$sums" ]; then
  echo "no checksums are recorded for these jars. If you trust where they come from, record them:" >&2
  echo "  (cd $folder && sha256sum *.jar) >$sums" >&2
  exit 1
fi
sum() { if command -v sha256sum >/dev/null; then sha256sum "$@"; else shasum -a 256 "$@"; fi; }
found=$(cd "$folder" && if [ -n "$only" ]; then sum "$only"; else sum ./*.jar | sed 's:\./::'; fi)
wrong=$(printf '%s\n' "$found" | grep -vxF -f "$sums" | sed 's/^[^ ]* *//' || true)
[ -n "$only" ] || missing=$(sed 's/^[^ ]* *//' "$sums" | while read -r jar; do [ -f "$folder/$jar" ] || echo "$jar (missing)"; done)
[ -n "$wrong${missing:-}" ] || exit 0
echo "these jars are not the ones whose SHA-256 $sums records:" >&2
printf '%s\n' "$wrong" "${missing:-}" | grep . | head -10 >&2
exit 1
