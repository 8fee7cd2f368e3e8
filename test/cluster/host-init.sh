#!/bin/bash
# The first process of a test host (host.sh): sets up its file systems, then waits and reaps.
set -e
NAME=$1 DIR=$2
mount --make-rprivate /   # nothing that is mounted here shows outside …
mount --make-rshared /    # … and what a kubelet mounts propagates within
hostname "$NAME"
mount -t tmpfs -o mode=755,size=256m run /run
mkdir -p /run/netns /run/lock
V2=; [ -f /sys/fs/cgroup/cgroup.controllers ] && V2=1
mount -t sysfs sysfs /sys   # of our own network namespace
if [ "$V2" ]; then
  mount -t cgroup2 cgroup2 /sys/fs/cgroup
else
  mount -t tmpfs -o mode=755,size=1m cgroup /sys/fs/cgroup
  for c in cpu cpuacct cpuset memory devices freezer blkio pids; do
    mkdir "/sys/fs/cgroup/$c"
    mount -t cgroup -o "$c" cgroup "/sys/fs/cgroup/$c"
  done
  mkdir /sys/fs/cgroup/systemd
  mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
  mkdir /sys/fs/cgroup/unified
  mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified
fi
for d in /etc/cni /var/lib/cni /opt/cni /var/lib/kubelet /etc/coracle /var/lib/coracle; do
  mkdir -p "$d" && mount -t tmpfs tmpfs "$d"
done
for d in /var/log/pods /var/log/containers; do   # on the host's disk
  mkdir -p "$d" "$DIR$d" && mount --bind "$DIR$d" "$d"
done
cat /proc/sys/kernel/random/uuid > "$DIR/boot_id" && mount --bind "$DIR/boot_id" /proc/sys/kernel/random/boot_id   # each start of the host is a boot
for s in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do   # what a kubelet sets is the whole machine's: here it is the host's alone
  [ -e "/proc/sys/$s" ] || continue
  mkdir -p "$DIR/sysctl" && cat "/proc/sys/$s" > "$DIR/sysctl/${s##*/}" && mount --bind "$DIR/sysctl/${s##*/}" "/proc/sys/$s"
done
ip link set lo up
echo $$ > "$DIR/ready"
trap 'exit 0' TERM
while :; do sleep 1000000 & wait $! || :; done   # bash as the first process reaps orphans
