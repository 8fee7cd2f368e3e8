/** The scripts on a machine of their own: this one's directories under overlays, with an executable that answers like Coracle but runs nothing. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { has } from "../bundle/run.ts";

const directory = mkdtempSync(join(tmpdir(), "install-"));
afterAll(() => rmSync(directory, { recursive: true }));

const CORACLE = `#!/bin/sh
case $1 in
  version) echo 0 ;;
  check-settings) ;;
  kubectl) case "$*" in *readyz*) echo ok ;; *jsonpath*) echo True ;; *) echo "NAME STATUS" ;; esac ;;
  *) mkdir -p /etc/coracle /var/lib/coracle/agent/current/bin; echo kubeconfig >/etc/coracle/coracle.yaml; printf '#!/bin/sh\\nexec /usr/local/bin/coracle kubectl "$@"' >/var/lib/coracle/agent/current/bin/kubectl; chmod +x /var/lib/coracle/agent/current/bin/kubectl
     echo "runs $* with token '\${CORACLE_TOKEN:-}' of \${CORACLE_SERVER:-itself}"; trap 'exit 0' TERM; while :; do sleep 1 & wait $!; done ;;
esac
`;
const SETUP = `set -e
for d in etc usr/local var; do mkdir -p "$1/$d.up" "$1/$d.work"; mount -t overlay overlay -o "lowerdir=/$d,upperdir=$1/$d.up,workdir=$1/$d.work" "/$d"; done
mount -t tmpfs run /run
rm -rf /etc/coracle /etc/cni /var/lib/coracle /var/lib/kubelet /var/lib/cni /var/log/coracle* /var/log/pods /var/log/containers /usr/local/bin/coracle* /usr/local/lib/coracle
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
`;

/** Runs a script in fresh namespaces; $1 is a directory for its files. */
function onMachine(script: string): string {
  const work = mkdtempSync(join("/dev/shm", "install-"));
  try {
    writeFileSync(join(work, "coracle"), CORACLE, { mode: 0o755 });
    const result = spawnSync("unshare", ["--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private", "sh", "-c", `${SETUP}${script}`, "sh", work], { encoding: "utf8" });
    expect(result.status, result.stdout + result.stderr).toBe(0);
    return result.stdout;
  } finally {
    rmSync(work, { recursive: true });
  }
}

const canOverlay = process.getuid?.() === 0 && spawnSync("unshare", ["--mount", "--pid", "--fork", "true"]).status === 0;

test.skipIf(!canOverlay)("install, upgrade, kill, uninstall: settings stay, the supervisor brings it back, nothing is left", () => {
  const out = onMachine(`
BINARY="INSTALL_CORACLE_BINARY=$1/coracle"
has_run() { for _ in $(seq 600); do [ "$(grep -c "^runs server" /var/log/coracle.log)" -ge "$1" ] && return; sleep 0.1; done; echo "it has not run $1 times"; }
printf '#!/bin/sh\nls -a /usr/local/bin /etc/coracle 2>/dev/null | grep coracle | xargs >>%s/synced\n' "$1" >/usr/local/bin/sync; chmod +x /usr/local/bin/sync; hash -r
find /etc /usr/local /var /run -xdev | sort >"$1/before"
env "$BINARY" CORACLE_TOKEN="it's secret" INSTALL_CORACLE_EXEC="--node-name 'edge 1'" sh installers/linux/install.sh --disable dns
cat "$1/synced"; echo "== kill"; has_run 1; kill -9 "$(cat /run/coracle.pid)"; has_run 2; /usr/local/lib/coracle/service status
echo "== again"; echo '# newer' >>"$1/coracle"; env "$BINARY" sh installers/linux/install.sh
has_run 3; cat /var/log/coracle.log; stat -c '%a %n' /etc/coracle/coracle.env; cat /etc/coracle/coracle.args
echo "== uninstall"; coracle-uninstall
echo "== left"; ps -eo args | grep -E '[c]oracle (server|agent)|[s]ervice supervise' || true
find /etc /usr/local /var /run -xdev | sort >"$1/after"; diff "$1/before" "$1/after" || true
sh installers/linux/uninstall.sh
`);
  const [installed, killed, again, uninstalled, left] = out.split(/^== .*$/m);
  expect(installed).toContain("[coracle] ready after ");
  expect(installed).toMatch(/\n\.coracle\.new\n(?:.*\.new .*\n)*.* coracle\.args coracle\.env coracle coracle-uninstall\n/); // the executable before it has its name, all of it before it is started
  expect(killed).toContain("coracle is running, process ");
  expect(again).toContain("keeping the settings");
  expect(again!.match(/runs server --node-name edge 1 --disable dns with token 'it's secret' of itself/g)).toHaveLength(3);
  expect(again).toContain("coracle ended with status 137, starting it again in 1 s");
  expect(again).toContain("600 /etc/coracle/coracle.env\n'server' '--node-name' 'edge 1' '--disable' 'dns'");
  for (const thing of ["process ", "/etc/coracle", "/usr/local/bin/coracle", "/usr/local/lib/coracle", "/var/log/coracle.log"]) expect(uninstalled).toContain(`removed ${thing}`);
  expect(left!.trim()).toBe("Coracle is uninstalled: 0 things removed.");
}, 300_000);

test.skipIf(!canOverlay)("an upgrade that cannot be leaves what there was: an executable that does not run here is not installed, and settings are replaced whole", () => {
  const out = onMachine(`
export INSTALL_CORACLE_SKIP_START=true INSTALL_CORACLE_BINARY=$1/coracle
sh installers/linux/install.sh --node-name before >/dev/null
printf '#!/bin/sh\nstat -c %%i /etc/coracle/coracle.args >>%s/files; grep -c before /etc/coracle/coracle.args >>%s/synced || true\n' "$1" "$1" >/usr/local/bin/sync; chmod +x /usr/local/bin/sync; hash -r
printf '#!/bin/sh\nexit 1\n' >"$1/other"; chmod +x "$1/other"
INSTALL_CORACLE_BINARY="$1/other" sh installers/linux/install.sh 2>&1 | sed "s|$1|DIR|"; coracle version; ls -A /usr/local/bin | grep '^[.]' || true
sh installers/linux/install.sh --node-name after >/dev/null; sort "$1/synced" | uniq | xargs; sort -u "$1/files" | wc -l; cat /etc/coracle/coracle.args; find /etc -name '*coracle*.new'`);
  expect(out.trimEnd().split(/ *\n/)).toEqual([
    "[coracle] DIR/other does not run on this machine", "0", "0 1", "2", "'server' '--node-name' 'after'", // on the disk, then by its name
  ]);
}, 300_000);

test.skipIf(!canOverlay)("a supervisor that is told to stop as it starts coracle does", () => {
  const out = onMachine(`
INSTALL_CORACLE_SKIP_START=true INSTALL_CORACLE_BINARY=$1/coracle sh installers/linux/install.sh >/dev/null
printf '#!/bin/sh\nkill "$(cat /run/coracle-supervisor.pid)"; exec /bin/date "$@"\n' >/usr/local/bin/date; chmod +x /usr/local/bin/date
/usr/local/lib/coracle/service start 2>/dev/null || true
for _ in $(seq 200); do [ -e /run/coracle-supervisor.pid ] || break; sleep 0.1; done; ls /run/coracle-supervisor.pid 2>/dev/null || true; ps -eo args | grep '[c]oracle server' || echo none`);
  expect(out.trimEnd()).toBe("none");
}, 300_000);

test.skipIf(!canOverlay)("a variable whose value has lines that look like ours is none of ours", () => {
  const out = onMachine(`
export INSTALL_CORACLE_SKIP_START=true INSTALL_CORACLE_BINARY=$1/coracle DOTENV='first
CORACLE_OTHER=1
http_proxy=2'
CORACLE_TOKEN=secret sh installers/linux/install.sh >/dev/null || echo "ended with $?"; cat /etc/coracle/coracle.env`);
  expect(out.trimEnd().split("\n")).toEqual(["CORACLE_TOKEN='secret'"]);
}, 300_000);

test.skipIf(!canOverlay)("of two installers at once the second says so and changes nothing; one that was killed is not waited for", () => {
  const out = onMachine(`
export INSTALL_CORACLE_SKIP_START=true INSTALL_CORACLE_BINARY=$1/coracle
sed -i "s|version) |&mkfifo $1/begun; until [ -e $1/go ]; do sleep 0.1; done; |" "$1/coracle"
sh installers/linux/install.sh --node-name first >/dev/null & until [ -p "$1/begun" ]; do sleep 0.1; done
sh installers/linux/install.sh --node-name second 2>&1 | sed "s/$!/PID/"; touch "$1/go"; wait $!
cat /etc/coracle/coracle.args; ls /run/coracle-install.pid 2>&1 | grep -c 'o such file'
sleep 1000 & for pid in $! 2147483647 ''; do echo "$pid" >/run/coracle-install.pid; sh installers/linux/install.sh --node-name after 2>&1 >/dev/null; cat /etc/coracle/coracle.args; rm /etc/coracle/coracle.args; done
touch /run/coracle-install.pid; sh installers/linux/uninstall.sh | grep install.pid`);
  expect(out.trimEnd().split(/ *\n/)).toEqual([
    "[coracle] another installation is under way, process PID: wait until it has ended", "'server' '--node-name' 'first'", "1",
    ...Array.from({ length: 3 }, () => "'server' '--node-name' 'after'"), "removed /run/coracle-install.pid",
  ]);
}, 300_000);

test.skipIf(!canOverlay)("who has become root with a user's PATH has what runs here seen, too", () => {
  const out = onMachine(`
mkdir -p /run/openrc; for tool in rc-service rc-update; do printf '#!/bin/sh\\necho "%s $*"\\n' $tool >/usr/local/sbin/$tool; chmod +x /usr/local/sbin/$tool; done
PATH=/usr/local/bin:/usr/bin:/bin; export PATH
INSTALL_CORACLE_BINARY=$1/coracle INSTALL_CORACLE_SKIP_START=true sh installers/linux/install.sh; sh installers/linux/uninstall.sh`);
  expect(out).toContain("rc-update -q add coracle default\n[coracle] installed, not started; the next boot starts it\n");
  expect(out).toContain("rc-update -q del coracle\n");
}, 300_000);

test.skipIf(!canOverlay)("flags in the environment are words with quotes, in which nothing else means anything to a shell", () => {
  const out = onMachine(`
export INSTALL_CORACLE_BINARY=$1/coracle INSTALL_CORACLE_SKIP_START=true
args() { sh installers/linux/install.sh "$@" >/dev/null || echo "ended with $?"; cat /etc/coracle/coracle.args; }
INSTALL_CORACLE_EXEC='agent --kubelet-arg eviction-hard=memory.available<100Mi,nodefs.available<5% --node-label=a=$(id) "--node-name=edge 1"' args --debug 'x;y'
rm /etc/coracle/coracle.args # another machine
INSTALL_CORACLE_EXEC="--kubelet-arg 'eviction-hard=memory.available<100Mi'
  --debug" args
INSTALL_CORACLE_EXEC="--node-name 'edge" args 2>&1`);
  expect(out.trimEnd().split(/ *\n/)).toEqual([
    "'agent' '--kubelet-arg' 'eviction-hard=memory.available<100Mi,nodefs.available<5%' '--node-label=a=$(id)' '--node-name=edge 1' '--debug' 'x;y'",
    "'server' '--kubelet-arg' 'eviction-hard=memory.available<100Mi' '--debug'",
    expect.stringMatching(/^xargs: .*quote/),
    "[coracle] INSTALL_CORACLE_EXEC cannot be read as words: --node-name 'edge",
    "ended with 1",
    "'server' '--kubelet-arg' 'eviction-hard=memory.available<100Mi' '--debug'",
  ]);
}, 300_000);

test.skipIf(!canOverlay || !has("systemctl"))("in an image that boots later it is enabled, not started, and can be taken out again", () => {
  const out = onMachine(`
mkdir -p /var/disk; ln -s /var/disk '/var/a disk'
CONTAINERD_HTTPS_PROXY=http://proxy:3128 INSTALL_CORACLE_BINARY=$1/coracle INSTALL_CORACLE_SKIP_START=true sh installers/linux/install.sh --node-name 'a $b' --data-dir '/var/a disk'
readlink /etc/systemd/system/multi-user.target.wants/coracle.service; grep -E "^(ExecStart|RequiresMountsFor|OnFailure)=" /etc/systemd/system/coracle.service; grep -E "^ExecStart=.*systemctl|^PartOf=" /etc/systemd/system/coracle-retry.service; cat /etc/coracle/coracle.env; ps -eo args | grep -c '[c]oracle server' || true
touch /etc/systemd/system/coracle-retry.service.new; coracle-uninstall >/dev/null; find /etc/systemd/system -name 'coracle*'; ls -d /var/disk`);
  expect(out.split("\n").slice(-11)).toEqual([
    "[coracle] installed, not started; the next boot starts it", "/etc/systemd/system/coracle.service", 'RequiresMountsFor="/var/a disk" "/var/disk"', "OnFailure=coracle-retry.service",
    'ExecStart=/usr/local/bin/coracle "server" "--node-name" "a $$b" "--data-dir" "/var/a disk"', "PartOf=coracle.service", "ExecStart=/bin/systemctl --no-block start coracle.service", "CONTAINERD_HTTPS_PROXY='http://proxy:3128'", "0",
    "/var/disk", "", // the link leads somewhere still
  ]);
}, 300_000);

test.skipIf(!canOverlay)("of a disk that was unplugged nothing goes on, and it is waited for; not of one that is there, nor of one that nothing would mount again", () => {
  const out = onMachine(`
grep "^ExecStopPost=" installers/linux/install.sh
printf '#!/bin/sh\\ncase $1 in show) cat /run/fragment ;; *) echo "systemctl $*" ;; esac\\n' >/usr/local/bin/systemctl; printf '#!/bin/sh\\necho "$3.mount"\\n' >/usr/local/bin/systemd-escape; chmod +x /usr/local/bin/system*; hash -r
mkdir -p /etc/coracle '/var/lib/a disk' "$1/disk/agent" "$1/containerd"; echo "data_dir='/var/lib/a disk'" >/etc/coracle/installed; : >/run/fragment
truncate -s 8M "$1/image"; mkfs.ext4 -q "$1/image"; mount -o loop "$1/image" '/var/lib/a disk'; mkdir -p '/var/lib/a disk/agent/run'; mount -t tmpfs pod '/var/lib/a disk/agent/run'
look() { echo "== $1"; sh installers/linux/uninstall.sh --lost-disk; grep -c 'a.040disk' /proc/self/mountinfo || true; cat /run/coracle/lost-disk 2>/dev/null | wc -l; }
look there; mount -t tmpfs gone /sys/dev/block
look 'not mounted by systemd'; echo /run/systemd/generator/disk.mount >/run/fragment
look gone; look 'gone before'`);
  expect(out.split("\n")).toEqual([
    "ExecStopPost=-$LIB_DIR/uninstall --going-down", "ExecStopPost=-$LIB_DIR/uninstall --lost-disk", "== there", "2", "0", "== not mounted by systemd", "2", "0",
    "== gone", "the disk of /var/lib/a disk is gone: what runs from it is ended, and started again once it is back", "removed mount /var/lib/a disk/agent/run", "systemctl --no-block start coracle-retry.service", "0", "1", "== gone before", "0", "1", "",
  ]);
}, 300_000);

test.skipIf(!canOverlay)("when the machine goes down, containers in which nothing would heed SIGTERM are ended, and no others; when only the service stops, none", () => {
  const out = onMachine(`
printf '#!/bin/sh\\ncat /run/state\\n' >/usr/local/bin/systemctl; chmod +x /usr/local/bin/systemctl; mkdir "$1/bin"; cp "$(command -v dash || command -v sh)" "$1/bin/containerd-shim-runc-v2"
cat >"$1/shim" <<'SHIM'
sh -c 'trap "" TERM; echo $$ >/run/ignores; while :; do sleep 1; done' &
sh -c 'echo $$ >/run/none; while :; do sleep 1; done' &
sh -c 'trap "exit 0" TERM; echo $$ >/run/heeds; while :; do sleep 1 & wait $!; done' &
sh -c 'echo $$ >/run/child; sh -c "trap exit TERM; echo >/run/trapped; while :; do sleep 1; done"; :' &
wait
SHIM
"$1/bin/containerd-shim-runc-v2" "$1/shim" -address /var/lib/coracle/agent/run/containerd.sock &
for name in ignores none heeds child trapped; do until [ -s /run/$name ]; do sleep 0.1; done; done; rm /run/trapped
left() { for name in ignores none heeds child; do grep -qE '^State:.[SR]' "/proc/$(cat /run/$name)/status" 2>/dev/null && echo $name; done | xargs; }
for state in running stopping; do echo $state >/run/state; sh installers/linux/uninstall.sh --going-down; sleep 0.5; left; done`);
  expect(out).toBe("ignores none heeds child\nheeds child\n");
}, 300_000);

test.skipIf(!canOverlay || !has("ip"))("routes to other nodes' pods and to Services go with it, and the address of a machine on no network; others stay", () => {
  const out = onMachine(`unshare --net sh -c '
ip link set lo up; ip address add 192.0.2.1/32 dev lo; ip address add 192.0.2.2/32 dev lo; ip route add 10.42.1.0/24 dev lo proto 171; ip route add 10.43.0.0/16 dev lo proto 171 table 171; ip route add 10.9.0.0/16 dev lo
ip rule add priority 40171 table 171; ip -6 rule add priority 40171 table 171
sh installers/linux/uninstall.sh; ip route show table all; ip rule; ip -6 rule; ip address show dev lo'`);
  expect(out.split("\n").filter((line) => /^removed [ra]/.test(line))).toEqual(["removed routes to pods and Services", "removed routing rule 40171", "removed routing rule 40171", "removed address 192.0.2.1/32 of lo"]);
  expect(out).toContain("inet 192.0.2.2/32 ");
  expect(out).toContain("10.9.0.0/16 dev lo");
  expect(out).not.toMatch(/ proto 171|^40171:/m);
}, 300_000);

test.skipIf(!canOverlay || !has("systemctl"))("what manages the machine's network is told to leave that of pods alone, until they are gone", () => {
  const out = onMachine(`
rm -rf /etc/systemd/network /etc/NetworkManager; mkdir -p /etc/systemd/network /etc/NetworkManager/conf.d
INSTALL_CORACLE_BINARY=$1/coracle INSTALL_CORACLE_SKIP_START=true sh installers/linux/install.sh >/dev/null
grep -h = /etc/systemd/network/* /etc/NetworkManager/conf.d/*; touch /etc/systemd/network/05-coracle.network.new; coracle-uninstall >/dev/null; ls /etc/systemd/network /etc/NetworkManager/conf.d`);
  expect(out.split("\n").slice(-7)).toEqual([
    `Name=cni0 coracle-vxlan veth${"[0-9a-f]".repeat(8)}`, "Unmanaged=yes", "unmanaged-devices+=interface-name:cni0;interface-name:coracle-vxlan",
    "/etc/NetworkManager/conf.d:", "", "/etc/systemd/network:", "",
  ]);
}, 300_000);

test.skipIf(!canOverlay)("how long logind waits for pods goes with it, if we have said it", () => {
  const out = onMachine(`
file=/etc/systemd/logind.conf.d/99-kubelet.conf; mkdir -p /etc/systemd/logind.conf.d
for by in '' ', by Coracle'; do printf '# Kubelet logind override%s\\n[Login]\\n' "$by" >$file; sh installers/linux/uninstall.sh; done`);
  expect(out.match(/^removed \/etc\/systemd.*99-kubelet\.conf$/gm)).toHaveLength(1);
  expect(out.split("Coracle is uninstalled")[0]).not.toContain("99-kubelet.conf");
}, 300_000);

test.skipIf(!canOverlay)("what the pod network noted of sandboxes that are long gone goes with it, that of other networks stays", () => {
  const out = onMachine("mkdir -p /var/lib/cni/results; touch /var/lib/cni/results/coracle-5a41-eth0 /var/lib/cni/results/plain-5a41-eth0; sh installers/linux/uninstall.sh; ls /var/lib/cni/results");
  expect(out).toContain("removed /var/lib/cni/results/coracle-5a41-eth0\n");
  expect(out.trim().split("\n").at(-1)).toBe("plain-5a41-eth0");
}, 300_000);

test.skipIf(!canOverlay)("with the tools of a busybox all of it goes, too, and nothing that is mounted there", () => {
  const out = onMachine(`
for tool in rm find; do printf '#!/bin/sh\\nfor a; do case $a in -delete | --?*) exit 1 ;; esac; done\\nexec %s "$@"\\n' "$(command -v $tool)" >/usr/local/bin/$tool; chmod +x /usr/local/bin/$tool; done; hash -r
mkdir -p "/var/lib/coracle/agent/a b/c" /var/other /var/lib/coracle/in; touch "/var/lib/coracle/agent/a b/c/-f" /var/lib/coracle/.f /var/other/theirs; ln -s /var/other /var/lib/coracle/agent/link
printf '#!/bin/sh\\n' >/usr/local/bin/umount; chmod +x /usr/local/bin/umount; mount -t tmpfs none /var/lib/coracle/in; touch /var/lib/coracle/in/theirs
sh installers/linux/uninstall.sh 2>/dev/null | grep -v ^Coracle; find /var/lib/coracle /var/other`);
  expect(out).toBe("removed mount /var/lib/coracle/in\n/var/lib/coracle\n/var/lib/coracle/in\n/var/lib/coracle/in/theirs\n/var/other\n/var/other/theirs\n");
}, 60_000);

test.skipIf(!canOverlay)("what lies deeper than any path leads goes, too", () => {
  const out = onMachine(`
deep=$(printf '/%0200d' 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0); mkdir -p "/var/lib/coracle/one$deep" "/var/lib/coracle/agent$deep"; mv /var/lib/coracle/one "/var/lib/coracle/agent$deep"
sh installers/linux/uninstall.sh 2>&1 | grep -v ^Coracle | cut -c 1-80; [ -e /var/lib/coracle ] || echo gone`);
  expect(out.trim().split("\n").at(-1)).toBe("gone");
}, 60_000);

test.skipIf(!canOverlay)("what a machine that does not answer has mounted here is detached", () => {
  const out = onMachine(`
printf '#!/bin/sh\ncase " $* " in *" -l "*) exec %s "$@" ;; esac\nexec sleep 100000\n' "$(command -v umount)" >/usr/local/bin/umount; chmod +x /usr/local/bin/umount; hash -r
mkdir -p /var/lib/coracle/agent/nfs; mount -t tmpfs none /var/lib/coracle/agent/nfs
sh installers/linux/uninstall.sh; ls -d /var/lib/coracle 2>/dev/null || true`);
  expect(out).toBe("removed mount /var/lib/coracle/agent/nfs\nremoved /var/lib/coracle\nCoracle is uninstalled: 2 things removed.\n");
}, 60_000);

test.skipIf(!canOverlay)("what firewalld was told is taken back", () => {
  const out = onMachine(`
printf '#!/bin/sh\\nfor one; do echo "<$one>"; done | tr -d "\\\\n"; echo; case "$*" in *gone*) exit 1 ;; esac\\n' >/usr/local/bin/firewall-cmd; chmod +x /usr/local/bin/firewall-cmd
mkdir -p /var/lib/coracle/agent/network; printf 'trusted\\t--remove-source=10.42.0.0/16\\npublic\\t--remove-rich-rule=rule family="ipv4" accept\\npublic\\t--remove-source=gone\\n' >/var/lib/coracle/agent/network/firewalld
sh installers/linux/uninstall.sh`);
  expect(out).toContain(`<-q><--zone=trusted><--remove-source=10.42.0.0/16>
removed firewalld's trusted source=10.42.0.0/16
<-q><--zone=public><--remove-rich-rule=rule family="ipv4" accept>
removed firewalld's public rich-rule=rule family="ipv4" accept
<-q><--zone=public><--remove-source=gone>
`);
  expect(out).not.toContain("removed firewalld's public source");
}, 300_000);

test.skipIf(!canOverlay)("a server that will not come up is told with its own words, and not waited for", () => {
  const out = onMachine(`
sed -i '/^case/i case "$*" in server*wireguard*) echo "coracle: the node failed" >\\&2; echo "  because: --overlay must be vxlan, host-gw or none" >\\&2; exit 2 ;; esac' "$1/coracle"
INSTALL_CORACLE_BINARY=$1/coracle sh installers/linux/install.sh --overlay wireguard 2>&1 || echo "ended with $?"
/usr/local/lib/coracle/service stop
`);
  expect(out).toContain("[coracle] the node failed; because: --overlay must be vxlan, host-gw or none\nended with 1\n");
}, 300_000);

test.skipIf(!canOverlay)("settings that cannot be are told before anything is stopped, and those of before stay; so are settings that say nothing", () => {
  const out = onMachine(`
sed -i 's/^  check-settings).*/  check-settings) case "$CORACLE_OVERLAY $*" in *wireguard*) echo "coracle: the overlay cannot be" >\\&2; exit 2 ;; esac ;;/' "$1/coracle"
export INSTALL_CORACLE_BINARY=$1/coracle INSTALL_CORACLE_TIMEOUT=30
install() { echo "== $*"; sh installers/linux/install.sh "$@" 2>&1 || echo "ended with $?"; cat /etc/coracle/coracle.args; /usr/local/lib/coracle/service status; }
install --disable dns; install --overlay wireguard; CORACLE_OVERLAY=wireguard install agent; install serve --disable dns
: >/etc/coracle/coracle.args; install
/usr/local/lib/coracle/service stop
`);
  const [, first = "", ...others] = out.split(/^== .*\n/m);
  const before = first.split("\n").slice(-3, -1);
  expect(before).toEqual(["'server' '--disable' 'dns' ", expect.stringMatching(/^coracle is running, process \d+$/)]);
  const refused = (why: string) => [`[coracle] ${why}`, "ended with 1"];
  expect(others.map((text) => text.split("\n").filter((line) => !/up to date|settings can also|keeping/.test(line)))).toEqual([
    [...refused("the overlay cannot be: nothing is set or started"), ...before, ""],
    [...refused("the overlay cannot be: nothing is set or started"), ...before, ""],
    [...refused("a machine is a server or an agent, and 'serve' is neither"), ...before, ""],
    [...refused("/etc/coracle/coracle.args says nothing: say again what this machine is, server or agent, with its settings"), before[1], ""],
  ]);
}, 300_000);

test.skipIf(!canOverlay)("an executable that the settings are not right for does not take the place of the one that runs, nor do the scripts that come with it", () => {
  const out = onMachine(`
export INSTALL_CORACLE_BINARY=$1/coracle
sh installers/linux/install.sh --disable dns >/dev/null 2>&1; echo '# of before' >>/usr/local/lib/coracle/service
sed -i 's/^  version) echo 0/  version) echo 1/; s/^  check-settings).*/  check-settings) case "$*" in *dns*) echo "coracle: dns is no part" >\\&2; exit 2 ;; esac ;;/' "$1/coracle"
sh installers/linux/install.sh 2>&1 || echo "ended with $?"; coracle version; ls -A /usr/local/bin | grep '^[.]' || true; grep -c 'of before' /usr/local/lib/coracle/service
sh installers/linux/install.sh --disable ingress >/dev/null 2>&1; coracle version; /usr/local/lib/coracle/service stop`);
  expect(out.trimEnd().split("\n")).toEqual([
    "[coracle] keeping the settings in /etc/coracle/coracle.env and /etc/coracle/coracle.args", "[coracle] dns is no part: nothing is set or started", "ended with 1", "0", "1", "1",
  ]);
}, 300_000);

test.skipIf(!canOverlay)("a server that is a node no more has its pods ended and their mounts taken away; it goes on, with its data, as does what else is mounted there; a node is not taken from under itself", () => {
  const out = onMachine(`
export INSTALL_CORACLE_BINARY=$1/coracle
sh installers/linux/install.sh --node-name edge >/dev/null 2>&1
mkdir -p /var/lib/coracle/agent/kubelet/pods/x /var/lib/coracle/server/snapshots /var/lib/coracle/agent/run "$1/bin"; cp "$(command -v dash || command -v sh)" "$1/bin/containerd"
mount -t tmpfs v /var/lib/coracle/agent/kubelet/pods/x; mount -t tmpfs s /var/lib/coracle/server/snapshots; echo image >/var/lib/coracle/agent/image
"$1/bin/containerd" -c 'sleep 1000; :' --config /var/lib/coracle/agent/etc/containerd & echo "== refused"
mv /usr/local/bin/coracle "$1/fake"; cp "$1/bin/containerd" /usr/local/bin/coracle
for flag in --debug '--debug --disable-agent'; do /usr/local/bin/coracle -c 'sleep 1000; :' server $flag & sleep 0.5; coracle-uninstall --node 2>&1 | grep -c 'first' || true; kill -9 $!; wait $! 2>/dev/null || true; done; mv "$1/fake" /usr/local/bin/coracle
"$1/bin/containerd" -c 'sleep 1000; :' --config /var/lib/coracle/agent/etc/containerd & mount -t tmpfs v /var/lib/coracle/agent/kubelet/pods/x
touch /var/lib/coracle/agent/run/boot-id
echo "== install"; sh installers/linux/install.sh --node-name edge --disable-agent 2>&1 | sed "s|$1|DIR|"
echo "== again"; echo '# newer' >>"$1/coracle"; sh installers/linux/install.sh | grep -c 'node is taken away' || true
echo "== others'"; rm /var/lib/coracle/agent/taken-away; for newer in 1 2; do echo "# $newer" >>"$1/coracle"; sh installers/linux/install.sh | grep -c 'node is taken away' || true; done
echo "== left"; ps -eo args | grep -c '[/]bin/containerd -c sleep' || true; grep -o '/var/lib/coracle.*/x ' /proc/self/mountinfo || true; grep -co '/var/lib/coracle/server/snapshots ' /proc/self/mountinfo; cat /var/lib/coracle/agent/image; /usr/local/lib/coracle/service status; /usr/local/lib/coracle/service stop`);
  const [, refused, installed, again, others, left] = out.split(/^== .*\n/m);
  expect([again, others]).toEqual(["0\n", "1\n0\n"]); // of a node with a runtime and a network of others only its kubelet's directory is there
  expect(refused!.trim().split("\n")).toEqual(["1", "0"]);
  expect(installed).toMatch(/removed process \d+ \(DIR\/bin\/containerd /);
  expect(installed).toContain("removed mount /var/lib/coracle/agent/kubelet/pods/x\nThe node is taken away: ");
  expect(installed).toContain("coracle kubectl delete node edge\n[coracle] ready after ");
  expect(left).toMatch(/^0\n1\nimage\ncoracle is running, process \d+\n$/);
}, 300_000);

test.skipIf(!canOverlay)("kernel settings are put back once: what they are set to after that is somebody else's", () => {
  const out = onMachine(`
mkdir -p /var/lib/coracle/agent/network; echo 10 >"$1/panic"; mount --bind "$1/panic" /proc/sys/kernel/panic
echo '{"kernel.panic":{"before":"0","after":"10"}}' >/var/lib/coracle/agent/network/sysctls.json
for _ in 1 2; do sh installers/linux/uninstall.sh --node | grep restored || true; cat /proc/sys/kernel/panic; echo 10 >/proc/sys/kernel/panic; done`);
  expect(out).toBe("restored kernel.panic = 0\n0\n10\n");
}, 300_000);

test.skipIf(!canOverlay)("a link to the kubelet's directory goes with the node whose it is, through whatever links it leads there; another's stays", () => {
  const out = onMachine(`
mkdir -p "$1/data" "$1/disk/kubelet"; ln -s "$1/data" /var/lib/coracle
for agent in "$1/data/agent" "$1/disk"; do
  rm -rf "$1/data/agent"; [ -d "$agent" ] && ln -s "$agent" "$1/data/agent" || mkdir -p "$agent/kubelet"
  ln -s /var/lib/coracle/agent/kubelet /var/lib/kubelet; sh installers/linux/uninstall.sh --node | grep kubelet
done
ln -s "$1/elsewhere/kubelet" /var/lib/kubelet; sh installers/linux/uninstall.sh --node >/dev/null; rm "$1/data/agent"; sh installers/linux/uninstall.sh --node >/dev/null; readlink /var/lib/kubelet | sed "s|$1|DIR|"`);
  expect(out).toBe("removed /var/lib/kubelet\nremoved /var/lib/kubelet\nDIR/elsewhere/kubelet\n");
}, 300_000);

test.skipIf(!canOverlay)("what a service said before this boot is not why it does not come up now: by a clock in 1970 it is yet to say it", () => {
  const out = onMachine(`
mkdir -p /run/systemd/system; printf '#!/bin/sh\\n' >/usr/local/bin/systemctl
printf '#!/bin/sh\\ncase " $* " in *" -b "*) ;; *) echo "coracle: the token is wrong"; echo "coracle: the token is wrong" ;; esac\\n' >/usr/local/bin/journalctl; chmod +x /usr/local/bin/*ctl; hash -r
INSTALL_CORACLE_TIMEOUT=1 INSTALL_CORACLE_BINARY=$1/coracle sh installers/linux/install.sh 2>&1 || true`);
  expect(out).toContain(" is not ready after 1 s. ");
  expect(out).not.toContain("token");
}, 300_000);

test.skipIf(!canOverlay)("a clock that is set while it waits is not for how long it has waited, nor are a service's words lost that it has then", () => {
  const out = onMachine(`
printf '#!/bin/sh\\n[ -e /run/set ] && exec /bin/date "$@"; touch /run/set; echo 60\\n' >/usr/local/bin/date; chmod +x /usr/local/bin/date; hash -r
sed -i '/^case/i [ "$1" = kubectl ] && [ ! -e /run/asked ] && { touch /run/asked; exit 1; }' "$1/coracle"
INSTALL_CORACLE_TIMEOUT=60 INSTALL_CORACLE_BINARY=$1/coracle sh installers/linux/install.sh 2>&1; /usr/local/lib/coracle/service stop
mkdir -p /run/systemd/system; printf '#!/bin/sh\\n' >/usr/local/bin/systemctl
printf '#!/bin/sh\\ncase " $* " in *" --show-cursor "*) echo "-- cursor: s=1;i=2" ;; *" --after-cursor=s=1;i=2 "*) echo "coracle: the token is wrong"; echo "coracle: the token is wrong" ;; esac\\n' >/usr/local/bin/journalctl; chmod +x /usr/local/bin/*ctl; hash -r
rm -rf /var/lib/coracle; INSTALL_CORACLE_TIMEOUT=1 INSTALL_CORACLE_BINARY=$1/coracle sh installers/linux/install.sh --disable dns 2>&1 || true`);
  expect(out).toMatch(/\[coracle\] ready after \d{1,3} s\n/);
  expect(out).toContain("[coracle] the token is wrong\n");
}, 300_000);

test.skipIf(!canOverlay)("what was built of other sources is built again, what somebody gives is taken, and a full disk is told", () => {
  const out = onMachine(`
mkdir -p /run/checkout/bin && cp -r installers package.json package-lock.json tsconfig.json /run/checkout && cd /run/checkout && mkdir cmd core node storage dist node_modules
touch node_modules/.package-lock.json; echo 1 >cmd/main.ts
printf '#!/bin/sh\\necho "npm $*"; cp "%s" dist/coracle; sh installers/bundle/sources.sh >dist/sources\\n' "$1/coracle" >bin/npm; chmod +x bin/npm; PATH=/run/checkout/bin:$PATH
sed -i 's/\\*jsonpath\\*) echo True/*jsonpath*range*) echo Ready; echo DiskPressure ;; &/' "$1/coracle"
export INSTALL_CORACLE_SKIP_START=true
for file in cmd/main.ts cmd/main.test.ts cmd/main.ts; do echo "== $file"; echo 2 >>$file; sh installers/linux/install.sh; done
echo "== given"; echo 3 >>cmd/main.ts; INSTALL_CORACLE_BINARY=$1/coracle INSTALL_CORACLE_SKIP_START= sh installers/linux/install.sh
/usr/local/lib/coracle/service stop
`);
  const [, first, testOnly, again, given] = out.split(/^== .*$/m);
  expect(first).toContain("npm run --silent build");
  expect(testOnly).not.toContain("npm");
  expect(again).toContain("npm run --silent build");
  expect(given).not.toContain("npm");
  expect(given).toContain("the disk is too full for pods");
}, 300_000);

test.skipIf(!canOverlay)("an agent is told by its variables", () => {
  const out = onMachine(`
env "INSTALL_CORACLE_BINARY=$1/coracle" INSTALL_CORACLE_SKIP_START=true CORACLE_URL=https://10.0.0.1:6443 CORACLE_TOKEN=abc sh installers/linux/install.sh
cat /etc/coracle/coracle.args /etc/coracle/coracle.env
`);
  expect(out).toContain("'agent' \nCORACLE_TOKEN='abc'\nCORACLE_SERVER='https://10.0.0.1:6443'\n");
}, 300_000);

test.skipIf(!canOverlay)("proxies in who upgrades' environment are no other settings: an agent stays one of its server, and goes through those of now; other settings do not make a server of it either", () => {
  const out = onMachine(`
export INSTALL_CORACLE_BINARY=$1/coracle INSTALL_CORACLE_SKIP_START=true
install() { echo "== $*"; env "$@" sh installers/linux/install.sh 2>&1 | grep -E 'keeping|agent' || true; cat /etc/coracle/coracle.args /etc/coracle/coracle.env; }
install CORACLE_URL=https://10.0.0.1:6443 CORACLE_TOKEN=abc HTTPS_PROXY=http://old CONTAINERD_NO_PROXY=x
install https_proxy=http://newer
install HTTPS_PROXY=http://new NO_PROXY=y
chmod 640 /etc/coracle/coracle.env; install PATH="$PATH"; stat -c %a /etc/coracle/coracle.env
install CORACLE_NODE_LABEL=a=b
install INSTALL_CORACLE_EXEC=server
`);
  const before = "'agent' \nCONTAINERD_NO_PROXY='x'\nCORACLE_TOKEN='abc'\nCORACLE_SERVER='https://10.0.0.1:6443'\n";
  const keeping = "[coracle] keeping the settings in /etc/coracle/coracle.env and /etc/coracle/coracle.args\n", after = `${before}HTTPS_PROXY='http://new'\nNO_PROXY='y'\n`;
  expect(out.split(/^== .*\n/m).slice(1)).toEqual([
    expect.stringContaining("HTTPS_PROXY='http://old'\n"), `${keeping}${before}https_proxy='http://newer'\n`, keeping + after, `${keeping}${after}640\n`,
    `[coracle] this machine is an agent: say of which server with these settings, or that it is to be a server: INSTALL_CORACLE_EXEC=server\n${after}`, "'server' \n\n",
  ]);
}, 300_000);

/** An agent whose node is registered with the third question, and Ready with the third after that, at the second of two servers. One more is whether it is short of anything. */
const AGENT = `#!/bin/sh
A=/var/lib/coracle/agent
case $1 in
  version) echo 0 ;;
  check-settings) ;;
  kubectl)
    case "$*" in *"--server https://b:6443 --certificate-authority $A/tls/server-ca.crt --client-certificate $A/tls/client-kubelet.crt --client-key $A/tls/client-kubelet.key get node edge-2 "*) ;; *) exit 1 ;; esac
    n=$(($(cat /run/asked 2>/dev/null || echo 0) + 1)); echo $n >/run/asked
    [ $n -ge 3 ] || exit 1
    case "$*" in *"-o name") echo node/edge-2 ;; *message*) echo "no network yet" ;; *status*) [ $n -ge \${READY_AT:-6} ] && echo True || echo False ;; esac ;;
  *) echo "coracle starts"; [ "\${CORACLE_TOKEN:-}" != wrong ] || { echo "coracle: the token is wrong"; exit 1; }
     [ "\${CORACLE_TOKEN:-}" != away ] || { printf '%s\\n' '{"error":"https://b:6443 cannot be reached: \\"b\\" is away","msg":"not joined yet, next try soon"}'; exec sleep 1000; }
     mkdir -p $A/run $A/tls; echo x >$A/tls/client-kubelet.crt
     trap 'exit 0' TERM; while :; do sleep 1 & wait $!; done ;;
esac
`;

test.skipIf(!canOverlay)("an agent's installer waits for its node to be registered and Ready, and says what is the matter where it is not", () => {
  const out = onMachine(`
cat >"$1/coracle" <<'FAKE'
${AGENT}FAKE
export INSTALL_CORACLE_BINARY="$1/coracle" CORACLE_URL=https://a:6443,https://b:6443 CORACLE_NODE_NAME=edge-2 CORACLE_TOKEN=abc CORACLE_CONTAINER_RUNTIME_ENDPOINT=/run/other.sock
sh installers/linux/install.sh; cat /run/asked
echo "== not Ready"; echo 3 >/run/asked; READY_AT=99999 INSTALL_CORACLE_TIMEOUT=2 sh installers/linux/install.sh || echo "status $?"
echo "== not registered"; CORACLE_NODE_NAME=edge-3 INSTALL_CORACLE_TIMEOUT=1 sh installers/linux/install.sh || echo "status $?"
echo "== away"; rm -r /var/lib/coracle/agent/tls; CORACLE_TOKEN=away INSTALL_CORACLE_TIMEOUT=3 CORACLE_CONTAINER_RUNTIME_ENDPOINT= sh installers/linux/install.sh || echo "status $?"
echo "== refused"; CORACLE_TOKEN=wrong sh installers/linux/install.sh 2>&1 || echo "status $?"
/usr/local/lib/coracle/service stop
`);
  const [ready, notReady, notRegistered, away, refused] = out.split(/^== .*$/m);
  expect(ready).toMatch(/the node edge-2 is Ready after \d+ s[\s\S]*\n7\n$/);
  expect(notReady).toContain("the node edge-2 is not Ready after 2 s. Look at: tail -f /var/log/coracle.log\n[coracle] it says: no network yet\nstatus 1");
  expect(notRegistered).toContain("the node edge-3 is not registered at https://a:6443,https://b:6443 after 1 s.");
  expect(away).toContain('the node edge-2 has not joined after 3 s. Look at: tail -f /var/log/coracle.log\n[coracle] it says: https://b:6443 cannot be reached: \\"b\\" is away\nstatus 1');
  expect(refused).toContain("[coracle] the token is wrong\nstatus 1");
}, 300_000);

test.skipIf(!canOverlay)("under OpenRC, too, the log is cut: what a disk has room for in three years must not hang on logrotate, which Alpine has not", () => {
  const out = onMachine(`
env "INSTALL_CORACLE_BINARY=$1/coracle" sh installers/linux/install.sh >/dev/null; /usr/local/lib/coracle/service stop
head -c 11000000 /dev/zero >/var/log/coracle.log
/usr/local/lib/coracle/service exec >>/var/log/coracle.log 2>&1 &
for _ in $(seq 100); do [ "$(wc -c </var/log/coracle.log)" -lt 1000 ] && break; sleep 0.1; done
echo "$(wc -c </var/log/coracle.log) bytes, and $(wc -c </var/log/coracle.log.1)"
tr '\\0' ' ' <"/proc/$!/cmdline"
`);
  expect(out).toMatch(/^\d{1,3} bytes, and 11000\d\d\d\n.*\/usr\/local\/bin\/coracle server/);
}, 300_000);

test.skipIf(!has("shellcheck"))("shellcheck has nothing to say", () => {
  expect(spawnSync("shellcheck", ["-s", "sh", "installers/linux/install.sh", "installers/linux/service.sh", "installers/linux/uninstall.sh"], { encoding: "utf8" }).stdout).toBe("");
});
