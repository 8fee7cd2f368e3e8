/**
 * Other container runtimes than the bundled one, as Debian has them: containerd 1.6, which knows no events and no statistics of pods' own, and 1.7; runc and crun. What a kubelet asks
 * of a runtime is asked of each, and no more: pods.test.ts is about the rest. RUNTIMES=bookworm-crun,sid-crun chooses others.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, test } from "vitest";
import type { ContainerStatus, Pod } from "../../core/api/gen/core.v1.ts";
import { type DebianRuntime, startDebianRuntime } from "./debian-runtime.ts";
import { eventually, Host, IMAGES, switchDown } from "./host.ts";

const VERSIONS = { bookworm: "containerd://1.6.", trixie: "containerd://1.7.", sid: "containerd://2." } as const;
const CHOSEN = (process.env["RUNTIMES"] ?? "bookworm-runc,trixie-crun").split(",").map((name) => name.split("-") as [DebianRuntime["suite"], DebianRuntime["oci"]]);

/** One long story, on a machine that may be busy with others. */
const LONG_MS = 600_000;

afterAll(switchDown);

test.concurrent.for(CHOSEN.map(([suite, oci], i) => ({ suite, oci, address: `172.30.0.${71 + i}` })))("a node on $suite's containerd with $oci", { timeout: LONG_MS }, async ({ suite, oci, address }, { expect }) => {
  await using host = await Host.up(`${suite.slice(0, 3)}-${oci}`, address);
  const endpoint = await startDebianRuntime(host, { suite, oci });
  await host.start("--container-runtime-endpoint", endpoint);
  const kubectl = (...args: string[]) => host.kubectl(...args);
  const pod = async (name: string): Promise<Pod> => JSON.parse(await kubectl("get", "pod", name, "-o", "json")) as Pod;
  const container = ({ status }: Pod, name = "c"): ContainerStatus | undefined => [...(status?.containerStatuses ?? []), ...(status?.ephemeralContainerStatuses ?? [])].find((one) => one.name === name);
  const inside = (script: string) => kubectl("exec", "web", "-c", "c", "--", "sh", "-c", script);
  const get = (url: string) => host.sh(`curl -sf -m 15 ${url}`);
  const oneNode = (path: string) => kubectl("get", "--raw", `/api/v1/nodes/${host.name}/proxy${path}`);

  await eventually("the node is Ready", async () => (await kubectl("get", "nodes", "--no-headers")).includes(" Ready "));
  expect(await kubectl("get", "nodes", "-o", "jsonpath={.items[0].status.nodeInfo.containerRuntimeVersion}")).toContain(VERSIONS[suite]);
  const images = (file: string) => host.ok(["env", `CORACLE_CONTAINER_RUNTIME_ENDPOINT=${endpoint}`, host.binary, "images", "import", file]);
  expect(await images(`${host.dataDir}/agent/current/images/pause.tar`)).toBe("imported coracle.local/pause:1\n");
  expect(await images(host.bring(join(IMAGES, "busybox.tar")))).toBe("imported docker.io/library/busybox:1\n");
  expect(await host.ok(["env", `CORACLE_CONTAINER_RUNTIME_ENDPOINT=${endpoint}`, host.binary, "images", "list"])).toMatch(/^docker\.io\/library\/busybox:1\tsha256:[0-9a-f]{64}\tpinned$/m);
  await eventually("the default account is there", () => kubectl("get", "serviceaccount", "default"));
  await host.apply(readFileSync(join(import.meta.dirname, "runtimes.yaml"), "utf8"));

  // A pod with everything: its containers in their order, users, limits, volumes, addresses, ports, streams.
  await kubectl("wait", "pod/web", "--for=condition=Ready", "--timeout=300s");
  const ip = (await pod("web")).status?.podIP;
  expect(await inside("id -u; id -g; id -G; cat /www/index.html /map/colour /frozen; echo $COLOUR $IP; stat -f -c %T /ram; touch /x 2>&1; grep -E '^(CapEff|NoNewPrivs|Seccomp):' /proc/1/status | tr -s '\\t' ' '"))
    .toBe(`1000\n3000\n3000 2000\nfirst\nside\ngreengreengreen ${ip}\ntmpfs\ntouch: /x: Read-only file system\nCapEff: 0000000000000000\nNoNewPrivs: 1\nSeccomp: 2\n`);
  const limits = "cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null || cat /sys/fs/cgroup/cpu.max /sys/fs/cgroup/memory.max";
  expect(await inside(limits)).toMatch(/^20000( 100000)?\n67108864\n$/);
  const service = (await kubectl("get", "service", "web", "-o", "jsonpath={.spec.clusterIP}")).trim();
  for (const url of [`http://${ip}/`, `http://${service}/`, `http://${address}:30081/`, `http://${address}:8081/`]) expect(await get(url)).toBe("first\nside\n");
  expect((await kubectl("logs", "web", "-c", "c")).split("\n").toSorted()).toEqual(["", "err", "out"]);
  expect(await host.sh(`${host.binary} kubectl port-forward pod/web 18080:80 >/dev/null 2>&1 & for _ in $(seq 240); do curl -sf -m 15 http://127.0.0.1:18080/ && break; sleep 0.5; done; kill $!`)).toBe("first\nside\n");
  await eventually("a terminal answers", async () => (await host.sh(`(echo 'echo sum $((20+3))'; sleep 1) | timeout 20 ${host.binary} kubectl attach -q -i terminal -c c 2>&1; true`)).includes("sum 23"));
  expect((await host.run([host.binary, "kubectl", "exec", "web", "-c", "c", "--", "sh", "-c", "exit 9"])).code).toBe(9);

  // What ends, what cannot start, what is tried again.
  const ends = await eventually("all has ended", async () => { const one = await pod("ends"); return one.status?.phase === "Failed" && one; });
  expect(container(ends, "words")?.state?.terminated).toMatchObject({ exitCode: 3, reason: "Error", message: "bye\n" });
  expect(container(ends, "greedy")?.state?.terminated).toMatchObject({ exitCode: 137, reason: "OOMKilled" });
  expect(container(ends, "absent")?.state?.terminated).toMatchObject({ exitCode: 128, reason: "StartError" });
  await eventually("it waits", async () => { const one = container(await pod("again")); return one?.state?.waiting?.reason === "CrashLoopBackOff" && one.restartCount > 0 && one.lastState?.terminated?.exitCode === 7; });
  await eventually("what it said before is there", async () => (await kubectl("logs", "again", "--previous")) === "run\n"); // containerd writes it down after it tells the end
  expect(container(await pod("never"))?.state?.waiting?.reason).toBe("ErrImageNeverPull");
  await eventually("it cannot be pulled", async () => container(await pod("pull"))?.state?.waiting?.reason === "ImagePullBackOff");

  // While it runs: another container, other limits, measured, restarted when it is sick.
  await kubectl("debug", "web", "-q", "--image=busybox:1", "--target=c", "-c", "look", "--", "sh", "-c", "ps | grep -q '[h]ttpd -p 80' && echo seen");
  await eventually("it has looked", async () => container(await pod("web"), "look")?.state?.terminated?.exitCode === 0);
  expect(await kubectl("logs", "web", "-c", "look")).toBe("seen\n");
  await kubectl("patch", "pod", "web", "--subresource=resize", "-p", `{"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"300m"}}}]}}`);
  await eventually("it is resized", async () => container(await pod("web"))?.resources?.limits?.["cpu"] === "300m" && /^30000/.test(await inside(limits)));
  expect(container(await pod("web"))?.restartCount).toBe(0);
  await eventually("it is measured", async () => {
    const { pods } = JSON.parse(await oneNode("/stats/summary")) as { readonly pods: readonly { readonly podRef: { readonly name: string }; readonly network?: { readonly rxBytes?: number }; readonly containers?: readonly { readonly name: string; readonly cpu?: { readonly usageCoreNanoSeconds?: number }; readonly memory?: { readonly workingSetBytes?: number }; readonly rootfs?: { readonly usedBytes?: number } }[] }[] };
    const web = pods.find(({ podRef }) => podRef.name === "web"), one = web?.containers?.find(({ name }) => name === "c");
    return (web?.network?.rxBytes ?? 0) > 0 && (one?.cpu?.usageCoreNanoSeconds ?? 0) > 0 && (one?.memory?.workingSetBytes ?? 0) > 0 && one?.rootfs?.usedBytes !== undefined;
  });
  expect(await oneNode("/metrics/cadvisor")).toMatch(/^container_cpu_usage_seconds_total\{container="c".*pod="web"/m);
  await inside("touch /www/sick");
  await eventually("it is restarted", async () => container(await pod("web"))?.restartCount === 1 || undefined);
  await inside("rm /www/sick").catch(() => undefined);

  // Coracle is killed, containerd is: what runs goes on. Then all goes, with nothing left. (A shim that it was just starting is forgotten by containerd 1.6, and nobody's from then on: nothing is to start.)
  await kubectl("delete", "pod", "again");
  await kubectl("wait", "pod/web", "--for=condition=Ready", "--timeout=300s");
  const before = container(await pod("terminal"))?.containerID;
  await host.kill("KILL");
  await host.sh("kill -9 $(pgrep -f '^/run/debian/containerd --config')");
  await startDebianRuntime(host, { suite, oci });
  await host.start("--container-runtime-endpoint", endpoint);
  await eventually("the node is Ready", async () => (await kubectl("get", "nodes", "--no-headers")).includes(" Ready "));
  await kubectl("delete", "pods", "--all", "--wait=false");
  const log = host.sh(`${host.binary} kubectl logs -f web -c c; true`);
  expect(container(await pod("terminal"))).toMatchObject({ containerID: before, restartCount: 0 });
  await kubectl("wait", "pods", "--all", "--for=delete", "--timeout=300s");
  expect(await log).toMatch(/PRE\n(TERM\n)?$/);
  await eventually("nothing is left", async () => expect(await host.sh(`pgrep -af '[c]ontainerd-shim'; ls /sys/class/net | grep '^veth'; grep -o '${host.dataDir}/agent/kubelet/pods/[^ ]*' /proc/self/mountinfo; find /sys/fs/cgroup -type d -path '*kubepods*' -name 'pod*'; true`)).toBe("") ?? true);
  expect(host.log()).not.toMatch(/"level":"(fatal|error)"/);
});
