#!/bin/sh
# Removes Coracle from this machine: service, containers, their processes, mounts, network interfaces, nftables tables, cgroups, and every file. Prints what it removed.
# It needs neither a working executable nor a complete installation, and can be repeated. Installed as coracle-uninstall.
#
# Only what is Coracle's own is touched: processes that run from its data directory, what is mounted below it, interfaces and tables by their names.
#
#   UNINSTALL_CORACLE_KEEP_DATA=true    leaves the data directory (the cluster's objects, images, volumes) and /etc/coracle
#   --node                              takes away the node alone of a server that runs with --disable-agent: its containers, network and mounts; its images and the data of its volumes stay
#   --going-down                        for coracle.service, whenever it has ended: if the machine goes down, ends containers that systemd would wait for in vain
#   --lost-disk                         for coracle.service, whenever it has ended: removes nothing but what still runs from a disk that was unplugged, and its mounts, and has it waited for
set -u

PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin # as install.sh
BIN_DIR=/usr/local/bin
LIB_DIR=/usr/local/lib/coracle
ETC=/etc/coracle
KEEP_DATA=${UNINSTALL_CORACLE_KEEP_DATA:-false}

[ "$(id -u)" = 0 ] || { echo "run it as root: sudo $0" >&2; exit 1; }
data_dir=/var/lib/coracle kubeconfig=$ETC/coracle.yaml
# shellcheck source=/dev/null
[ ! -f "$ETC/installed" ] || . "$ETC/installed"
KEEP_DIRECTORY=
[ ! -L "$data_dir" ] || KEEP_DIRECTORY=true # where the link leads to: without it nothing could be installed there again
[ ! -d "$data_dir" ] || data_dir=$(CDPATH='' cd -- "$data_dir" && pwd -P)
case $data_dir in /*/*) ;; *) echo "refusing: the data directory is $data_dir" >&2; exit 1 ;; esac
TOOLS=$data_dir/agent/current/bin
REMOVED=0 CONTAINERS=''

removed() { echo "removed $*"; REMOVED=$((REMOVED + 1)); }
have() { command -v "$1" >/dev/null 2>&1; }
# Our own tools, else the machine's.
tool() {
  if [ -x "$TOOLS/$1" ]; then echo "$TOOLS/$1"; else command -v "$1" || echo false; fi
}

# What is in a directory, on its own file system. A busybox has rm without --one-file-system, and perhaps find without -delete, which alone comes to where no path leads: a pod may make directories so deep.
empty() {
  if find /dev/null ! -name null -delete 2>/dev/null; then find "$1" -xdev -mindepth 1 -delete; return; fi
  find "$1" -xdev -depth -mindepth 1 ! -type d -exec rm -f {} +
  find "$1" -xdev -depth -mindepth 1 -type d -exec rmdir {} +
}

remove() {
  for path in "$@"; do
    if [ -d "$path" ] && [ ! -L "$path" ]; then empty "$path" && rmdir "$path" && removed "$path"
    elif [ -e "$path" ] || [ -L "$path" ]; then rm -f -- "$path" && removed "$path"; fi
  done
}

command_line() { { tr '\0' ' ' <"/proc/$1/cmdline"; } 2>/dev/null; }
is_zombie() { grep -q '^State:[[:space:]]*[ZX]' "/proc/$1/status" 2>/dev/null; }

# end SIGNAL SECONDS PID…: signals them, waits, kills what is left.
end() {
  signal=$1 tries=$(($2 * 5))
  shift 2
  [ $# -gt 0 ] || return 0
  for pid in "$@"; do
    what=$(command_line "$pid" | cut -c1-80)
    kill "-$signal" "$pid" 2>/dev/null && removed "process $pid ($what)"
  done
  for pid in "$@"; do
    while [ -d "/proc/$pid" ] && ! is_zombie "$pid"; do
      [ "$tries" -gt 0 ] || kill -9 "$pid" 2>/dev/null
      tries=$((tries - 1))
      [ "$tries" -gt -50 ] || break
      sleep 0.2 2>/dev/null || sleep 1
    done
  done
}

# processes NAME WORDS: those of that name with these words in their command line.
processes() {
  grep -lsF -e "$1" /proc/[0-9]*/cmdline | while IFS=/ read -r _ _ pid _; do
    line=$(command_line "$pid")
    program=${line%% *}
    [ "${program##*/}" = "$1" ] || continue
    case $line in *" $2"*) echo "$pid" ;; esac
  done
}

# Processes whose program is this file; also one that was replaced while it ran.
running_program() {
  # shellcheck disable=SC2012 # one process for all of them; only ends of lines are looked at
  ls -l /proc/[0-9]*/exe 2>/dev/null | while read -r line; do
    case $line in *" -> $1" | *" -> $1 (deleted)") line=${line%%/exe -> *} && echo "${line##*/}" ;; esac
  done
}

stop_service() {
  if [ -f /etc/systemd/system/coracle.service ] && have systemctl; then
    systemctl --quiet disable coracle 2>/dev/null
    systemctl stop coracle coracle-retry 2>/dev/null
  fi
  if [ -f /etc/init.d/coracle ] && have rc-service; then
    rc-service -q coracle stop 2>/dev/null
    rc-update -q del coracle 2>/dev/null
  fi
  # shellcheck disable=SC2046 # lists of numbers
  {
    end TERM 30 $(processes sh "$LIB_DIR/service supervise")
    end TERM 30 $(running_program "$BIN_DIR/coracle")
  }
}

remove_units() {
  remove /etc/init.d/coracle /etc/logrotate.d/coracle
  for unit in /etc/init.d/coracle /etc/systemd/system/coracle.service /etc/systemd/system/coracle-retry.service; do remove "$unit.new"; done # of an installer that a power cut ended
  if [ -f /etc/systemd/system/coracle.service ]; then
    remove /etc/systemd/system/coracle.service /etc/systemd/system/coracle-retry.service
    ! have systemctl || systemctl daemon-reload 2>/dev/null
    ! have systemctl || systemctl reset-failed coracle 2>/dev/null
  fi
}

# containerd first, or it would start again what is missing. Then the containers, by runc, which also removes their cgroups; then whatever still is in the cgroups they were in.
stop_containers() {
  # shellcheck disable=SC2046 # lists of numbers
  end TERM 10 $(processes containerd "--config $data_dir/agent/")
  shims=$(processes containerd-shim-runc-v2 "-address $data_dir/agent/run/")
  groups=
  for shim in $shims; do
    # shellcheck disable=SC2013 # numbers on one line
    for container in $(cat "/proc/$shim/task/"*/children 2>/dev/null); do groups="$groups $(cgroups_of "$container")"; done
  done
  for container in "$data_dir"/agent/run/runc/*/*; do
    [ -d "$container" ] || continue
    namespace=${container%/*} id=${container##*/}
    namespace=${namespace##*/}
    groups="$groups $(sed -n 's/.*"cgroup_paths":{\([^}]*\)}.*/\1/p' "$container/state.json" 2>/dev/null | tr ',' '\n' | sed -n 's/^"[^"]*":"\(.*\)"$/\1/p' | tr '\n' ' ')"
    [ ! -x "$TOOLS/runc" ] || "$TOOLS/runc" --root "$data_dir/agent/run/runc/$namespace" delete --force "$id" 2>/dev/null
    removed "container $id"
    CONTAINERS="$CONTAINERS $id"
  done
  # shellcheck disable=SC2046,SC2086 # lists of numbers
  {
    for group in $groups; do end KILL 5 $(cat "$group/cgroup.procs" 2>/dev/null); done
    end KILL 5 $(processes containerd-shim-runc-v2 "-address $data_dir/agent/run/")
  }
  for group in $groups; do remove_cgroup "$group"; done
  remove_pod_cgroups
}

# Where a process is, in every hierarchy; never a hierarchy's root.
cgroups_of() {
  while IFS=: read -r _ controllers path; do
    [ "$path" != / ] || continue
    for directory in "/sys/fs/cgroup${controllers:+/}${controllers#name=}$path" "/sys/fs/cgroup/unified$path"; do
      [ ! -d "$directory" ] || echo "$directory"
    done
  done <"/proc/$1/cgroup" 2>/dev/null
}

# A container's cgroup, and its pod's, QoS class's and so on while they are empty.
remove_cgroup() {
  group=$1
  while case $group in */kubepods*) true ;; *) false ;; esac; do
    if [ -d "$group" ]; then rmdir "$group" 2>/dev/null || return 0; removed "cgroup $group"; fi
    group=${group%/*}
  done
}

# Pods' cgroups without a container in them. rmdir leaves alone what is in use.
remove_pod_cgroups() {
  for top in /sys/fs/cgroup/kubepods /sys/fs/cgroup/*/kubepods; do
    [ -d "$top" ] || continue
    find "$top" -depth -type d -exec rmdir {} \; 2>/dev/null
    [ -d "$top" ] || removed "cgroup $top"
  done
}

# What is busy is detached, and so is what nobody answers for any more: another machine's disk, whose unmounting would wait for it.
detach() {
  if have timeout; then timeout -s KILL 10 umount "$1" 2>/dev/null; else umount "$1" 2>/dev/null; fi || umount -l "$1" 2>/dev/null
}

# unmount_all [DIRECTORY]: deepest and newest first.
unmount_all() {
  awk '{ print $5 }' /proc/self/mountinfo | while read -r target; do printf '%b\n' "$target"; done | awk -v prefix="${1:-$data_dir}/" 'index($0, prefix) == 1' | sed '1!G;h;$!d' | while read -r target; do
    detach "$target" || continue
    echo "removed mount $target"
  done
}

# The bridge of node/network and what hangs on it, every interface and table that is named after us, and the tables of the CNI plugins.
remove_network() {
  ip=$(tool ip) nft=$(tool nft)
  for path in /sys/class/net/cni0/brif/* /sys/class/net/cni0 /sys/class/net/coracle*; do
    name=${path##*/}
    if [ -d "$path" ] && "$ip" link delete "$name" 2>/dev/null; then removed "interface $name"; fi
  done
  # routes to other nodes' pods and to Services, and the rule that asks for these (node/network/host-gw.ts, service-routes.ts)
  for family in -4 -6; do
    routes=$("$ip" "$family" route show table all proto 171 2>/dev/null)
    if [ -n "$routes" ] && "$ip" "$family" route flush table all proto 171 2>/dev/null; then removed "routes to pods and Services"; fi
    if "$ip" "$family" rule delete priority 40171 2>/dev/null; then removed "routing rule 40171"; fi
  done
  # the address of a machine on no network (node/network/lone-address.ts)
  for address in 192.0.2.1/32 2001:db8::1/128; do
    if "$ip" address delete "$address" dev lo 2>/dev/null; then removed "address $address of lo"; fi
  done
  tables=$("$nft" list tables 2>/dev/null | while read -r _ family name; do
    case $name in
      coracle* | cni_hostport | cni_plugins_masquerade) echo "$family $name" ;;
    esac
  done)
  while read -r family name; do
    if "$nft" delete table "$family" "$name" 2>/dev/null; then removed "nftables table $family $name"; fi
  done <<TABLES
$tables
TABLES
  # what firewalld was told (node/network/firewalld.ts)
  if have firewall-cmd; then
    find "$data_dir/agent" -maxdepth 3 -name firewalld -type f 2>/dev/null | while read -r file; do
      while IFS='	' read -r zone option; do
        if firewall-cmd -q --zone="$zone" "$option" </dev/null 2>/dev/null; then removed "firewalld's $zone ${option#--remove-}"; fi
      done <"$file"
    done
  fi
  # rules of ours in the machine's own chains (node/network/forward.ts)
  "$nft" -a -t list ruleset 2>/dev/null | awk '$1 == "table" { at = $2 " " $3 } $1 == "chain" { chain = $2 } /comment "coracle pods/ { print at, chain, $NF }' | while read -r family table chain handle; do
    "$nft" delete rule "$family" "$table" "$chain" handle "$handle" && removed "nftables rule $family $table $chain handle $handle"
  done
  # and in those of iptables of the time before nftables (node/network/legacy-iptables.ts)
  for name in iptables ip6tables; do
    grep -qx filter "/proc/net/${name%tables}_tables_names" 2>/dev/null || continue
    for program in "$name-legacy" "$name"; do
      command -v "$program" >/dev/null || continue
      ! "$program" -V | grep -q nf_tables || continue
      "$program" -S | sed -n 's/^-A \(.*--comment "coracle pods .*\)/-D \1/p' | while read -r rule; do
        printf '%s\n' "$rule" | xargs "$program" -w 5 && removed "rule of $program $rule"
      done
      break
    done
  done
}

# The mount that the data directory is on, its device's number, and what is mounted.
data_mount() {
  printf '%s/\n' "$data_dir" | sed 's/ /\\040/g' | awk 'NR == FNR { path = $0; next } {
    at = $5 == "/" ? "/" : $5 "/"
    if (index(path, at) == 1 && length(at) >= length(best)) { best = at; for (i = 7; $i != "-"; i++); line = $5 " " $3 " " $(i + 2) }
  } END { print line }' - /proc/self/mountinfo
}

# Whether this process, or one that it has started, does anything on SIGTERM but end: it has a handler, or blocks it to wait for it.
heeds_term() {
  ! cat "/proc/$1/task/"*/status 2>/dev/null | grep -qE '^Sig(Blk|Cgt):.*[4-7c-f]...$' || return 0
  # shellcheck disable=SC2013 # numbers on one line
  for child in $(cat "/proc/$1/task/"*/children 2>/dev/null); do
    ! heeds_term "$child" || return 0
  done
  return 1
}

# When a machine goes down systemd sends SIGTERM to what still runs and waits for it, a minute and a half. A container's first process that has no handler for it does not get it: what could only be
# killed at last is killed at once.
end_heedless() {
  [ "$(systemctl is-system-running 2>/dev/null)" = stopping ] || return 0
  for shim in $(processes containerd-shim-runc-v2 "-address $data_dir/agent/run/"); do
    # shellcheck disable=SC2013 # numbers on one line
    for container in $(cat "/proc/$shim/task/"*/children 2>/dev/null); do
      heeds_term "$container" || kill -9 "$container" 2>/dev/null
    done
  done
}

# A disk that is gone cannot be used again under its mount, not even when it is back: that would stay for as long as anything runs from it. One that nothing mounts again is left: an empty directory in its place would be
# taken for a new cluster's. A file system of several devices has a number of no device.
leave_lost_disk() {
  read -r mount device source <<MOUNT
$(data_mount)
MOUNT
  case $device:$source in
    0:*:/dev/*) [ ! -e "$source" ] || return 0 ;;
    0:*) return 0 ;;
    *) [ ! -e "/sys/dev/block/$device" ] || return 0 ;;
  esac
  mount=$(printf '%b' "$mount")
  [ -n "$(systemctl show --property FragmentPath --value "$(systemd-escape --path --suffix=mount "$mount")")" ] || return 0
  echo "the disk of $data_dir is gone: what runs from it is ended, and started again once it is back"
  stop_containers
  unmount_all
  detach "$mount"
  mkdir -p /run/coracle && touch /run/coracle/unplugged && cat /proc/sys/kernel/random/uuid >/run/coracle/lost-disk # what it holds of what ran is over (node/os/boot-id.ts)
  systemctl --no-block start coracle-retry.service
}

# Kernel settings as they were before (node/os/sysctl.ts), unless somebody else has changed them since.
restore_settings() {
  find "$data_dir/agent" -maxdepth 3 -name sysctls.json 2>/dev/null | while read -r file; do
    grep -o '"[^"]*":{"before":"[^"]*","after":"[^"]*"}' "$file" | sed 's/^"\([^"]*\)":{"before":"\([^"]*\)","after":"\([^"]*\)"}$/\1 \2 \3/' | while read -r name before after; do
      case $name in */*) path=/proc/sys/$name ;; *) path=/proc/sys/$(echo "$name" | tr . /) ;; esac
      if [ "$(cat "$path" 2>/dev/null)" = "$after" ] && { echo "$before" >"$path"; } 2>/dev/null; then echo "restored $name = $before"; fi
    done
    rm -f "$file" # what they are set to from now on is somebody else's, whenever this is repeated
  done
}

# How long logind waits for a node's pods when the machine goes down (node/kubelet/shutdown/logind.ts); it is told that it need not any more.
restore_logind() {
  grep -qs 'by Coracle$' /etc/systemd/logind.conf.d/99-kubelet.conf || return 0
  remove /etc/systemd/logind.conf.d/99-kubelet.conf
  if rmdir /etc/systemd/logind.conf.d 2>/dev/null; then removed /etc/systemd/logind.conf.d; fi
  ! have systemctl || systemctl kill -s HUP systemd-logind 2>/dev/null || true
}

# The pods' interfaces are gone: nobody needs be told to leave them alone.
remove_network_settings() {
  networkd=/etc/systemd/network/05-coracle.network network_manager=/etc/NetworkManager/conf.d/coracle.conf
  remove "$networkd.new" "$network_manager.new"
  if [ -f "$networkd" ]; then
    remove "$networkd"
    networkctl reload >/dev/null 2>&1 || true
  fi
  if [ -f "$network_manager" ]; then
    remove "$network_manager"
    nmcli general reload conf >/dev/null 2>&1 || true
  fi
}

# Fixed places of containerd and libcni; they may be others' as well. A shim's socket that nobody has open is nobody's.
remove_shared() {
  for socket in /run/containerd/s/*; do
    grep -qF "$socket" /proc/net/unix || remove "$socket"
  done
  for id in $CONTAINERS; do
    remove /var/lib/cni/results/*"$id"*
  done
  remove /var/lib/cni/results/coracle-* # our network's, of sandboxes that nobody knows any more: they ended while another network was set up
  # what another container runtime was given (node/runtime/external.ts)
  if grep -qsF "$data_dir/" /etc/cni/net.d/10-coracle.conflist; then remove /etc/cni/net.d/10-coracle.conflist; fi
  for plugin in /opt/cni/bin/* /usr/lib/cni/*; do
    if grep -qsF "'$data_dir/agent/current/bin'" "$plugin"; then remove "$plugin"; fi
  done
  for directory in /run/containerd/s /run/containerd/fifo /run/containerd /var/lib/cni/results /var/lib/cni/cache /var/lib/cni; do
    if [ -d "$directory" ]; then rmdir "$directory" 2>/dev/null && removed "$directory"; fi
  done
}

# Logs of our pods, where collectors of logs look for them, and the links to them. Which are ours stands in the kubelet's directory.
remove_logs() {
  for note in "$data_dir"/agent/kubelet/pod-logs/*; do
    [ -f "$note" ] || continue
    directory=/var/log/pods/$(cat "$note")
    for link in /var/log/containers/*.log; do
      case $(readlink "$link") in "$directory"/*) remove "$link" ;; esac
    done
    remove "$directory"
  done
  for directory in /var/log/containers /var/log/pods; do
    if [ -d "$directory" ]; then rmdir "$directory" 2>/dev/null && removed "$directory"; fi
  done
}

# The data directory may be a disk of its own, or in somebody's place on one, which stays.
remove_data() {
  if [ -n "$KEEP_DIRECTORY" ] || awk '{ print $5 }' /proc/self/mountinfo | grep -qxF "$data_dir"; then
    [ -z "$(ls -A "$data_dir" 2>/dev/null)" ] || { empty "$data_dir" && removed "the files in $data_dir"; }
  else
    remove "$data_dir"
  fi
}

# Whichever way it leads to our kubelet's directory: that may be behind links itself (node/kubelet/well-known-directory.ts).
remove_kubelet_link() {
  ours=$(readlink -f "$data_dir/agent/kubelet" 2>/dev/null)
  if [ -L /var/lib/kubelet ] && [ "$(readlink -f /var/lib/kubelet)" = "${ours:-$data_dir/agent/kubelet}" ]; then remove /var/lib/kubelet; fi
}

remove_files() {
  for link in kubectl crictl ctr; do
    [ "$(readlink "$BIN_DIR/$link" 2>/dev/null)" != coracle ] || remove "$BIN_DIR/$link"
  done
  remove_kubelet_link
  [ "$KEEP_DATA" = true ] || { remove_logs; remove_data; remove "$kubeconfig" "$ETC"; }
  remove /var/log/coracle.log /var/log/coracle.log.1 /run/coracle.pid /run/coracle-supervisor.pid /run/coracle-install.pid /run/coracle
  remove "$BIN_DIR/.coracle.new" "$BIN_DIR/coracle" "$BIN_DIR/coracle-uninstall" "$LIB_DIR"
}

# Whether the coracle that runs here is a server without a node.
is_without_node() {
  ! grep -qsE '^disable-agent:[[:space:]]*true' "$ETC/config.yaml" || return 0
  tr '\0' '\n' <"/proc/$1/cmdline" 2>/dev/null | grep -qxE -e '--disable-agent(=true)?' || tr '\0' '\n' <"/proc/$1/environ" 2>/dev/null | grep -qx 'CORACLE_DISABLE_AGENT=true'
}

remove_node() {
  for pid in $(running_program "$BIN_DIR/coracle"); do
    case $(command_line "$pid") in *' server '* | *' agent '*) is_without_node "$pid" || { echo "coracle runs a node here: give it --disable-agent first" >&2; exit 1; } ;; esac
  done
  stop_containers
  remove_network
  restore_settings
  restore_logind
  mounts=$(unmount_all "$data_dir/agent")
  [ -z "$mounts" ] || { echo "$mounts"; REMOVED=$((REMOVED + $(echo "$mounts" | wc -l))); }
  remove_shared
  remove_kubelet_link
  remove_logs
  rm -f "$data_dir/agent/run/boot-id" "$data_dir/agent/network/boot-id" # nothing of it runs, as after a boot: one that is a node again forgets what there was, and install.sh does not do this anew
  [ ! -d "$data_dir/agent" ] || touch "$data_dir/agent/taken-away"
  echo "The node is taken away: $REMOVED things removed. Its images and the data of its volumes stay in $data_dir/agent."
}

case ${1:-} in
  '') ;;
  --node) remove_node; exit ;;
  --going-down) end_heedless; exit ;;
  --lost-disk) leave_lost_disk; exit ;;
  *) echo "usage: $0" >&2; exit 2 ;;
esac
stop_service
stop_containers
remove_network
restore_settings
restore_logind
remove_network_settings
remove_units
mounts=$(unmount_all)
[ -z "$mounts" ] || { echo "$mounts"; REMOVED=$((REMOVED + $(echo "$mounts" | wc -l))); }
remove_shared
remove_files
echo "Coracle is uninstalled: $REMOVED things removed."
