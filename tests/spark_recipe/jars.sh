#!/bin/sh
# jars.sh VERSION: the jars that tests give to that version of Spark are in the folder, fetched by Maven if need be; prints their
# paths: Spark's Avro module, and for the pinned release Delta, Iceberg and what reads the SQLite file of a catalog; in a folder of
# their own, those of Iceberg's REST catalog.
#
# Environment
#   SCHEMACTL_SPARK_JARS   folder for jars, kept between runs   [.jars in the checkout]
#   MVN                    the command
#
# A jar without the SHA-256 that jars.sha256 records is an error: add the line of a release that you trust.
#
# Maven may not have all of the newest Spark yet: then it is not fetched, and the tests that need it are skipped.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
version=${1:?usage: jars.sh VERSION}
folder=${SCHEMACTL_SPARK_JARS:-$here/../../.jars}
mkdir -p "$folder"; folder=$(cd "$folder" && pwd)
wanted=org.apache.spark:spark-avro_2.13:$version
case $version in
  4.1.*) wanted="$wanted io.delta:delta-spark_4.1_2.13:4.1.0 io.delta:delta-storage:4.1.0
    org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0 org.xerial:sqlite-jdbc:3.50.3.0" ;;
esac
checked() { sh "$here/../jar_sums.sh" "$1" "$here/jars.sha256" "$name"; }
for artifact in $wanted; do
  name=${artifact#*:}; name=${name%:*}-${name##*:}.jar
  [ -f "$folder/$name" ] && { checked "$folder"; echo "$folder/$name"; continue; }
  echo "fetching $artifact with Maven into $folder" >&2
  part=$folder/.part-$name; rm -rf "$part"; mkdir -p "$part"
  n=3
  until ${MVN:-mvn} -q -B -C org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy \
    "-Dartifact=$artifact" "-DoutputDirectory=$part" >&2; do
    n=$((n - 1)); [ $n -gt 0 ] || { rm -rf "$part"; echo "Maven could not fetch it; the tests that need it are skipped" >&2; continue 2; }
    echo "trying once more: networks hiccup" >&2; sleep 5
  done
  checked "$part" || { rm -rf "$part"; exit 1; }
  mv "$part/$name" "$folder/$name"; rm -rf "$part"
  echo "$folder/$name"
done
case $version in 4.1.*) ;; *) exit 0 ;; esac
rest=$folder/iceberg-rest
if [ ! -d "$rest" ]; then
  echo "fetching Iceberg's REST catalog with Maven into $rest" >&2
  part=$folder/.part-iceberg-rest; rm -rf "$part"
  ${MVN:-mvn} -q -B -C -f "$here/iceberg-rest.xml" org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies \
    "-DoutputDirectory=$part" >&2 || { rm -rf "$part"; echo "Maven could not fetch it; the tests that need it are skipped" >&2; exit 0; }
  sh "$here/../jar_sums.sh" "$part" "$here/iceberg-rest.sha256" || { rm -rf "$part"; exit 1; }
  mv "$part" "$rest"
fi
sh "$here/../jar_sums.sh" "$rest" "$here/iceberg-rest.sha256"
echo "$rest"
