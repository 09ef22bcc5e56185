#!/bin/sh
# spark-avro.sh VERSION: the jar of Spark's Avro module of that version is in the folder, fetched by Maven if need be; prints
# its path.
#
# Environment
#   SCHEMACTL_SPARK_JARS   folder for jars, kept between runs   [.jars in the checkout]
#   MVN                    the command
#
# A jar without the SHA-256 that jars.sha256 records is an error: add the line of a release that you trust.
#
# Maven may not have the module of the newest Spark yet: then nothing is fetched, and the tests that need it are skipped.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
version=${1:?usage: spark-avro.sh VERSION}
folder=${SCHEMACTL_SPARK_JARS:-$here/../../.jars}
mkdir -p "$folder"; folder=$(cd "$folder" && pwd)
jar=$folder/spark-avro_2.13-$version.jar
checked() { sh "$here/../jar_sums.sh" "$1" "$here/jars.sha256" "$(basename "$jar")"; }
[ -f "$jar" ] && { checked "$folder"; echo "$jar"; exit 0; }
echo "fetching spark-avro_2.13 $version with Maven into $folder" >&2
part=$folder/.part-$version; rm -rf "$part"; mkdir -p "$part"
n=3
until ${MVN:-mvn} -q -B -C org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy \
  "-Dartifact=org.apache.spark:spark-avro_2.13:$version" "-DoutputDirectory=$part" >&2; do
  n=$((n - 1)); [ $n -gt 0 ] || { rm -rf "$part"; echo "Maven could not fetch it; the tests that need it are skipped" >&2; exit 0; }
  echo "trying once more: networks hiccup" >&2; sleep 5
done
checked "$part" || { rm -rf "$part"; exit 1; }
mv "$part/spark-avro_2.13-$version.jar" "$jar"; rm -rf "$part"
echo "$jar"
