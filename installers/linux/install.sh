#!/bin/sh
# Installs Coracle on this Linux machine (x86_64 or arm64), starts it, and waits until its node is Ready. Run it again to upgrade or to change settings.
#
#   sh installers/linux/install.sh                             a server with a node
#   sh installers/linux/install.sh --node-name edge-1 …        the same, with flags of `coracle server`
#   CORACLE_URL=https://host:6443 CORACLE_TOKEN=… sh installers/linux/install.sh    an agent of that server
#
# It builds dist/coracle if there is none, or one of other sources than are there now. What building needs (node, npm, g++) is installed from Debian's archive if it is missing; a machine that only
# runs Coracle needs nothing. The service is systemd's or OpenRC's where one of them runs, otherwise a supervised background process.
#
#   CORACLE_*                    settings, as `coracle server --help` lists them; kept in /etc/coracle/coracle.env (mode 0600)
#   INSTALL_CORACLE_EXEC         "server …" or "agent …", or only flags; flags after the script's name are added
#   INSTALL_CORACLE_BINARY       install this executable instead of dist/coracle
#   INSTALL_CORACLE_BIN_DIR      default /usr/local/bin
#   INSTALL_CORACLE_SKIP_START   "true": do not start it; the next boot does, also that of an image this runs in
#   INSTALL_CORACLE_TIMEOUT      seconds to wait for the node to be Ready, default 180
#
# Without settings of its own, a later run keeps those of the run before; of proxies it takes those that are in its environment.
set -eu

PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin # of who has become root by `su` they are not in it, and rc-service and modprobe are there
BIN_DIR=${INSTALL_CORACLE_BIN_DIR:-/usr/local/bin}
NEW_BINARY=$BIN_DIR/.coracle.new
LIB_DIR=/usr/local/lib/coracle
ETC=/etc/coracle
KUBECONFIG_FILE=$ETC/coracle.yaml
ENV_FILE=$ETC/coracle.env
ARGS_FILE=$ETC/coracle.args
STATE_FILE=$ETC/installed
LOG_FILE=/var/log/coracle.log
LOCK_FILE=/run/coracle-install.pid
UNIT=/etc/systemd/system/coracle.service
RETRY_UNIT=/etc/systemd/system/coracle-retry.service
NETWORKD_FILE=/etc/systemd/network/05-coracle.network
NETWORK_MANAGER_FILE=/etc/NetworkManager/conf.d/coracle.conf
INIT=/etc/init.d/coracle
TIMEOUT=${INSTALL_CORACLE_TIMEOUT:-180}
SKIP_START=${INSTALL_CORACLE_SKIP_START:-}
HERE=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
ROOT=$(CDPATH='' cd -- "$HERE/../.." && pwd)

say() { echo "[coracle] $*"; }
fail() { echo "[coracle] $*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# A word as sh reads it back.
quote() { printf "'%s'" "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")"; }

check_machine() {
  [ "$(uname -s)" = Linux ] || fail "this is for Linux"
  case $(uname -m) in
    x86_64 | amd64 | aarch64 | arm64) ;;
    *) fail "no build for $(uname -m): x86_64 and arm64 only" ;;
  esac
  [ "$(id -u)" = 0 ] || fail "run it as root: sudo sh $0"
}

# One installer at a time: two would write to the same files, and each put the other's half in its place.
lock() {
  mkdir -p "${LOCK_FILE%/*}"
  if ! claim; then
    other=$(cat "$LOCK_FILE" 2>/dev/null || true)
    ! tr '\0' ' ' 2>/dev/null <"/proc/${other:-none}/cmdline" | grep -q 'install\.sh' || fail "another installation is under way, process $other: wait until it has ended"
    rm -f "$LOCK_FILE" # of one that was killed
    claim || fail "$LOCK_FILE cannot be written"
  fi
  trap leave EXIT
  trap 'exit 1' HUP INT TERM
}

claim() { (set -C; echo $$ >"$LOCK_FILE") 2>/dev/null; }

unlock() {
  rm -f "$LOCK_FILE"
  trap - EXIT
}

leave() {
  rm -f "$NEW_BINARY" # one that was refused
  unlock
}

# Installs Debian packages, after a fresh look at the archive. Anything else must be brought by the user.
apt_install() {
  have apt-get || fail "please install $* first, there is no apt-get here"
  say "installing from Debian's archive: $*"
  apt-get -qq update
  DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@" >/dev/null
}

build() {
  [ -f "$ROOT/package.json" ] || fail "no sources in $ROOT, and no executable: name one with INSTALL_CORACLE_BINARY"
  missing=
  have node || missing="$missing nodejs"
  have npm || missing="$missing npm"
  have g++ || missing="$missing g++"
  have dpkg-deb || missing="$missing dpkg"
  [ -d /etc/ssl/certs ] || missing="$missing ca-certificates"
  # shellcheck disable=SC2086 # a list of words
  [ -z "$missing" ] || apt_install $missing
  say "building dist/coracle; the first time, what goes into it is downloaded, which can take minutes"
  (
    cd "$ROOT"
    # what npm ci leaves there says from which lock file
    if [ ! -f node_modules/.package-lock.json ] || [ -n "$(find package-lock.json -newer node_modules/.package-lock.json)" ]; then npm ci --no-audit --no-fund --loglevel=error || exit 1; fi # set -e does not reach here
    npm run --silent build
  ) || fail "the build failed, see above"
}

# dist/coracle is there, and of these sources as far as anybody can tell.
is_built() {
  [ -x "$ROOT/dist/coracle" ] || return 1
  [ -f "$ROOT/package.json" ] || return 0
  [ -f "$ROOT/dist/sources" ] || { [ ! -d "$ROOT/node_modules" ]; return; } # built here, by who left no note
  [ "$(sh "$ROOT/installers/bundle/sources.sh")" = "$(cat "$ROOT/dist/sources")" ]
}

# Brings the executable beside the one of before, whose place it takes when the settings are right for it: whoever starts again meanwhile starts with that.
bring_binary() {
  binary=${INSTALL_CORACLE_BINARY:-$ROOT/dist/coracle}
  if [ -z "${INSTALL_CORACLE_BINARY:-}" ]; then is_built || build
  elif [ ! -x "$binary" ]; then fail "$binary is not an executable"; fi
  mkdir -p "$BIN_DIR"
  EXECUTABLE=$BIN_DIR/coracle
  ! cmp -s "$binary" "$EXECUTABLE" || return 0
  EXECUTABLE=$NEW_BINARY
  { cp "$binary" "$EXECUTABLE" && chmod 755 "$EXECUTABLE"; } || fail "$binary could not be copied to $BIN_DIR"
  "$EXECUTABLE" version >/dev/null || fail "$binary does not run on this machine"
}

install_binary() {
  if [ "$EXECUTABLE" = "$BIN_DIR/coracle" ]; then
    say "$EXECUTABLE is up to date"
  else
    sync # or a loss of power now leaves an empty one of it, and nobody is there
    mv "$EXECUTABLE" "$BIN_DIR/coracle" # what runs keeps its file
    say "installed $BIN_DIR/coracle"
  fi
  for tool in kubectl crictl ctr; do
    if ! have "$tool"; then
      ln -s coracle "$BIN_DIR/$tool"
      say "linked $BIN_DIR/$tool"
    fi
  done
  mkdir -p "$LIB_DIR"
  for script in service uninstall; do
    sed "s|^BIN_DIR=.*|BIN_DIR=$BIN_DIR|" "$HERE/$script.sh" >"$LIB_DIR/.$script.new"
    chmod 755 "$LIB_DIR/.$script.new"
    mv "$LIB_DIR/.$script.new" "$LIB_DIR/$script"
  done
  ln -sf "$LIB_DIR/uninstall" "$BIN_DIR/coracle-uninstall"
}

# Debian's own runc, in quick builds, uses the machine's libseccomp; apt has it everywhere but in some containers.
check_libraries() {
  for file in /lib/*/libseccomp.so.2 /usr/lib/*/libseccomp.so.2 /usr/lib/libseccomp.so.2 /usr/lib64/libseccomp.so.2 /lib/libseccomp.so.2; do [ ! -e "$file" ] || return 0; done
  have apt-get && apt_install libseccomp2
  return 0
}

# What was asked for: the words of INSTALL_CORACLE_EXEC and of the command line, quoted, on one line.
requested_args() {
  # xargs takes words and quotes for what sh does, but < and $ for themselves
  words=$(printf '%s\n' "${INSTALL_CORACLE_EXEC:-}" | xargs -r -n 1 printf '%s\n') || fail "INSTALL_CORACLE_EXEC cannot be read as words: $INSTALL_CORACLE_EXEC"
  quoted_words=$(printf '%s\n' "$words" | while IFS= read -r word; do [ -z "$word" ] || printf '%s ' "$(quote "$word")"; done)
  eval "set -- $quoted_words $*"
  case ${1:-} in
    server | agent) ;;
    '' | -*)
      if [ -n "${CORACLE_URL:-}${CORACLE_SERVER:-}" ]; then set -- agent "$@"
      elif grep -qs "^'agent'" "$ARGS_FILE"; then fail "this machine is an agent: say of which server with these settings, or that it is to be a server: INSTALL_CORACLE_EXEC=server"
      else set -- server "$@"; fi ;;
    *) fail "a machine is a server or an agent, and $(quote "$1") is neither" ;;
  esac
  for word in "$@"; do printf '%s ' "$(quote "$word")"; done
}

# CORACLE_* and the proxies' variables, one NAME='value' a line: systemd and sh read that alike.
requested_env() {
  env | sed -n 's/^\(CORACLE_[A-Z0-9_]*\|\(CONTAINERD_\)\?\(HTTP_PROXY\|HTTPS_PROXY\|NO_PROXY\)\|http_proxy\|https_proxy\|no_proxy\)=.*/\1/p' | sort -u | while read -r name; do
    case $name in CORACLE_DEBIAN_MIRROR | CORACLE_ACCEPT_VERSIONS) continue ;; esac # for the build
    eval "[ -n \"\${$name+set}\" ]" || continue # a line of another's value
    eval "value=\$$name"
    [ "$name" != CORACLE_URL ] || name=CORACLE_SERVER
    # shellcheck disable=SC2154 # set by eval
    printf '%s=%s\n' "$name" "$(quote "$value")"
  done
}

# The lines of the installation's file, but for names that are set anew, in small letters or in capitals: of two that differ, the service would go by one that is not of now.
with_those_before() {
  before=$ENV_FILE
  [ -f "$before" ] || before=/dev/null
  printf '%s\n' "$1" | awk -F= 'NR == FNR { if ($0 != "") { names[toupper($1)]; lines[++n] = $0 } next } $0 != "" && !(toupper($1) in names) { print } END { for (i = 1; i <= n; i++) print lines[i] }' - "$before"
}

# check_settings ENVIRONMENT ARGS: what runs is not stopped for settings with which it would not start again, and they do not take the place of those with which it would. In an image they are not
# checked: the files that they name may be there only when it boots.
check_settings() {
  [ "$SKIP_START" != true ] || return 0
  problem=$(set -a; eval "$1"; eval "exec \"\$EXECUTABLE\" check-settings $2" 2>&1 >/dev/null) || case $problem in
    *'unknown command "check-settings"'*) ;; # an executable of before this could be asked
    *'coracle: '*) fail "$(printf '%s\n' "$problem" | last_words | tail -n 1): nothing is set or started" ;;
  esac
}

# Writes what it reads to a file that others see whole, as before or as it is now: a loss of power in an upgrade must not leave a service without its settings.
replace() {
  cat >"$1.new"
  sync "$1.new" # of a busybox without this, all
  mv "$1.new" "$1"
}

# What it is to run with, in ENVIRONMENT and ARGS, which the executable takes.
choose_settings() {
  quoted=
  for word in "$@"; do quoted="$quoted $(quote "$word")"; done
  ENVIRONMENT=$(requested_env) KEEPS=
  # proxies may be in anybody's environment: they ask for no other settings
  if [ -f "$ARGS_FILE" ] && [ -z "$quoted${INSTALL_CORACLE_EXEC:-}$(printf '%s\n' "$ENVIRONMENT" | grep '^CORACLE_')" ]; then
    say "keeping the settings in $ENV_FILE and $ARGS_FILE"
    grep -q '[^[:space:]]' "$ARGS_FILE" || fail "$ARGS_FILE says nothing: say again what this machine is, server or agent, with its settings"
    # where there is no news, the file stays as it is: its owner may have given it another mode, or put a link there
    if [ -z "$ENVIRONMENT" ] && [ -f "$ENV_FILE" ]; then KEEPS=all; else KEEPS=args; fi
    ENVIRONMENT=$(with_those_before "$ENVIRONMENT")
    ARGS=$(cat "$ARGS_FILE")
  else
    ARGS=$(requested_args "$quoted")
  fi
  check_settings "$ENVIRONMENT" "$ARGS"
}

# shellcheck disable=SC2120 # its arguments are those it sets
configure() {
  mkdir -p "$ETC"
  [ -e "$ETC/config.yaml" ] || say "settings can also be written to $ETC/config.yaml, with the flags' names as keys"
  (
    umask 077
    [ "$KEEPS" = all ] || printf '%s\n' "$ENVIRONMENT" | replace "$ENV_FILE"
    [ -n "$KEEPS" ] || printf '%s\n' "$ARGS" | replace "$ARGS_FILE"
  )
  eval "set -- $ARGS"
  MODE=$1
  DATA_DIR=$(setting data-dir /var/lib/coracle "$@")
  KUBECONFIG_FILE=$(setting write-kubeconfig "$KUBECONFIG_FILE" "$@")
  NODE_NAME=$(setting node-name "$(cat "$DATA_DIR/node-name" 2>/dev/null || uname -n)" "$@" | tr '[:upper:]' '[:lower:]')
  DISABLE_AGENT=$(setting disable-agent false "$@")
  RUNTIME=$(setting container-runtime-endpoint '' "$@")
  SERVERS=$(setting server '' "$@")
  printf 'data_dir=%s\nkubeconfig=%s\n' "$(quote "$DATA_DIR")" "$(quote "$KUBECONFIG_FILE")" >"$STATE_FILE"
}

# setting NAME DEFAULT ARG…: what coracle will see, in its order: flags, variables, config.yaml.
setting() {
  name=$1 value=$2
  shift 2
  if [ -f "$ETC/config.yaml" ]; then
    in_file=$(sed -n "s/^$name:[[:space:]]*[\"']\{0,1\}\([^\"'#]*[^\"'# ]\).*/\1/p" "$ETC/config.yaml" | tail -n 1)
    value=${in_file:-$value}
  fi
  variable=CORACLE_$(echo "$name" | tr 'a-z-' 'A-Z_')
  in_env=$(sed -n "s/^$variable='\(.*\)'\$/\1/p" "$ENV_FILE")
  value=${in_env:-$value}
  while [ $# -gt 0 ]; do
    case $1 in
      "--$name="*) value=${1#*=} ;;
      "--$name") case ${2:-} in '' | --*) value=true ;; *) value=$2 ;; esac ;;
    esac
    shift
  done
  printf '%s' "$value"
}

# A word as systemd reads it back: $ and % mean something to it.
systemd_quote() { printf '"%s"' "$(printf '%s' "$1" | sed -e 's/[\\"]/\\&/g' -e 's/%/%%/g' -e 's/\$/$$/g')"; }

# shellcheck disable=SC2120 # its arguments are those it sets
systemd_command() {
  eval "set -- $ARGS"
  printf '%s' "$BIN_DIR/coracle"
  for word in "$@"; do printf ' %s' "$(systemd_quote "$word")"; done
}

# Where the data are, by the name that was given and by that of the disk they are on: before that is mounted there is no cluster, and none must be made.
data_paths() {
  systemd_quote "$DATA_DIR"
  [ ! -d "$DATA_DIR" ] || { printf ' '; systemd_quote "$(CDPATH='' cd -- "$DATA_DIR" && pwd -P)"; }
}

# A server says when it is ready, to units that come after it. An agent may wait for its server for as long as it takes.
systemd_type() { if [ "$MODE" = agent ]; then echo exec; else echo notify; fi; }

enable_systemd() {
  # shellcheck disable=SC2119
  replace "$UNIT" <<UNIT
[Unit]
Description=Coracle: Kubernetes for the edge
Wants=network-online.target
After=network-online.target
RequiresMountsFor=$(data_paths)
# a disk that is not there, or not in order, at boot: Restart= is for what has started
OnFailure=${RETRY_UNIT##*/}

[Service]
Type=$(systemd_type)
EnvironmentFile=-$ENV_FILE
ExecStartPre=-/bin/sh -c 'for module in overlay br_netfilter nf_tables; do modprobe -q "\$\$module" || true; done'
ExecStart=$(systemd_command)
ExecStopPost=-$LIB_DIR/uninstall --going-down
ExecStopPost=-$LIB_DIR/uninstall --lost-disk
# containers and their runtime outlive the service
KillMode=process
Delegate=yes
LimitNOFILE=1048576
LimitNPROC=infinity
LimitCORE=infinity
TasksMax=infinity
TimeoutStartSec=0
Restart=always
RestartSec=5s

[Install]
WantedBy=multi-user.target
UNIT
  replace "$RETRY_UNIT" <<UNIT
[Unit]
Description=Coracle, tried again: the disk of its data may have come
# who stops coracle stops this
PartOf=coracle.service
After=coracle.service

[Service]
Type=oneshot
SuccessExitStatus=SIGTERM
# at once when it was unplugged, which has systemd wait for it, and when there is a disk that there was not; otherwise after a tenth of what the machine has been up, from half a minute to five: the disk is checked each time, and the journal tells of it
ExecStart=/bin/sh -c 'rm /run/coracle/unplugged 2>/dev/null && exit; disks=\$\$(echo /sys/class/block/*); read -r up rest </proc/uptime; s=\$\$((\$\${up%%.*} / 10)); s=\$\$((s < 30 ? 30 : s > 300 ? 300 : s)); while [ \$\$s -gt 0 ] && [ "\$\$disks" = "\$\$(echo /sys/class/block/*)" ]; do sleep 2; s=\$\$((s - 2)); done'
ExecStart=/bin/systemctl --no-block start coracle.service
UNIT
  [ ! -d /run/systemd/system ] || systemctl daemon-reload
  systemctl --quiet enable coracle
}

# What manages the machine's network leaves that of pods alone, even where a file of somebody's says `Name=*`: systemd-networkd takes pods' interfaces off their bridge, and addresses and routes
# away; NetworkManager empties them when networking is switched off. The names are those of node/os/pod-bridge.ts, node/network/vxlan.ts and the CNI plugin bridge.
leave_pods_network_alone() {
  hex='[0-9a-f]'
  if [ -w "${NETWORKD_FILE%/*}" ]; then
    replace "$NETWORKD_FILE" <<NETWORK
# by Coracle
[Match]
Name=cni0 coracle-vxlan veth$hex$hex$hex$hex$hex$hex$hex$hex

[Link]
Unmanaged=yes
NETWORK
    networkctl reload >/dev/null 2>&1 || true # it may not run
  fi
  if [ -w "${NETWORK_MANAGER_FILE%/*}" ]; then
    replace "$NETWORK_MANAGER_FILE" <<NETWORK
# by Coracle
[keyfile]
unmanaged-devices+=interface-name:cni0;interface-name:coracle-vxlan
NETWORK
    nmcli general reload conf >/dev/null 2>&1 || true
  fi
}

start_systemd() {
  systemctl --no-block restart coracle
  FOLLOW="journalctl -fu coracle" RESTART="systemctl restart coracle" STOP="systemctl stop coracle"
  say "started the systemd service coracle"
}

enable_openrc() {
  replace "$INIT" <<INIT
#!/sbin/openrc-run
description="Coracle: Kubernetes for the edge"
supervisor=supervise-daemon
command=$LIB_DIR/service
command_args=exec
output_log=$LOG_FILE
error_log=$LOG_FILE
pidfile=/run/coracle.pid
respawn_delay=5
respawn_max=0

depend() {
  after network-online
  want cgroups
}
INIT
  chmod 755 "$INIT"
  rm -f /etc/logrotate.d/coracle # of before the service cut its log itself
  rc-update -q add coracle default
}

start_openrc() {
  rc-service -q coracle restart
  FOLLOW="tail -f $LOG_FILE" RESTART="rc-service coracle restart" STOP="rc-service coracle stop"
  say "started the OpenRC service coracle"
}

enable_background() { :; }

start_background() {
  "$LIB_DIR/service" restart
  FOLLOW="tail -f $LOG_FILE" RESTART="$LIB_DIR/service restart" STOP="$LIB_DIR/service stop"
  say "started in the background, supervised: neither systemd nor OpenRC runs here, so it must be started again after a reboot ($LIB_DIR/service start)"
}

# What starts it at boot: of what runs here, or else of what is installed in an image that boots later.
service_manager() {
  if [ -d /run/systemd/system ] && have systemctl; then echo systemd
  elif [ -d /run/openrc ] && have rc-service; then echo openrc
  elif [ "$SKIP_START" = true ] && have systemctl; then echo systemd
  elif [ "$SKIP_START" = true ] && have rc-update; then echo openrc
  else echo background; fi
}

# A clock may be set while this runs, as one that begins in 1970 is by the first server of time that answers: how long something takes, the time since boot tells.
uptime_s() {
  read -r up _ </proc/uptime
  echo "${up%%.*}"
}

start() {
  CURSOR=$(journalctl -q -b -n 0 --show-cursor 2>/dev/null | sed -n 's/^-- cursor: //p') LOG_BYTES=0
  [ ! -f "$LOG_FILE" ] || LOG_BYTES=$(wc -c <"$LOG_FILE")
  "start_$MANAGER"
}

# wait_for COMPLAINT COMMAND…: until the command succeeds.
wait_for() {
  complaint=$1
  shift
  until "$@" >/dev/null 2>&1; do
    [ -z "${REFUSED:-}" ] || fail "$REFUSED"
    [ "$(uptime_s)" -lt "$DEADLINE" ] || { FAILED=$complaint; return 1; }
    sleep 0.3 2>/dev/null || sleep 1
  done
}

# Once the node has unpacked it, without a detour: a slow machine has better to do now.
run_kubectl() {
  kubectl=$DATA_DIR/agent/current/bin/kubectl
  if [ -x "$kubectl" ]; then "$kubectl" --request-timeout 5s "$@"
  else "$BIN_DIR/coracle" kubectl --request-timeout 5s "$@"; fi
}

# On a server in the administrator's name, on an agent in the node's, which may read its own Node, at the first server that answers.
kubectl_() {
  [ "$MODE" = agent ] || { run_kubectl --kubeconfig "$KUBECONFIG_FILE" "$@"; return; }
  tls=$DATA_DIR/agent/tls
  for server in $(printf '%s' "$SERVERS" | tr ',' ' '); do
    run_kubectl --kubeconfig /dev/null --server "$server" --certificate-authority "$tls/server-ca.crt" --client-certificate "$tls/client-kubelet.crt" --client-key "$tls/client-kubelet.key" "$@" && return
  done
  return 1
}

# A node with a runtime of its own unpacks it, and kubectl with it.
tools_ready() { [ "$DISABLE_AGENT" = true ] || [ -n "$RUNTIME" ] || [ -x "$DATA_DIR/agent/current/bin/kubectl" ]; }
server_ready() { [ -s "$KUBECONFIG_FILE" ] && [ "$(kubectl_ get --raw /readyz)" = ok ]; }
# node_condition FIELD: of the condition Ready.
node_condition() { kubectl_ get node "$NODE_NAME" -o "jsonpath={.status.conditions[?(@.type==\"Ready\")].$1}"; }
node_ready() { [ "$(node_condition status)" = True ]; }

# What it has said of its ends, each with its causes, on one line; of the log that is read.
last_words() {
  awk '/^coracle: / { if (words != "") print words; words = substr($0, 10); next } /^  (because|what to do): / && words != "" { sub(/^ +/, ""); words = words "; " $0 } END { if (words != "") print words }'
}

# An agent that cannot join ends at once, saying why: a wrong token, a name that is taken.
unless_refused() {
  "$@" && return
  REFUSED=$(log_since_start | last_words | tail -n 1)
  return 1
}
# A server that ends twice with the same words will not come up: a flag that cannot be, a port that is taken. Once may be a passing fault.
unless_ending() {
  "$@" && return
  REFUSED=$(log_since_start | last_words | sort | uniq -d | tail -n 1)
  return 1
}
has_joined() { [ -s "$DATA_DIR/agent/tls/client-kubelet.crt" ]; }
runtime_ready() { [ -n "$RUNTIME" ] || [ -S "$DATA_DIR/agent/run/containerd.sock" ]; }
node_registered() { [ "$(kubectl_ get node "$NODE_NAME" -o name)" = "node/$NODE_NAME" ]; }
# Why the last server that was asked has not let it in.
join_error() { log_since_start | sed -nE '/"not joined yet/s/.*"error":"(([^"\\]|\\.)*)".*/\1/p' | tail -n 1; }

# Of this boot: to a clock that begins in 1970 all of those before are yet to come.
log_since_start() {
  if [ -d /run/systemd/system ]; then journalctl -q -b -u coracle -o cat ${CURSOR:+"--after-cursor=$CURSOR"}
  elif [ -f "$LOG_FILE" ]; then tail -c "+$((LOG_BYTES + 1))" "$LOG_FILE"; fi
}

# It starts nothing before it has joined.
wait_for_agent() {
  wait_for "the node $NODE_NAME has not joined" unless_refused has_joined && wait_for "the container runtime is not ready" unless_refused runtime_ready &&
    wait_for "the node $NODE_NAME is not registered at $SERVERS" unless_refused node_registered && wait_for "the node $NODE_NAME is not Ready" unless_refused node_ready
}

wait_for_server() {
  wait_for "what is being unpacked is not ready" unless_ending tools_ready && wait_for "the API server is not ready" unless_ending server_ready && { [ "$DISABLE_AGENT" = true ] || wait_for "the node $NODE_NAME is not Ready" unless_ending node_ready; }
}

wait_until_ready() {
  started=$(uptime_s)
  DEADLINE=$((started + TIMEOUT)) FAILED=
  if [ "$MODE" = agent ]; then wait_for_agent; else wait_for_server; fi || {
    say "$FAILED after $TIMEOUT s. Look at: $FOLLOW"
    case $FAILED in
      *' Ready') say "it says: $(node_condition message 2>/dev/null)" ;;
      *' joined') say "it says: $(join_error)" ;;
    esac
    [ ! -f "$LOG_FILE" ] || tail -n 20 "$LOG_FILE" >&2
    exit 1
  }
}

# A node that is Ready may still take no pods.
tell_pressure() {
  kubectl_ get node "$NODE_NAME" -o 'jsonpath={range .status.conditions[?(@.status=="True")]}{.type}{"\n"}{end}' 2>/dev/null | while read -r condition; do
    case $condition in
      DiskPressure) say "the disk is too full for pods: nothing is started on this node, and images go. Free some, or give the kubelet other limits: --kubelet-arg 'eviction-hard=nodefs.available<5%,imagefs.available<5%,memory.available<100Mi'" ;;
      MemoryPressure | PIDPressure) say "the node reports $condition: nothing is started on it until there is more" ;;
    esac
  done
}

# Whether there is a node here that is not taken away. Of one with a container runtime and a network of others nothing but its kubelet's directory tells.
is_node_left() {
  [ -e "$DATA_DIR/agent/run/boot-id" ] || [ -e "$DATA_DIR/agent/network/boot-id" ] || { [ -d "$DATA_DIR/agent/kubelet" ] && [ ! -e "$DATA_DIR/agent/taken-away" ]; }
}

# A machine that was a node has its containers still, and nobody looks after them any more.
leave_node() {
  if [ "$DISABLE_AGENT" != true ]; then rm -f "$DATA_DIR/agent/taken-away"; return; fi
  is_node_left || return 0
  "$LIB_DIR/uninstall" --node || return 0
  [ -z "$(kubectl_ get node "$NODE_NAME" --ignore-not-found -o name 2>/dev/null)" ] || say "the node $NODE_NAME is still in the cluster, and its pods with it. If it is not to come back: coracle kubectl delete node $NODE_NAME"
}

report() {
  if [ "$MODE" = agent ]; then
    say "the node $NODE_NAME is Ready after $(($(uptime_s) - started)) s. On the server: coracle kubectl get nodes"
    tell_pressure
  else
    say "ready after $(($(uptime_s) - started)) s"
    [ "$DISABLE_AGENT" = true ] || kubectl_ get nodes -o wide || true # it was ready: a slow answer is no failure
    [ "$DISABLE_AGENT" = true ] || tell_pressure
    cat <<NEXT

What next:
  export KUBECONFIG=$KUBECONFIG_FILE
  coracle kubectl get pods -A                      a kubectl of your own works as well
  coracle kubectl apply -f FILE
  coracle images import FILE.tar                   images without a registry, on each machine; or put archives in $DATA_DIR/agent/images/
  coracle token create --print-join-command        prints what joins another Linux machine, to be run there as root
NEXT
  fi
  cat <<NEXT
  $FOLLOW
  $RESTART      $STOP      (containers go on in the meantime)
  coracle-uninstall                                removes all of it
NEXT
}

main() {
  check_machine
  lock
  bring_binary
  check_libraries
  choose_settings "$@"
  install_binary
  # shellcheck disable=SC2119
  configure
  leave_pods_network_alone
  MANAGER=$(service_manager)
  "enable_$MANAGER"
  sync
  [ "$SKIP_START" != true ] || { say "installed, not started$([ "$MANAGER" = background ] || echo "; the next boot starts it")"; exit 0; }
  start
  unlock # who sees it wait in vain may change the settings
  wait_until_ready
  leave_node
  report
}

main "$@"
