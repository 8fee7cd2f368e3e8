#!/bin/bash
# A machine of its own for a test: namespaces for processes, mounts, network, cgroups and host name, and a tmpfs wherever software insists on a fixed path.
#
#   host.sh up NAME [ADDRESS]       make it; with an address on the test's switch
#   host.sh exec NAME COMMAND…      run a command on it
#   host.sh down NAME               end it, with everything that runs on it, and take away what it leaves
#   host.sh reboot NAME [ADDRESS]   pull the plug and start it again: what is on its disk ($LAB/NAME) stays
#   host.sh plug NAME ADDRESS       give it a cable to the test's switch, if it has been started without
#   host.sh cable NAME out|in       pull that cable, put it in again
#   host.sh switch up|down          the network that joins hosts: 172.30.0.0/24 in a namespace of its own
#   host.sh sweep                   end whatever of the lab there is: what an interrupted test has left
#
# State is in $LAB (default /tmp/coracle-lab); NAME has up to 8 characters. What dies with the host's first process: all its processes, mounts and network. What does not: its cgroups.
set -eu
LAB=${LAB:-/tmp/coracle-lab}
HERE=$(cd "$(dirname "$0")" && pwd)
ID=$(printf %s "$LAB" | cksum | cut -d" " -f1)   # two labs on one machine share no name
PREFIX=coracle-lab-$ID
LINK=c$(printf %x $((ID % 1048576)))

controllers() { for c in cpu cpuacct cpuset memory devices freezer blkio pids systemd unified; do [ -d "/sys/fs/cgroup/$c" ] && echo "$c"; done; :; }
is_v2() { [ -f /sys/fs/cgroup/cgroup.controllers ]; }

cgroups_make() {
  if is_v2; then mkdir -p "/sys/fs/cgroup/$PREFIX-$1"; return; fi
  for c in $(controllers); do mkdir -p "/sys/fs/cgroup/$c/$PREFIX-$1"; done
  local cpuset=/sys/fs/cgroup/cpuset/$PREFIX-$1
  if [ -d "$cpuset" ]; then
    cat /sys/fs/cgroup/cpuset/cpuset.cpus > "$cpuset/cpuset.cpus"
    cat /sys/fs/cgroup/cpuset/cpuset.mems > "$cpuset/cpuset.mems"
    echo 1 > "$cpuset/cgroup.clone_children"
  fi
}

cgroups_join() {
  if is_v2; then echo "$BASHPID" > "/sys/fs/cgroup/$PREFIX-$1/cgroup.procs"; return; fi
  for c in $(controllers); do echo "$BASHPID" > "/sys/fs/cgroup/$c/$PREFIX-$1/cgroup.procs"; done
}

cgroups_remove() {
  local g left
  for _ in $(seq 200); do
    left=
    for g in /sys/fs/cgroup/"$PREFIX-$1" /sys/fs/cgroup/*/"$PREFIX-$1"; do
      [ -d "$g" ] || continue
      find "$g" -depth -type d -exec rmdir {} + 2>/dev/null || left=$g
    done
    [ -z "$left" ] && return
    sleep 0.1
  done
  echo "cgroup left: $left" >&2
}

wait_for() { for _ in $(seq 3000); do [ -s "$1" ] && return; sleep 0.02; done; echo "no $1" >&2; return 1; }

# One host at a time looks whether there is a switch, and makes it.
switch_up() {
  mkdir -p "$LAB"
  ( flock 9; switch_made ) 9> "$LAB/switch.lock"
}

switch_made() {
  [ -s "$LAB/switch.pid" ] && kill -0 "$(cat "$LAB/switch.pid")" 2>/dev/null && return
  rm -f "$LAB/switch.pid"
  setsid unshare --net sh -c "ip link set lo up; ip link add br0 type bridge; ip link set br0 up; ip addr add 172.30.0.254/24 dev br0; echo \$\$ > $LAB/switch.pid; exec sleep infinity" </dev/null >/dev/null 2>&1 9>&- &
  wait_for "$LAB/switch.pid"
}

up() {
  local name=$1 address=${2:-} dir=$LAB/$1
  mkdir -p "$dir"
  rm -f "$dir/ready"
  cgroups_make "$name"
  exec 8</var/lib && flock --shared 8   # its mount points are not taken away between being made and being used
  (
    cgroups_join "$name"
    exec 8<&- setsid unshare --mount --net --pid --uts --ipc --cgroup --fork --kill-child --mount-proc --propagation private "$HERE/host-init.sh" "$name" "$dir" </dev/null >"$dir/init.log" 2>&1
  ) &
  local outer=$!
  wait_for "$dir/ready" || { cat "$dir/init.log" >&2; return 1; }
  exec 8<&-
  tr -d ' ' < "/proc/$outer/task/$outer/children" > "$dir/pid"
  [ -z "$address" ] || plug "$name" "$address"
}

plug() {
  local name=$1 address=$2 pid
  switch_up
  pid=$(cat "$LAB/$name/pid")
  nsenter -t "$(cat "$LAB/switch.pid")" -n ip link del "$LINK-$name" 2>/dev/null || :   # of before a reboot: the kernel takes its time
  ip link add "$LINK-$name" type veth peer name eth0 netns "$pid"
  ip link set "$LINK-$name" netns "$(cat "$LAB/switch.pid")"
  nsenter -t "$(cat "$LAB/switch.pid")" -n sh -c "ip link set $LINK-$name master br0 up"
  nsenter -t "$pid" -n sh -c "ip link set eth0 up; ip addr add $address/24 dev eth0; ip route add default via 172.30.0.254"
}

run() {
  local name=$1; shift
  local pid; pid=$(cat "$LAB/$name/pid")
  cgroups_join "$name"
  exec nsenter -t "$pid" -a sh -c 'cd / && exec "$@"' sh "$@"
}

end() {
  local name=$1 pid
  if [ -s "$LAB/$name/pid" ]; then
    pid=$(cat "$LAB/$name/pid")
    kill -KILL "$pid" 2>/dev/null || true
    for _ in $(seq 3000); do [ -d "/proc/$pid" ] || break; sleep 0.02; done
  fi
  cgroups_remove "$name"
}

down() {
  local name=$1
  end "$name"
  rm -rf --one-file-system "${LAB:?}/$name"
  # Mount points, if we had to make them. Not while another host is up, of whichever lab, or coming up: removing one here takes away what is mounted on it there.
  ( flock --nonblock 8 && ! pgrep -f "$HERE/host-init.sh|test/cluster/host-init.sh" >/dev/null && rmdir /etc/cni /var/lib/cni /opt/cni /var/lib/kubelet /etc/coracle /var/lib/coracle 2>/dev/null || true ) 8</var/lib
}

switch_down() {
  [ -s "$LAB/switch.pid" ] && kill -KILL "$(cat "$LAB/switch.pid")" 2>/dev/null || true
  rm -f "$LAB/switch.pid" "$LAB/switch.lock"
  rmdir "$LAB" 2>/dev/null || true
}

sweep() {
  local dir
  find /sys/fs/cgroup -path "*/$PREFIX-*" -name cgroup.procs -exec cat {} + 2>/dev/null | sort -u | xargs -r kill -KILL 2>/dev/null || true   # one that was just coming up, too
  for dir in "$LAB"/*/; do [ -d "$dir" ] && down "$(basename "$dir")"; done
  switch_down
}

case ${1:-} in
  up) up "$2" "${3:-}" ;;
  exec) shift; run "$@" ;;
  down) down "$2" ;;
  reboot) end "$2"; up "$2" "${3:-}" ;;
  plug) plug "$2" "$3" ;;
  cable) nsenter -t "$(cat "$LAB/switch.pid")" -n ip link set "$LINK-$2" "$([ "$3" = in ] && echo up || echo down)" ;;
  switch) "switch_$2" ;;
  sweep) sweep ;;
  *) sed -n '2,13s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
