#!/bin/sh
# protoc.sh: fetches protoc 3.25.5, whose Java classes Pulsar's client takes, into the cache of the brokers' jars unless it is there; prints its path.
#
# Environment
#   SCHEMACTL_BROKER_CACHE   folder for jars, kept between runs   [.broker in the checkout]
#   MVN                      command
#
# Needs Maven.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cache=${SCHEMACTL_BROKER_CACHE:-$here/../../../.broker}
version=3.25.5
case $(uname -s)-$(uname -m) in
Darwin-*) platform=osx-universal_binary ;;
*-aarch64 | *-arm64) platform=linux-aarch_64 ;;
*) platform=linux-x86_64 ;;
esac
protoc=$cache/protoc-$version-$platform.exe
if [ ! -x "$protoc" ]; then
  mkdir -p "$cache/protoc.part"
  ${MVN:-mvn} -q -B -C org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy \
    "-Dartifact=com.google.protobuf:protoc:$version:exe:$platform" "-DoutputDirectory=$cache/protoc.part" >&2
  [ "$platform" != linux-x86_64 ] || echo "d69b0a9ac8264bb3d464ae22742430943aa0a6cdf3734180af5a607c0bf8adaa  $cache/protoc.part/protoc-$version-$platform.exe" | sha256sum -c - >&2
  chmod +x "$cache/protoc.part/protoc-$version-$platform.exe"
  mv "$cache/protoc.part/protoc-$version-$platform.exe" "$protoc"
  rmdir "$cache/protoc.part"
fi
echo "$protoc"
