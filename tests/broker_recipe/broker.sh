#!/bin/sh
# broker.sh jars|tls-jars|start|stop|status: one Pulsar broker with one bookie in one Java process, on loopback, for tests.
#
#   jars    the broker's jars are in the cache, fetched by Maven coordinates (pom-VERSION.xml with each jar, or pom.xml) if need be;
#           prints the folder.
#           Each has the SHA-256 that jars-VERSION.sha256 records, or this fails
#   tls-jars  the same for what a broker needs besides to speak TLS
#   start   the jars are there, and the broker answers; prints the URL of its admin API
#   stop    the broker that `start` started has ended
#   status  prints the URL if it answers; exit 1 if not
#
# Environment
#   SCHEMACTL_BROKER_CACHE   folder for jars, kept between runs   [.broker in the checkout]
#   PULSAR_VERSION           4.0.7, 4.2.4 or 5.0.1                [that of pom.xml]
#   SCHEMACTL_BROKER_DATA    folder for state, log and pid        [cache/run-HTTP_PORT]
#   SCHEMACTL_HTTP_PORT      admin API                            [8080]
#   SCHEMACTL_BROKER_PORT    clients                              [6650]
#   SCHEMACTL_STRATEGY       the broker's compatibility strategy  [FULL]
#   SCHEMACTL_CLUSTER        the name of its cluster              [standalone]
#   SCHEMACTL_KEEP_DATA      not empty: start with the data of the last run instead of an empty cluster
#   SCHEMACTL_TOKEN_SECRET   file with an HMAC-SHA256 key: clients need tokens, and permissions are checked
#   SCHEMACTL_ADMIN_TOKEN    a token of the subject "admin" signed with that key (needed with it)
#   SCHEMACTL_TLS            folder with ca.pem, server.pem, server.key, admin.pem, admin.key: both ports speak TLS only, clients need
#                            certificates, and permissions are checked; "admin" is the superuser
#   SCHEMACTL_HEAP, SCHEMACTL_DIRECT   Java's memory              [384m, 256m]
#   SCHEMACTL_START_TIMEOUT  seconds                              [90]
#   MVN, JAVA, CURL          commands
#
# Needs Java 17 (21 or newer for Pulsar 5.0), Maven and curl. Start to ready takes 6 to 17 s, and 250 to 450 MB.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cmd=${1:-start}
cache=${SCHEMACTL_BROKER_CACHE:-$here/../../.broker}
case $cmd in jars | tls-jars | start) mkdir -p "$cache" ;; esac
[ -d "$cache" ] && cache=$(cd "$cache" && pwd)
http=${SCHEMACTL_HTTP_PORT:-8080}
bin=${SCHEMACTL_BROKER_PORT:-6650}
version=${PULSAR_VERSION:-$(sed -n 's:.*<pulsar.version>\(.*\)</pulsar.version>.*:\1:p' "$here/pom.xml")}
data=${SCHEMACTL_BROKER_DATA:-$cache/run-$http}
lib=$cache/lib-$version
loopback=lo; [ "$(uname)" = Darwin ] && loopback=lo0
url=http://127.0.0.1:$http
tls=${SCHEMACTL_TLS:-}
if [ -n "$tls" ]; then tls=$(cd "$tls" && pwd); url=https://127.0.0.1:$http; fi
MVN=${MVN:-mvn} JAVA=${JAVA:-java} CURL=${CURL:-curl}

answers() {
  # the default namespace is made last, so its presence means ready
  $CURL -s -m 3 ${SCHEMACTL_ADMIN_TOKEN:+-H "Authorization: Bearer $SCHEMACTL_ADMIN_TOKEN"} \
    ${tls:+--cacert "$tls/ca.pem" --cert "$tls/admin.pem" --key "$tls/admin.key"} \
    "$url/admin/v2/namespaces/public" 2>/dev/null | grep -q public/default
}

checked() { sh "$here/../jar_sums.sh" "$1" "$here/jars-$2.sha256"; }

fetch() { # FOLDER NAME POM OPTION...: the folder has the jars of the pom, whose checksums are in jars-NAME.sha256
  folder=$1 name=$2 pom=$3
  shift 3
  [ -f "$folder/.complete" ] && return 0
  rm -rf "$folder.part"; mkdir -p "$folder.part"
  n=3
  until $MVN -q -B -C -f "$pom" "$@" -DincludeScope=runtime "-DoutputDirectory=$folder.part" >&2; do
    n=$((n - 1)); [ $n -gt 0 ] || { echo "Maven could not fetch them" >&2; exit 1; }
    echo "trying once more: networks hiccup" >&2; sleep 5
  done
  checked "$folder.part" "$name" || { rm -rf "$folder.part"; exit 1; }
  touch "$folder.part/.complete"
  rm -rf "$folder"; mv "$folder.part" "$folder"
}

jars() {
  [ -f "$lib/.complete" ] || echo "fetching the jars of pulsar-broker $version with Maven into $lib (about 140 MB)" >&2
  pom=$here/pom.xml goal=dependency:copy-dependencies
  [ -f "$here/pom-$version.xml" ] && pom=$here/pom-$version.xml goal=dependency:copy
  fetch "$lib" "$version" "$pom" "-Dpulsar.version=$version" $goal
}

tls_jars() { fetch "$cache/lib-tls" tls "$here/pom-tls.xml" dependency:copy-dependencies; }

running() { [ -f "$data/broker.pid" ] && kill -0 "$(cat "$data/broker.pid")" 2>/dev/null; }

case $cmd in
jars) jars; checked "$lib" "$version"; echo "$lib" ;;
tls-jars) tls_jars; checked "$cache/lib-tls" tls; echo "$cache/lib-tls" ;;
status) if answers; then echo "$url"; else echo "no broker at $url" >&2; exit 1; fi ;;
start)
  if running && answers; then echo "$url"; exit 0; fi
  if running; then echo "a broker process of this data folder runs but does not answer; stop it first" >&2; exit 1; fi
  if answers; then echo "something else already answers at $url" >&2; exit 1; fi
  jars
  [ -z "$tls" ] || tls_jars
  mkdir -p "$data"; data=$(cd "$data" && pwd)
  sed -e "s/@BROKER_PORT@/$bin/" -e "s/@HTTP_PORT@/$http/" -e "s/@STRATEGY@/${SCHEMACTL_STRATEGY:-FULL}/" -e "s/@CLUSTER@/${SCHEMACTL_CLUSTER:-standalone}/" -e "s/@LOOPBACK@/$loopback/" \
    "$here/standalone.conf" >"$data/standalone.conf"
  cp "$here/log4j2.xml" "$data/log4j2.xml"
  if [ -n "${SCHEMACTL_TOKEN_SECRET:-}" ]; then
    secret=$(cd "$(dirname "$SCHEMACTL_TOKEN_SECRET")" && pwd)/$(basename "$SCHEMACTL_TOKEN_SECRET")
    cat >>"$data/standalone.conf" <<EOF
authenticationEnabled=true
authorizationEnabled=true
authenticationProviders=org.apache.pulsar.broker.authentication.AuthenticationProviderToken
tokenSecretKey=file://$secret
superUserRoles=admin
brokerClientAuthenticationPlugin=org.apache.pulsar.client.impl.auth.AuthenticationToken
brokerClientAuthenticationParameters={"token":"${SCHEMACTL_ADMIN_TOKEN:?set SCHEMACTL_ADMIN_TOKEN too, a token with subject admin}"}
EOF
  fi
  if [ -n "$tls" ]; then
    cat >>"$data/standalone.conf" <<EOF
brokerServicePort=
webServicePort=
brokerServicePortTls=$bin
webServicePortTls=$http
tlsCertificateFilePath=$tls/server.pem
tlsKeyFilePath=$tls/server.key
tlsTrustCertsFilePath=$tls/ca.pem
authenticationEnabled=true
authorizationEnabled=true
authenticationProviders=org.apache.pulsar.broker.authentication.AuthenticationProviderTls
superUserRoles=admin
brokerClientTlsEnabled=true
brokerClientTrustCertsFilePath=$tls/ca.pem
brokerClientAuthenticationPlugin=org.apache.pulsar.client.impl.auth.AuthenticationTls
brokerClientAuthenticationParameters=tlsCertFile:$tls/admin.pem,tlsKeyFile:$tls/admin.key
EOF
  fi
  wipe=--wipe-data; [ -n "${SCHEMACTL_KEEP_DATA:-}" ] && wipe=
  cd "$data"
  # shellcheck disable=SC2086
  nohup $JAVA -Xms128m -Xmx"${SCHEMACTL_HEAP:-384m}" -XX:MaxDirectMemorySize="${SCHEMACTL_DIRECT:-256m}" \
    -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote -Xshare:auto \
    --add-opens java.base/java.io=ALL-UNNAMED --add-opens java.base/java.util.zip=ALL-UNNAMED \
    --add-opens java.base/java.nio=ALL-UNNAMED --add-opens java.base/jdk.internal.misc=ALL-UNNAMED \
    --add-opens java.base/java.lang=ALL-UNNAMED --add-opens java.base/jdk.internal.platform=ALL-UNNAMED \
    --add-opens java.base/sun.net=ALL-UNNAMED --add-opens java.management/sun.management=ALL-UNNAMED \
    --add-opens jdk.management/com.sun.management.internal=ALL-UNNAMED \
    -Dio.netty.tryReflectionSetAccessible=true -Djava.net.preferIPv4Stack=true -Dlog4j2.is.webapp=false \
    -Dlog4j2.configurationFile="$data/log4j2.xml" \
    -Dbookkeeper.metadata.bookie.drivers=org.apache.pulsar.metadata.bookkeeper.PulsarMetadataBookieDriver \
    -Dbookkeeper.metadata.client.drivers=org.apache.pulsar.metadata.bookkeeper.PulsarMetadataClientDriver \
    -cp "$lib/*${tls:+:$cache/lib-tls/*}" org.apache.pulsar.PulsarStandaloneStarter \
    -c "$data/standalone.conf" --no-functions-worker --no-stream-storage $wipe \
    --metadata-dir "$data/metadata" --bookkeeper-dir "$data/bookkeeper" -a 127.0.0.1 \
    >"$data/broker.log" 2>&1 </dev/null &
  pid=$!; echo $pid >"$data/broker.pid"
  n=$((${SCHEMACTL_START_TIMEOUT:-90} * 5))
  while [ $n -gt 0 ]; do
    answers && { echo "$url"; exit 0; }
    kill -0 $pid 2>/dev/null || { echo "the broker ended; last lines of $data/broker.log:" >&2; tail -20 "$data/broker.log" >&2; rm -f "$data/broker.pid"; exit 1; }
    sleep 0.2; n=$((n - 1))
  done
  echo "the broker did not become ready; see $data/broker.log" >&2; exit 1 ;;
stop)
  running || { echo "no broker of $data runs" >&2; rm -f "$data/broker.pid"; exit 0; }
  pid=$(cat "$data/broker.pid"); kill "$pid"
  n=100; while kill -0 "$pid" 2>/dev/null && [ $n -gt 0 ]; do sleep 0.2; n=$((n - 1)); done
  kill -0 "$pid" 2>/dev/null && kill -9 "$pid"
  rm -f "$data/broker.pid" ;;
*) sed -n '2,7p' "$0" >&2; exit 2 ;;
esac
