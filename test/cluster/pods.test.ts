/** Odd but legal pods on the compiled binary: what each says of itself, in upstream's words, and that the kernel agrees. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ContainerStatus, Pod } from "../../core/api/gen/core.v1.ts";
import { eventually, Host, switchDown } from "./host.ts";

const STATIC = (image: string, seconds: number) => `apiVersion: v1\nkind: Pod\nmetadata: {name: still}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers: [{name: c, image: "${image}", command: [sleep, "${seconds}"]}]\n`;
let host: Host;

beforeAll(async () => {
  host = await Host.up("pods", "172.30.0.61");
  await host.sh(`mkdir -p ${host.directory}/manifests`);
  await host.start("--kubelet-arg", `pod-manifest-path=${host.directory}/manifests`);
  await host.nodeReady();
  await host.importImage("busybox");
  await eventually("the default account is there", async () => host.kubectl("get", "serviceaccount", "default"));
  await host.apply(readFileSync(join(import.meta.dirname, "pods.yaml"), "utf8"));
});
afterAll(async () => {
  await host?.[Symbol.asyncDispose]();
  await switchDown();
});

const pod = async (name: string): Promise<Pod> => JSON.parse(await host.kubectl("get", "pod", name, "-o", "json")) as Pod;
const container = ({ status }: Pod, name = "c"): ContainerStatus | undefined => [...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? []), ...(status?.ephemeralContainerStatuses ?? [])].find((one) => one.name === name);
const told = async (): Promise<string[]> => (await host.kubectl("get", "events", "-o", "jsonpath={range .items[*]}{.involvedObject.name} {.type} {.reason} {.involvedObject.fieldPath} {.message}{'\\n'}{end}")).split("\n");
const inside = (name: string, script: string, from = "a"): Promise<string> => host.kubectl("exec", name, "-c", from, "--", "sh", "-c", script);
const failing = async (...args: string[]): Promise<string> => (await host.run([host.binary, "kubectl", ...args])).stderr.trim();

const REFUSED: Readonly<Record<string, readonly [string, string]>> = {
  "bad-place": ["NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"],
  "bad-os": ["PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS"],
  "bad-port": ["NodePorts", "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"],
};
const NOT_STARTED: Readonly<Record<string, readonly [string, string, string]>> = {
  "bad-image": ["InvalidImageName", "InspectFailed", `Failed to apply default image tag "Example/NONE:1": couldn't parse image name "Example/NONE:1": invalid reference format: repository name (NONE) must be lowercase`],
  "bad-never": ["ErrImageNeverPull", "ErrImageNeverPull", `Container image "example.invalid/none:1" is not present with pull policy of Never`],
  "bad-map": ["CreateContainerConfigError", "Failed", `Error: configmap "nobody" not found`],
  "bad-key": ["CreateContainerConfigError", "Failed", "Error: couldn't find key nope in Secret default/door"],
  "bad-user": ["CreateContainerConfigError", "Failed", "Error: container has runAsNonRoot and image will run as root (pod: "],
  "bad-path": ["CreateContainerConfigError", "Failed", "Error: missing value for NOBODY"],
  "bad-pull": ["ImagePullBackOff", "BackOff", `Back-off pulling image "127.0.0.1:9/none:1"`],
};

test("kubectl shows at a glance what every pod waits for, has been refused for, or has come to", async () => {
  const expected: Record<string, string> = {
    ...Object.fromEntries([...Object.entries(NOT_STARTED), ...Object.entries(REFUSED)].map(([name, [reason]]) => [name, `0/1 ${reason}`])),
    "bad-command": "0/1 StartError", "bad-volume": "0/1 ContainerCreating", "end-well": "0/2 Completed", "end-early": "0/1 Init:Error",
  };
  await eventually("all of them do", async () => {
    const lines = (await host.kubectl("get", "pods", "--no-headers")).split("\n").map((line) => line.split(/\s+/));
    for (const [name, ready, status] of lines) if (expected[name ?? ""] === `${ready} ${status}`) delete expected[name!]; // each at some moment
    return Object.keys(expected).length === 0;
  }).catch((cause: unknown) => { throw new Error(JSON.stringify(expected), { cause }); });
});

test("why it is so stands in the pod and in its events, in upstream's words", async () => {
  const events = await told();
  const all = (JSON.parse(await host.kubectl("get", "pods", "-o", "json")) as { readonly items: Pod[] }).items;
  const seen = (name: string): Pod => all.find(({ metadata }) => metadata.name === name)!;
  for (const [name, [reason, event, message]] of Object.entries(NOT_STARTED)) {
    const { status } = seen(name);
    expect([name, status?.phase, container({ status } as Pod)?.state?.waiting?.message]).toEqual([name, "Pending", reason === "ImagePullBackOff" ? expect.anything() : expect.stringContaining(message.replace("Error: ", ""))]);
    expect(events).toContainEqual(expect.stringContaining(`${name} Warning ${event} spec.containers{c} ${message}`.replace("Warning BackOff", "Normal BackOff")));
  }
  for (const [name, [reason, message]] of Object.entries(REFUSED)) {
    expect(seen(name).status).toMatchObject({ phase: "Failed", reason, message: `Pod was rejected: ${message}` });
    expect(events).toContain(`${name} Warning ${reason}  ${message}`);
  }
  expect(container(seen("bad-pull"))?.state?.waiting?.message).toMatch(/^(Back-off pulling image "127\.0\.0\.1:9\/none:1": ErrImagePull: )?.*connection refused$/);
  for (const text of ["bad-pull Warning Failed spec.containers{c} Error: ErrImagePull", "bad-pull Warning Failed spec.containers{c} Error: ImagePullBackOff"]) expect(events).toContain(text);
  expect(events).toContain("bad-pull Warning FailedToRetrieveImagePullSecret  Unable to retrieve some image pull secrets (nobody); attempting to pull the image may not succeed.");
  expect(events).toContain(`bad-volume Warning FailedMount  MountVolume.SetUp failed for volume "v" : references non-existent secret key: nope`);
  expect(container(seen("bad-command"))?.state?.terminated)
    .toMatchObject({ reason: "StartError", exitCode: 128, startedAt: "1970-01-01T00:00:00Z", message: expect.stringContaining(`exec: "/no/such": stat /no/such: no such file or directory`) });
  await eventually("a hook has failed", async () => (await told()).includes("bad-hook Warning FailedPostStartHook spec.containers{c} PostStartHook failed"));
  await eventually("its container ended", async () => (await told()).includes("bad-hook Normal Killing spec.containers{c} FailedPostStartHook"));
});

test("what ends leaves its exit code and its last words, from a file or from the log, and no more than there is room for", async () => {
  const well = await eventually("all is done", async () => { const one = await pod("end-well"); return one.status?.phase === "Succeeded" && one; });
  expect(container(well, "file")?.state?.terminated).toMatchObject({ exitCode: 0, reason: "Completed" });
  expect(container(well, "file")?.state?.terminated?.message).toHaveLength(4096);
  expect(container(well, "own")).toMatchObject({ restartCount: 0, state: { terminated: { message: "bye\n" } } });
  const badly = await eventually("all has ended", async () => { const one = await pod("end-badly"); return one.status?.phase === "Failed" && one; });
  expect(container(badly, "logs")?.state?.terminated).toMatchObject({ exitCode: 3, reason: "Error", message: Array.from({ length: 80 }, (_, i) => `${i + 921}\n`).join("") });
  expect(container(badly, "long")?.state?.terminated?.message).toHaveLength(2048);
  expect(container(badly, "greedy")?.state?.terminated).toMatchObject({ exitCode: 137, reason: "OOMKilled" });
  expect((await eventually("its time is up", async () => { const one = await pod("end-late"); return one.status?.phase === "Failed" && one; })).status).toMatchObject({ reason: "DeadlineExceeded", message: "Pod was active on the node longer than the specified deadline" });
  const early = await eventually("its first init container fails", async () => { const one = await pod("end-early"); return one.status?.phase === "Failed" && one; });
  expect([container(early, "first")?.state?.terminated?.exitCode, container(early, "second")?.state?.waiting?.reason, container(early)?.state?.waiting?.reason]).toEqual([1, "PodInitializing", "PodInitializing"]);
});

test("what keeps ending is restarted, with its volumes as they were, later each time; the log of the run before is kept", async () => {
  const again = await eventually("it waits", async () => { const one = await pod("end-again"); return container(one)?.state?.waiting?.reason === "CrashLoopBackOff" && (container(one)?.restartCount ?? 0) >= 1 && one; });
  const { state, lastState, restartCount } = container(again)!;
  expect([state?.waiting?.message, lastState?.terminated?.exitCode, again.status?.phase]).toEqual([expect.stringMatching(/^back-off [\dms]+ restarting failed container=c pod=end-again_default\(/), 7, "Running"]);
  const read = await eventually("a log is read while nothing runs", async () => {
    const before = container(await pod("end-again")), log = await host.kubectl("logs", "end-again"), after = container(await pod("end-again"));
    return before?.state?.waiting && after?.state?.waiting && before.restartCount === after.restartCount && { log, restartCount: after.restartCount };
  });
  expect(read.restartCount).toBeGreaterThanOrEqual(restartCount);
  expect(read.log).toBe(`run ${read.restartCount}\n`);
  expect(await host.kubectl("logs", "end-again", "--previous")).toMatch(/^run \d+\n$/);
  expect(await told()).toContainEqual(expect.stringMatching(/^end-again Warning BackOff spec\.containers\{c\} Back-off restarting failed container c in pod end-again_default\(/));
});

test("volumes of every source: modes, links, groups, what may be written and what not", async () => {
  await host.kubectl("wait", "pod/files", "--for=condition=Ready", "--timeout=300s");
  expect(await inside("files", "cat /ed/order")).toBe("one\nside\ntwo\napp\n");
  expect(await inside("files", "cat /map/app.conf /map/colour; ls -A /map; readlink /map/colour; readlink /map/..data")).toMatch(/^a: 1\n\n {2}b: 2\ngreen\.\.2\S+\n\.\.data\napp\.conf\ncolour\n\.\.data\/colour\n\.\.2\S+\n$/);
  expect(await inside("files", "cat /secret/deep/er/user /secret/.hidden; ls -A /secret | grep -v '^\\.\\.'; stat -Lc '%a %u %g' /secret/deep/er/user /secret/.hidden")).toBe("bobdot.hidden\ndeep\n444 0 2000\n440 0 2000\n");
  expect(await inside("files", "stat -f -c %T /secret /ram; stat -c '%a %g' /ed /map; id -u; id -g; id -G; touch /ed/mine; stat -c '%u %g' /ed/mine; ls -d /ed/files/x")).toBe("tmpfs\ntmpfs\n2777 2000\n2777 2000\n1000\n3000\n3000 2000\n1000 2000\n/ed/files/x\n");
  expect(await inside("files", "for d in secret all map; do touch /$d/x 2>&1; done; dd if=/dev/zero of=/ram/big bs=1k count=2000 2>&1 | head -1; rm /ram/big")).toMatch(/(Read-only file system[\s\S]*){3}No space left on device/);
  expect(await inside("files", "cat /all/s/user /all/c/colour /all/labels /all/memory; cut -c1-2 /all/token; stat -Lc %a:%u /all/token; grep -c 'quote=\"a \\\\\"b\\\\\"\"' /all/annotations")).toBe(`bobgreenapp="files"67108864ey\n640:1000\n1\n`);
  expect(await inside("files", "ls /ed; ls /secret 2>&1 | head -1", "b")).toMatch(/order[\s\S]*No such file/);
});

test("a container knows its name, its addresses, its resources and the Services", async () => {
  const { status } = await pod("files");
  const environment = Object.fromEntries((await inside("files", "env")).split("\n").map((line) => line.split("=", 2)));
  expect(environment).toMatchObject({ POD: "files", COLOUR: "green", CPU: "200", MEMORY: "64", WHERE: "pods", IP: status?.podIP, DOOR_user: "bob", PROBED_SERVICE_PORT: "80", KUBERNETES_SERVICE_PORT: "443" });
  expect(environment).not.toHaveProperty("MAYBE");
  expect(await host.kubectl("logs", "files", "-c", "a")).toBe("$(COST) files $(NOBODY)\n");
  expect(await inside("files", "hostname; hostname -f; wget -qO- http://127.0.0.1:8080/order | head -1", "b")).toBe("shed\nshed.yard.default.svc.cluster.local\none\n");
  expect(await inside("files", "cat /var/run/secrets/kubernetes.io/serviceaccount/namespace; ls /var/run/secrets/kubernetes.io/serviceaccount")).toBe("defaultca.crt\nnamespace\ntoken\n");
  expect(await inside("files", "cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us /sys/fs/cgroup/cpu/cpu.shares /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null || cat /sys/fs/cgroup/cpu.max /sys/fs/cgroup/cpu.weight /sys/fs/cgroup/memory.max")).toMatch(/^(20000\n51\n|20000 100000\n\d+\n)104857600\n$/);
});

test("volumes follow their ConfigMap and Secret, as a whole; subPath and variables do not; what is deleted stays mounted", async () => {
  await host.kubectl("patch", "configmap", "settings", "-p", `{"data":{"colour":"blue"}}`);
  await host.kubectl("patch", "secret", "door", "-p", `{"stringData":{"user":"eve"}}`);
  await eventually("the volumes have followed", async () => (await inside("files", "cat /map/colour /all/c/colour /secret/deep/er/user")) === "bluebluee" + "ve");
  expect(await inside("files", "cat /frozen; echo $COLOUR $DOOR_user")).toBe("greengreen bob\n");
  await host.kubectl("delete", "configmap", "settings");
  expect(await inside("files", "cat /map/colour")).toBe("blue");
});

test("probes start, gate, and restart; an endpoint is ready when its pod is", async () => {
  const ready = async () => host.kubectl("get", "endpointslices", "-l", "kubernetes.io/service-name=probed", "-o", "jsonpath={.items[*].endpoints[*].conditions.ready}");
  const conditions = async () => Object.fromEntries(((await pod("probed")).status?.conditions ?? []).map(({ type, status }) => [type, status]));
  await eventually("its containers are ready", async () => (await conditions())["ContainersReady"] === "True");
  expect([await conditions(), await ready()]).toEqual([expect.objectContaining({ Ready: "False", Initialized: "True", PodScheduled: "True", PodReadyToStartContainers: "True" }), "false"]);
  await host.kubectl("patch", "pod", "probed", "--subresource=status", "-p", `{"status":{"conditions":[{"type":"example.com/gate","status":"True"}]}}`);
  await eventually("the gate is open", async () => (await conditions())["Ready"] === "True" && (await ready()) === "true");
  await inside("probed", "mv /www/ok /www/no", "web");
  await eventually("it is no longer ready", async () => (await conditions())["Ready"] === "False" && (await ready()) === "false");
  expect(container(await pod("probed"), "web")?.restartCount).toBe(0);
  await inside("probed", "touch /tmp/sick", "web");
  await eventually("it is restarted, and well", async () => container(await pod("probed"), "web")?.restartCount === 1 && (await conditions())["Ready"] === "True");
  const events = await told();
  for (const text of ["probed Warning Unhealthy spec.containers{web} Readiness probe failed: HTTP probe failed with statuscode: 404", "probed Normal Killing spec.containers{web} Container web failed liveness probe, will be restarted"]) expect(events).toContain(text);
});

test("preStop comes before the signal, and both within the grace period; asked again, it is gone sooner", async () => {
  await host.kubectl("wait", "pod/hurried", "--for=condition=Ready", "--timeout=300s");
  const log = host.sh(`${host.binary} kubectl logs -f hurried`);
  await host.kubectl("delete", "pod", "hurried");
  expect(await log).toBe("PRE\nTERM\ngone\n"); // its hook was not waited for
  const { metadata } = await pod("chatty");
  await host.kubectl("delete", "pod", "ported", "--grace-period=0", "--force");
  expect(await failing("get", "pod", "ported")).toContain(`pods "ported" not found`);
  await eventually("its containers are gone too", async () => !(await host.ok([host.binary, "crictl", "ps"])).includes("ported"));
  expect(metadata.deletionTimestamp).toBeUndefined();
});

test("logs, by container, time, line and byte; why there are none", async () => {
  const logs = (...args: string[]) => host.kubectl("logs", "chatty", ...args);
  expect((await logs("-c", "a", "--tail=2")).split("\n").toSorted()).toEqual(["", "err", "out 100"]);
  expect(await logs("-c", "a", "--limit-bytes=9")).toBe("out 1\nout");
  expect(await logs("-c", "a", "--tail=1", "--timestamps")).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z (err|out 100)\n$/);
  expect(await logs("-c", "a", "--since-time=2100-01-01T00:00:00Z")).toBe("");
  expect(await logs("--all-containers", "--prefix", "--tail=1")).toMatch(/^\[pod\/chatty\/a\] /m);
  expect(await failing("logs", "chatty", "-c", "a", "--previous")).toBe(`Error from server (BadRequest): previous terminated container "a" in pod "chatty" not found`);
  expect(await failing("logs", "bad-map")).toBe(`Error from server (BadRequest): container "c" in pod "bad-map" is waiting to start: CreateContainerConfigError`);
  expect(await failing("get", "--raw", "/api/v1/namespaces/default/pods/chatty/log")).toBe("Error from server (BadRequest): a container name must be specified for pod chatty, choose one of: [a b]");
  const target = (await host.sh(`ls /var/log/pods/default_chatty_*/a/0.log`)).trim();
  expect(await host.sh(`head -1 ${target}`)).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-][\d:]+) stdout F out 1\n$/);
});

test("a debugging container sees its target, runs once, and stays as it is", async () => {
  await host.kubectl("debug", "files", "-q", "--image=busybox:1", "--target=a", "-c", "look", "--", "sh", "-c", "ps | grep -v ps");
  const seen = await eventually("it has looked", async () => { const one = await pod("files"); return container(one, "look")?.state?.terminated && one; });
  expect(container(seen, "look")).toMatchObject({ restartCount: 0, ready: false, state: { terminated: { exitCode: 0, reason: "Completed" } } });
  expect(await host.kubectl("logs", "files", "-c", "look")).toContain("httpd -f -p 8080");
  expect(await failing("patch", "pod", "files", "--subresource=ephemeralcontainers", "--type=json", "-p", `[{"op":"remove","path":"/spec/ephemeralContainers/0"}]`)).toContain(`existing ephemeral containers "look" may not be removed`);
});

test("on the node's network a pod is where the node is; attached, a terminal answers; in a pod that is not running nothing does", async () => {
  expect((await pod("chatty")).status).toMatchObject({ podIP: "172.30.0.61", hostIP: "172.30.0.61" });
  expect(await inside("chatty", "hostname")).toBe("pods\n");
  await eventually("a terminal answers", async () => (await host.sh(`(echo 'echo sum $((20+3))'; sleep 1) | timeout 20 ${host.binary} kubectl attach -q -i chatty -c b 2>&1; true`)).includes("sum 23"));
  expect(await failing("exec", "bad-map", "--", "true")).toContain(`container not found ("c")`);
  expect(await failing("exec", "end-well", "-c", "own", "--", "true")).toContain("cannot exec into a container in a completed pod; current phase is Succeeded");
  const pid = async () => (await pod("files")).status?.podIP;
  expect(await pid()).not.toBe((await pod("probed")).status?.podIP);
});

test("a pod from a file: it is mirrored, the API cannot end it, the file can", async () => {
  const file = `${host.directory}/manifests/still.yaml`;
  const write = (text: string) => host.sh(`cat > ${file} <<'EOF'\n${text}EOF`);
  const running = async () => { const one = await pod("still-pods"); return container(one)?.state?.running && one; };
  await write(STATIC("busybox:1", 901));
  const first = await eventually("it runs, and is shown", running);
  expect(first.metadata).toMatchObject({ annotations: { "kubernetes.io/config.source": "file", "kubernetes.io/config.mirror": expect.any(String) }, ownerReferences: [{ kind: "Node", name: "pods", controller: true }] });
  await host.kubectl("delete", "pod", "still-pods", "--force", "--grace-period=0");
  const second = await eventually("it is shown again", running);
  expect([container(second)?.containerID, second.metadata.uid === first.metadata.uid]).toEqual([container(first)?.containerID, false]);
  await write(STATIC("busybox:1", 902));
  await eventually("another one runs", async () => { const one = await running(); return one && one.spec.containers[0]?.command?.[1] === "902"; });
  await host.sh(`rm ${file}`);
  await eventually("it is gone", async () => (await failing("get", "pod", "still-pods")).includes("not found"));
});
