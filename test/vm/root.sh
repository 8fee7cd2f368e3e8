#!/bin/bash
# Builds the disk of a virtual machine from Debian's packages: root.sh bookworm|trixie|openrc. Prints the directory with disk.img, vmlinuz, initrd and key.
#
#   bookworm    Debian 12 as its installer leaves it: systemd, AppArmor, pure cgroup v2
#   trixie      Debian 13, the same
#   openrc      Debian 12 with OpenRC and sysvinit instead of systemd
#
# Kept in ${XDG_CACHE_HOME:-~/.cache}/coracle/vm, named by this file's contents: a change of it builds anew. Needs root.
set -euo pipefail

KIND=$1
SUITE=bookworm
VARIANT=important
PACKAGES=linux-image-cloud-amd64,initramfs-tools,openssh-server,ca-certificates,git,iproute2,procps,curl
[ "$KIND" != trixie ] || SUITE=trixie
case $KIND in
  bookworm | trixie) PACKAGES=$PACKAGES,systemd-sysv,dbus,apparmor,ifupdown,isc-dhcp-client ;;
  openrc) VARIANT=minbase PACKAGES=$PACKAGES,openrc,sysvinit-core,udev,kmod,ifupdown,isc-dhcp-client,netbase,nftables ;; # what is important needs systemd
  *) echo "no such machine: $KIND" >&2; exit 2 ;;
esac

CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/coracle/vm
OUT=$CACHE/$KIND-$(sha256sum "$0" | cut -c1-16)
[ ! -f "$OUT/disk.img" ] || { echo "$OUT"; exit 0; }
mkdir -p "$CACHE"
WORK=$(mktemp -d "$CACHE/.$KIND.XXXXXX")
trap 'rm -rf --one-file-system "$WORK"' EXIT

missing=()
for package in qemu-system-x86 qemu-utils mmdebstrap e2fsprogs openssh-client debian-archive-keyring; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  echo "installing ${missing[*]}" >&2
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >/dev/null
fi

echo "building $KIND from Debian's packages, this takes a minute" >&2
mmdebstrap --quiet --mode=root --variant="$VARIANT" --include="$PACKAGES" "$SUITE" "$WORK/root" http://deb.debian.org/debian >&2
R=$WORK/root
ssh-keygen -q -t ed25519 -N '' -C test -f "$WORK/key"
install -d -m 700 "$R/root/.ssh"
install -m 600 "$WORK/key.pub" "$R/root/.ssh/authorized_keys"
printf '/dev/vda / ext4 errors=remount-ro 0 1\n' >"$R/etc/fstab"
echo debian >"$R/etc/hostname"
printf '127.0.0.1 localhost\n127.0.1.1 debian\n::1 localhost ip6-localhost ip6-loopback\n' >"$R/etc/hosts"
# eth0 leads out, eth1 is the switch between test machines
printf 'auto lo\niface lo inet loopback\nallow-hotplug eth0\nauto eth0\niface eth0 inet dhcp\n' >"$R/etc/network/interfaces"
rm -f "$R/etc/resolv.conf" "$R/etc/machine-id"
: >"$R/etc/resolv.conf"
: >"$R/etc/machine-id"
rm -rf "$R"/var/lib/apt/lists/* "$R"/var/cache/apt/*.bin
cp "$R"/boot/vmlinuz-* "$WORK/vmlinuz"
cp "$R"/boot/initrd.img-* "$WORK/initrd"
truncate -s 12G "$WORK/disk.img"
mkfs.ext4 -q -L root -E lazy_itable_init=1,lazy_journal_init=1 -d "$R" "$WORK/disk.img"
rm -rf --one-file-system "$R"
rm -rf --one-file-system "$OUT"
mv "$WORK" "$OUT"
echo "$OUT"
