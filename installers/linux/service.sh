#!/bin/sh
# Runs Coracle where no service manager does: service start | stop | restart | status. Installed as /usr/local/lib/coracle/service; what it runs is in /etc/coracle.
#
#   start    a supervisor in a session of its own, which starts coracle, and starts it again when it ends: after 1 s, later up to 30 s if it keeps failing
#   stop     ends both; containers and their runtime go on
#   exec     becomes coracle itself, for a supervisor that is not ours (OpenRC); the log is cut meanwhile, for logrotate is not everywhere (not on Alpine)
#
# /run/coracle.pid is coracle's process, /run/coracle-supervisor.pid its supervisor's. The log is cut at 10 MB, the part before kept once.
set -eu

PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin # as install.sh
BIN_DIR=/usr/local/bin
ENV_FILE=/etc/coracle/coracle.env
ARGS_FILE=/etc/coracle/coracle.args
LOG_FILE=/var/log/coracle.log
PID_FILE=/run/coracle.pid
SUPERVISOR_FILE=/run/coracle-supervisor.pid
LOG_BYTES_MAX=10485760
STABLE_SECONDS=60

log() { echo "[coracle] $(date -u +%Y-%m-%dT%H:%M:%SZ) $*"; }

# The process in a pid file, if it is what we think it is.
running() {
  [ -f "$1" ] || return 1
  pid=$(cat "$1")
  [ -n "$pid" ] && [ -d "/proc/$pid" ] && tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -q "$2" && echo "$pid"
}
supervisor() { running "$SUPERVISOR_FILE" "service supervise"; }
child() { running "$PID_FILE" "$BIN_DIR/coracle"; }

become_coracle() {
  set -a
  # shellcheck source=/dev/null
  [ ! -f "$ENV_FILE" ] || . "$ENV_FILE"
  set +a
  for module in overlay br_netfilter nf_tables; do modprobe -q "$module" 2>/dev/null || true; done
  eval "set -- $(cat "$ARGS_FILE")"
  exec "$BIN_DIR/coracle" "$@"
}

trim_log() {
  [ ! -f "$LOG_FILE" ] || [ "$(wc -c <"$LOG_FILE")" -le "$LOG_BYTES_MAX" ] || { cp "$LOG_FILE" "$LOG_FILE.1" && : >"$LOG_FILE"; }
}

# Until process $1 is gone. Takes the `sleep` it waits for with it when it is ended.
trim_log_while() {
  nap=
  trap 'kill "$nap" 2>/dev/null || true; exit 0' TERM
  while [ -d "/proc/$1" ]; do
    trim_log
    sleep 60 &
    nap=$!
    wait "$nap" || true
  done
}

# As long as it is a copy of ours, which has yet to become another program, a signal may be lost on it.
end_child() {
  [ -n "$child" ] || return 0
  while tr '\0' ' ' <"/proc/$child/cmdline" 2>/dev/null | grep -q "service supervise"; do :; done
  kill "$child" 2>/dev/null || true
}

supervise() {
  echo $$ >"$SUPERVISOR_FILE"
  child='' stopping='' delay=1
  trap 'stopping=yes; end_child' TERM INT
  trim_log_while $$ &
  trimmer=$!
  while [ -z "$stopping" ]; do
    started=$(date +%s)
    "$0" become &
    child=$!
    [ -z "$stopping" ] || end_child # told so before there was one
    echo "$child" >"$PID_FILE"
    status=0
    wait "$child" || status=$?
    while kill -0 "$child" 2>/dev/null; do wait "$child" || status=$?; done # wait also ends when we get a signal
    child=''
    [ -z "$stopping" ] || break
    [ $(($(date +%s) - started)) -lt "$STABLE_SECONDS" ] || delay=1
    log "coracle ended with status $status, starting it again in $delay s"
    sleep "$delay" &
    wait $! || true
    delay=$((delay * 2)); [ "$delay" -le 30 ] || delay=30
  done
  kill "$trimmer" 2>/dev/null || true
  rm -f "$PID_FILE" "$SUPERVISOR_FILE"
}

start() {
  if pid=$(supervisor); then echo "coracle is already running, supervised by process $pid"; return; fi
  touch "$LOG_FILE"
  chmod 640 "$LOG_FILE"
  setsid "$0" supervise </dev/null >>"$LOG_FILE" 2>&1 &
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    if supervisor >/dev/null; then return; fi
    sleep 0.2 2>/dev/null || sleep 1
  done
  echo "coracle cannot be started, see $LOG_FILE" >&2
  exit 1
}

# ended PID SECONDS: waits for a process to end.
ended() {
  tries=$(($2 * 5))
  while [ -d "/proc/$1" ] && ! grep -q '^State:[[:space:]]*Z' "/proc/$1/status" 2>/dev/null; do
    [ "$tries" -gt 0 ] || return 1
    tries=$((tries - 1))
    sleep 0.2 2>/dev/null || { sleep 1; tries=$((tries - 4)); }
  done
}

stop() {
  if pid=$(supervisor); then
    main=$(child) || main=''
    kill "$pid" 2>/dev/null || true
    [ -z "$main" ] || ended "$main" 30 || kill -9 "$main" 2>/dev/null || true
    ended "$pid" 5 || kill -9 "$pid" 2>/dev/null || true
  elif pid=$(child); then # its supervisor was killed
    kill "$pid" 2>/dev/null || true
    ended "$pid" 30 || kill -9 "$pid" 2>/dev/null || true
  fi
  rm -f "$PID_FILE" "$SUPERVISOR_FILE"
}

case ${1:-} in
  start) start ;;
  stop) stop ;;
  restart) stop; start ;;
  status) if pid=$(child); then echo "coracle is running, process $pid"; else echo "coracle is not running"; exit 3; fi ;;
  supervise) supervise ;;
  exec) trim_log_while $$ & become_coracle ;;
  become) become_coracle ;;
  *) echo "usage: $0 start | stop | restart | status" >&2; exit 2 ;;
esac
