#!/bin/sh
# Joins this Linux machine to the server that gave it this script. That server gives it the executable, too: no other network is needed.
#
#   coracle token create --print-join-command     on the server: prints the line that fetches this and runs it
#
#   CORACLE_TOKEN   with the hash of the cluster's CA, by which this machine knows the server before it tells it the secret
#   … | sh -s - --node-name edge-2                flags of `coracle agent`
#
# INSTALL_CORACLE_* as for install.sh, which it ends with.
set -eu

URL=@URL@

fail() { echo "[coracle] $*" >&2; exit 1; }

# fetch FILE PATH ARG…: a short answer comes, or the first byte does, in a minute.
fetch() {
  file=$1 path=$2
  shift 2
  curl -sS -L --proto =https --connect-timeout 20 --speed-time 60 --speed-limit 1 -w '%{http_code}' -o "$DIR/$file" "$@" "$URL$path" || fail "$URL does not answer"
}

# Whether what is fetched to $DIR can be run there.
runs_programs() {
  printf '#!/bin/sh\n' >"$DIR/program"
  chmod 755 "$DIR/program"
  "$DIR/program" 2>/dev/null
}

{ # to be read as a whole before any of it is done: a connection that breaks off hands sh a part of this
  [ "$(id -u)" = 0 ] || fail "run it as root: … | sudo CORACLE_TOKEN=… sh -"
  case $(uname -s)/$(uname -m) in
    Linux/x86_64 | Linux/amd64) target=linux-x64 ;;
    Linux/aarch64 | Linux/arm64) target=linux-arm64 ;;
    *) fail "no build for $(uname -s) on $(uname -m)" ;;
  esac
  case ${CORACLE_TOKEN:-} in
    K10*::?*) ;;
    *) fail "CORACLE_TOKEN must be a whole token, from: coracle token create" ;;
  esac
  hash=${CORACLE_TOKEN#K10} secret=${CORACLE_TOKEN#*::}
  hash=${hash%%::*}

  DIR=$(mktemp -d "${TMPDIR:-/var/tmp}/coracle.XXXXXX") # /tmp may be memory
  trap 'rm -rf "$DIR"' EXIT
  trap 'exit 1' HUP INT TERM
  if ! runs_programs; then # a hardened machine
    rm -rf "$DIR"
    mkdir -p "${INSTALL_CORACLE_BIN_DIR:-/usr/local/bin}"
    DIR=$(mktemp -d "${INSTALL_CORACLE_BIN_DIR:-/usr/local/bin}/.coracle.XXXXXX")
    runs_programs || fail "nothing can be run from ${TMPDIR:-/var/tmp}, nor from ${DIR%/*}: name a directory where it can with TMPDIR"
  fi

  # What the server says its CA is; believed is the certificate of it whose hash stands in the token.
  status=$(fetch info /api/v1/namespaces/kube-public/configmaps/cluster-info -k)
  [ "$status" = 200 ] || fail "$URL is not ready for machines that join: it answered $status"
  # Only what lies between the marks of each certificate is read, and what is believed is written anew from the bytes that have the hash: curl might find another certificate beside them.
  sed -n 's|.*certificate-authority-data: *\([A-Za-z0-9+/=]*\).*|\1|p' "$DIR/info" | base64 -d | awk -v dir="$DIR" '/^-----END CERTIFICATE-----/ { within = 0 } within { print >(dir "/ca-" n) } /^-----BEGIN CERTIFICATE-----/ { n++; within = 1 }'
  for certificate in "$DIR"/ca-*; do
    base64 -d <"$certificate" >"$DIR/der" 2>/dev/null || continue
    [ "$(sha256sum <"$DIR/der" | cut -d ' ' -f 1)" = "$hash" ] || continue
    { echo '-----BEGIN CERTIFICATE-----'; base64 <"$DIR/der"; echo '-----END CERTIFICATE-----'; } >"$DIR/ca.pem"
  done
  [ -f "$DIR/ca.pem" ] || fail "$URL is not the server of this token: the token is of another cluster, or somebody stands between"

  echo "[coracle] fetching the executable for $target from $URL"
  printf 'header = "Authorization: Bearer %s"\n' "$secret" >"$DIR/curlrc"
  status=$(fetch coracle "/executables/$target/coracle" --cacert "$DIR/ca.pem" -K "$DIR/curlrc")
  case $status in
    200) ;;
    401 | 403) fail "$URL refuses the token: it is wrong, or it has expired" ;;
    *) fail "$URL answered $status: $(head -c 500 "$DIR/coracle")" ;;
  esac
  chmod 755 "$DIR/coracle"
  CORACLE_URL=${CORACLE_URL:-$URL}
  export CORACLE_URL CORACLE_TOKEN
  "$DIR/coracle" install "$@" </dev/null # which is this script
}
