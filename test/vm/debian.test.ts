/** A whole Debian, from its installation to `coracle-uninstall`: the service manager, cgroups (version 2 under systemd, 1 under OpenRC), a plug that is pulled. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually, type Kind, Machine, makePayload, obstacle, SLOWNESS } from "./machine.ts";

const KINDS = (process.env["VM_KINDS"] ?? "bookworm,openrc").split(",") as Kind[];
const why = obstacle();
if (why !== undefined) console.warn(`test/vm is skipped: ${why}`);

/** Everything that could be left: files, mounts, links, tables, cgroups, processes. Not what the system itself writes. */
const INVENTORY = `
find / -xdev \\( -path /proc -o -path /sys -o -path /tmp -o -path /var/tmp -o -path /var/log -o -path /var/cache -o -path /var/lib/systemd -o -path /var/lib/apt -o -path '/root/.[!c]*' \\) -prune -o -print | sort
find /run | grep -E 'coracle|containerd|cni|netns' | sort
awk '{ print "mount " $2 }' /proc/mounts | grep -vE '^mount /(run/(user|credentials)|proc/sys/fs/binfmt_misc)' | sort
for link in /sys/class/net/*; do echo "link \${link##*/}"; done
find /sys/fs/cgroup -type d -name '*kubepods*' | sort; [ ! -d /sys/fs/cgroup/system.slice/coracle.service ] || echo "cgroup coracle.service"
for process in /proc/[0-9]*; do readlink $process/exe | grep -E 'coracle|containerd|runc|pause'; done; true`;

const PODS = `
apiVersion: v1
kind: Pod
metadata: {name: guaranteed}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: c, image: "busybox:1", command: [sleep, "100000"], resources: {limits: {cpu: 250m, memory: 32Mi}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: burstable}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: c, image: "busybox:1", command: [sleep, "100000"], resources: {requests: {cpu: 100m, memory: 16Mi}, limits: {cpu: 500m, memory: 64Mi}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: greedy}
spec:
  restartPolicy: Never
  containers: [{name: c, image: "busybox:1", command: [sh, -c, "tail /dev/zero"], resources: {limits: {memory: 24Mi}}}]
`;

describe.skipIf(why !== undefined).each(KINDS)("Debian, %s", (kind) => {
  const isSystemd = kind !== "openrc";
  const payload = why === undefined ? makePayload() : undefined;
  let machine: Machine;
  let before: string;

  beforeAll(async () => {
    machine = await Machine.boot({ kind, name: kind }, payload!.path);
    before = await machine.sh(INVENTORY);
  });
  afterAll(async () => {
    await machine?.[Symbol.asyncDispose]();
    payload?.remove();
  });

  const answers = async (url: string): Promise<string> => machine.sh(`curl -sf -m 20 ${url}`);
  /** Which containers run, and since when. */
  const containers = async (): Promise<string[]> =>
    (await machine.kubectl(`get pods -o jsonpath='{range .items[*].status.containerStatuses[*]}{.containerID} {.restartCount} {.state.running.startedAt}{"\\n"}{end}'`)).split("\n").sort();
  const ready = () => eventually("the server is ready", async () => (await machine.kubectl("--request-timeout 20s get --raw /readyz")) === "ok");
  const applicationAnswers = (timeoutMs?: number) => eventually("the application answers", async () => (await answers("http://10.0.2.15:30080/")) === "welcome to the shed\n", timeoutMs);
  /** Files of a pod's cgroup, and of its container's below it, in every hierarchy, whatever the driver calls them. */
  const limits = async (pod: string): Promise<{ readonly pod: Record<string, string>; readonly container: Record<string, string> }> => {
    const uid = (await machine.kubectl(`get pod ${pod} -o jsonpath={.metadata.uid}`)).trim();
    const id = (await machine.kubectl(`get pod ${pod} -o jsonpath='{.status.containerStatuses[0].containerID}'`)).trim().replace("containerd://", "");
    const files = ["cpu.max", "cpu.weight", "memory.max", "cpu.cfs_quota_us", "cpu.shares", "memory.limit_in_bytes"];
    const read = async (where: string) => Object.fromEntries((await machine.sh(`for d in $(${where}); do for f in ${files.join(" ")}; do [ ! -f $d/$f ] || echo "$f=$(cat $d/$f)"; done; done`)).trim().split("\n").map((line) => line.split("=") as [string, string]));
    return { pod: await read(`find /sys/fs/cgroup -type d \\( -name '*pod${uid}*' -o -name '*pod${uid.replaceAll("-", "_")}*' \\)`), container: await read(`find /sys/fs/cgroup -type d -name '*${id}*'`) };
  };

  test("install.sh leaves a node that is Ready", async () => {
    expect(await machine.sh("stat -fc %T /sys/fs/cgroup")).toBe(isSystemd ? "cgroup2fs\n" : "tmpfs\n");
    const out = await machine.sh("cd /pay/checkout && INSTALL_CORACLE_BINARY=/pay/coracle INSTALL_CORACLE_TIMEOUT=1500 sh installers/linux/install.sh", { timeoutMs: 1_600_000 });
    expect(out).toContain(`started the ${isSystemd ? "systemd" : "OpenRC"} service coracle`);
    expect(out).toMatch(/ready after \d+ s\nNAME .*\ndebian\s+Ready/);
  });

  test("images are imported, an application becomes ready and answers by cluster IP, node port and name", async () => {
    expect(await machine.sh("coracle images import /pay/busybox.tar /pay/redis.tar")).toMatch(/imported docker.io\/library\/busybox:[\s\S]*imported docker.io\/library\/redis:/);
    await machine.kubectl("apply -f /pay/application.yaml");
    await machine.apply(PODS);
    for (const name of ["web", "backend"]) await eventually(`${name} is rolled out`, () => machine.kubectl(`rollout status deployment/${name} --timeout=60s`), 180_000);
    await applicationAnswers();
    expect(await answers(`http://${(await machine.kubectl("get service web -o jsonpath={.spec.clusterIP}")).trim()}/`)).toBe("welcome to the shed\n");
    const pod = (await machine.kubectl("get pods -l app=web -o jsonpath='{.items[0].metadata.name}'")).trim();
    expect(await machine.kubectl(`exec ${pod} -- wget -q -O- -T 20 http://web.default.svc.cluster.local/`)).toBe("welcome to the shed\n");
    expect(await machine.kubectl(`logs ${pod}`)).toContain("serving\n");
  });

  test("limits of pods and containers are the kernel's, and who takes more memory is OOMKilled", async () => {
    await machine.kubectl(`wait pod/guaranteed pod/burstable --for=condition=Ready --timeout=300s`);
    const limited = (quota: number, mebibytes: number) => (isSystemd ? { "cpu.max": `${quota} 100000`, "memory.max": String(mebibytes << 20) } : { "cpu.cfs_quota_us": String(quota), "memory.limit_in_bytes": String(mebibytes << 20) });
    expect(await limits("guaranteed")).toMatchObject({ pod: limited(25_000, 32), container: limited(25_000, 32) });
    const found = await limits("burstable");
    expect(found).toMatchObject({ pod: limited(50_000, 64), container: limited(50_000, 64) });
    const weight = isSystemd ? "cpu.weight" : "cpu.shares";
    expect([found.pod[weight], found.container[weight]]).toEqual(isSystemd ? ["4", "17"] : ["102", "102"]); // of 100m; runc converts by a curve of its own
    await eventually("the greedy one is killed", async () => (await machine.kubectl("get pod greedy -o jsonpath='{.status.phase} {.status.containerStatuses[0].state.terminated.reason}'")) === "Failed OOMKilled");
    await eventually("usage is measured", async () => /^debian\s+\d+m\s+\d+%\s+\d+Mi/m.test(await machine.kubectl("top node")) && (await machine.kubectl("top pod")).includes("burstable"), 120_000);
  });

  test("health is served on this machine as upstream's parts do", async () => {
    expect(await answers("http://127.0.0.1:10248/healthz")).toBe("ok");
    expect(JSON.parse(await answers("http://127.0.0.1:10256/healthz"))).toMatchObject({ nodeEligible: true });
  });

  test.runIf(isSystemd)("the systemd unit is in order, and daemon-reload takes nothing from pods", async () => {
    expect(await machine.sh("systemd-analyze verify coracle.service coracle-retry.service 2>&1")).toBe("");
    expect((await machine.sh("systemctl show coracle -p Type,Delegate,KillMode,TasksMax,LimitNOFILE,NRestarts")).trim().split("\n").sort()).toEqual(["Delegate=yes", "KillMode=process", "LimitNOFILE=1048576", "NRestarts=0", "TasksMax=infinity", "Type=notify"]);
    const held = await limits("burstable");
    await machine.sh("systemctl daemon-reload");
    expect(await limits("burstable")).toEqual(held);
  });

  test("a restart of the service leaves containers alone", async () => {
    const running = await containers();
    await machine.sh(isSystemd ? "systemctl restart coracle" : "rc-service coracle restart");
    if (isSystemd) expect(await machine.kubectl("get --raw /readyz")).toBe("ok"); // systemctl waits until the server says so
    await ready();
    await Bun.sleep(10_000);
    expect(await containers()).toEqual(running);
  });

  test("killed, it comes back by itself", async () => {
    const pid = (): Promise<string> => machine.sh("pgrep -o -x coracle"), killed = await pid();
    await machine.sh(isSystemd ? "systemctl kill -s KILL coracle" : "pkill -KILL -x coracle"); // systemd: all of the unit, containerd and the shims too
    await eventually("the server was started again", async () => (await pid()) !== killed);
    await ready();
    await machine.kubectl("rollout status deployment/web --timeout=600s");
    await applicationAnswers(120_000);
  });

  test("the plug is pulled: the machine boots, and everything is there again", async () => {
    const names = (await machine.kubectl("get pods -o name")).split("\n").sort();
    await machine.pullPlug();
    await ready();
    await applicationAnswers(180_000);
    await machine.kubectl("rollout status deployment/web --timeout=600s");
    await machine.kubectl("rollout status deployment/backend --timeout=600s");
    expect((await machine.kubectl("get pods -o name")).split("\n").sort()).toEqual(names);
  });

  test("coracle-uninstall leaves nothing", async () => {
    expect(await machine.sh("coracle-uninstall", { timeoutMs: 120_000 * SLOWNESS })).toMatch(/Coracle is uninstalled: \d+ things removed\./);
    const left = (await machine.sh(INVENTORY)).split("\n").filter((line) => !before.split("\n").includes(line));
    expect(left).toEqual([]);
    expect(await machine.sh("nft list tables 2>/dev/null || true")).not.toMatch(/coracle|cni_/);
  });
});
