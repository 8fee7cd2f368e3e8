/** Two machines join a third one; then their server goes away, one of them loses its power, and the server comes back. */
import { mkdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Pod } from "../../core/api/gen/core.v1.ts";
import { eventually, Host, switchDown } from "./host.ts";

const SERVER = "https://172.30.0.21:6443";
let boss: Host;
let a: Host;
let b: Host;
let token: string;

beforeAll(async () => {
  [boss, a, b] = await Promise.all([Host.up("boss", "172.30.0.21"), Host.up("limb-a", "172.30.0.22"), Host.up("limb-b", "172.30.0.23")]);
  await boss.start();
  await boss.nodeReady();
  token = await newToken();
});
afterAll(async () => {
  await Promise.all([boss, a, b].map((host) => host?.[Symbol.asyncDispose]()));
  await switchDown();
});

const newToken = async (...flags: string[]): Promise<string> => (await boss.ok([boss.binary, "token", "create", ...flags])).trim();
const json = async <T>(...args: string[]): Promise<T> => JSON.parse(await boss.kubectl("get", ...args, "-o", "json")) as T;
const isReady = async (name: string): Promise<boolean> => / Ready /.test(await boss.kubectl("get", "node", name, "--no-headers"));
const page = async (host: Host, url: string): Promise<string> => await host.ok(["curl", "-sS", "-m", "15", url]);
/** What an agent that cannot join says as it ends. */
const refusal = async (host: Host, ...flags: string[]): Promise<string> => {
  const { code, stderr } = await host.run(["timeout", "-k", "1", "120", host.binary, "agent", "--server", SERVER, "--log-level", "error", "--data-dir", join(host.directory, "other"), "--node-name", host.name, ...flags]);
  expect(code).toBe(1);
  return stderr;
};
const containers = async (host: Host): Promise<string[]> => (await host.ok([host.binary, "crictl", "ps"])).trim().split("\n").slice(1).map((line) => line.split(/ {3,}/)[0]!).sort();

test("tokens are made, listed without their secret, and deleted", async () => {
  const id = /^K10[0-9a-f]{64}::([a-z0-9]{6})\.[a-z0-9]{16}$/.exec(token)?.[1];
  const spare = await newToken("--ttl", "0", "--description", "for the shed");
  const list = await boss.ok([boss.binary, "token", "list"]);
  expect(list).toContain(id);
  expect(list).toMatch(/forever +- +\S+ +for the shed/);
  expect(list).not.toContain(token.slice(-16));
  expect(await boss.ok([boss.binary, "token", "delete", spare])).toMatch(/^token [a-z0-9]{6} deleted\n$/);
  const kept = join(boss.dataDir, "server/token");
  expect(statSync(kept).mode & 0o777).toBe(0o600);
  expect(readFileSync(kept, "utf8")).toMatch(new RegExp(`^${token.slice(0, 67)}::[0-9a-f]{32}\n$`));
});

test("a machine that may not join is told why", async () => {
  const wrong = `K10${"0".repeat(64)}${token.slice(67)}`;
  expect(await refusal(a, "--token", wrong)).toContain(`is not the server of this token: the token names a CA with the SHA-256 ${"0".repeat(64)}, the server has ${token.slice(3, 67)}`);
  expect(await refusal(a, "--token", `${token.slice(0, -16)}aaaaaaaaaaaaaaaa`)).toContain("does not accept the token: it is unknown there, or has expired");
  const short = await newToken("--ttl", "1s");
  await Bun.sleep(1500);
  expect(await refusal(a, "--token", short)).toContain("does not accept the token: it is unknown there, or has expired");
  expect(await refusal(a)).toContain("it needs --token");
  expect(await refusal(a, "--token", token, "--node-name", "boss")).toContain("node boss is another machine, and alive: give this one another name with --node-name");
});

test("two machines join, and are Ready within seconds", async () => {
  const startMs = performance.now();
  await Promise.all([a, b].map((host) => host.startAgent("--server", SERVER, "--token", token)));
  await eventually("both agents are Ready", async () => (await isReady("limb-a")) && (await isReady("limb-b")));
  console.log(`joined and Ready after ${((performance.now() - startMs) / 1000).toFixed(1)} s, two at once`);
  expect(await refusal(b, "--token", token, "--node-name", "limb-a")).toContain("node limb-a is another machine: give this one another name with --node-name or, if it replaces the other, delete that first: kubectl delete node limb-a");
  for (const path of ["agent/tls/client-kubelet.key", "agent/checkpoint/journal"]) expect(statSync(join(a.dataDir, path)).mode & 0o777).toBe(0o600);
});

test("a machine that has nothing but curl joins by one line, with what the server gives it, and is rid of all of it again", async () => {
  await using bare = await Host.up("limb-c", "172.30.0.24");
  await bare.ok(["sh", "-c", 'for d in usr/local var/log; do mkdir -p "$0/$d.up" "$0/$d.work"; mount -t overlay overlay -o "lowerdir=/$d,upperdir=$0/$d.up,workdir=$0/$d.work" "/$d"; done', bare.directory]);
  const line = await newToken("--print-join-command");
  expect(line).toMatch(/^curl -fsSk --pinnedpubkey 'sha256\/\/[A-Za-z0-9+/]{43}=' https:\/\/172\.30\.0\.21:6443\/install\.sh \| CORACLE_TOKEN=K10[0-9a-f]{64}::[a-z0-9.]{23} sh -$/);
  const joins = (command: string) => bare.run(["sh", "-c", `export TMPDIR="$0"; ${command}`, bare.directory]);
  expect((await joins(line.replace(/sha256..[^']*/, `sha256//${"A".repeat(43)}=`))).stderr).toContain("pinned public key");
  expect((await joins(line.replace(/K10[0-9a-f]{64}/, `K10${"0".repeat(64)}`))).stderr).toBe(`[coracle] ${SERVER} is not the server of this token: the token is of another cluster, or somebody stands between\n`);
  expect((await joins(line.replace(/[a-z0-9]{16} sh -$/, "aaaaaaaaaaaaaaaa sh -"))).stderr).toBe(`[coracle] ${SERVER} refuses the token: it is wrong, or it has expired\n`);
  const { code, stdout, stderr } = await joins(line.replace(/sh -$/, `sh -s - --node-name limb-c --data-dir ${bare.dataDir}`));
  expect(code, stdout + stderr).toBe(0);
  expect(stdout).toMatch(/fetching the executable for linux-x64 from https:[\s\S]*installed \/usr\/local\/bin\/coracle[\s\S]*node limb-c is Ready after \d+ s/);
  expect(await isReady("limb-c")).toBe(true);
  expect(await bare.ok(["find", bare.directory, "-maxdepth", "1", "-name", "coracle*.*"])).toBe("");
  expect(await bare.ok(["coracle-uninstall"])).toMatch(/Coracle is uninstalled: \d+ things removed\./);
  await boss.kubectl("delete", "node", "limb-c");
});

test("an agent may do what a node may do, and nothing else", async () => {
  const tls = join(a.dataDir, "agent/tls");
  const asNode = (...args: string[]) => a.run([a.binary, "kubectl", "--kubeconfig", "/dev/null", "--server", SERVER, "--certificate-authority", join(tls, "server-ca.crt"), "--client-certificate", join(tls, "client-kubelet.crt"), "--client-key", join(tls, "client-kubelet.key"), ...args]);
  expect((await asNode("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")).stdout).toBe("system:node:limb-a");
  expect((await asNode("get", "secrets", "-A")).stderr).toContain('User "system:node:limb-a" cannot list resource "secrets" in API group "" at the cluster scope');
  expect((await asNode("label", "node", "limb-b", "x=y")).stderr).toContain('node "limb-a" is not allowed to modify node "limb-b"');
  expect((await asNode("delete", "node", "limb-a")).stderr).toContain("forbidden");
});

const web = (host: string, port: number): string => `
apiVersion: apps/v1
kind: Deployment
metadata: {name: ${host}}
spec:
  replicas: 2
  selector: {matchLabels: {app: ${host}}}
  template:
    metadata: {labels: {app: ${host}, web: all}}
    spec:
      nodeSelector: {kubernetes.io/hostname: ${host}}
      terminationGracePeriodSeconds: 1
      containers:
      - name: httpd
        image: busybox:1
        imagePullPolicy: IfNotPresent
        command: [sh, -c, "cat /page/index.html /door/password > /www/index.html; exec httpd -f -p 8080 -h /www"]
        ports: [{name: http, containerPort: 8080}]
        readinessProbe: {httpGet: {path: /, port: http}, periodSeconds: 1}
        volumeMounts: [{name: www, mountPath: /www}, {name: page, mountPath: /page}, {name: door, mountPath: /door}]
      volumes:
      - {name: www, emptyDir: {}}
      - {name: page, configMap: {name: page}}
      - {name: door, secret: {secretName: door}}
---
apiVersion: v1
kind: Service
metadata: {name: ${host}}
spec: {type: NodePort, selector: {app: ${host}}, ports: [{port: 80, targetPort: http, nodePort: ${port}}]}
---
`;
/** Asks, by name, for a service of its own node and one of the other, and writes down whether and when. */
const asker = (host: Host, other: Host): string => `
apiVersion: v1
kind: Pod
metadata: {name: asker-${host.name}}
spec:
  nodeSelector: {kubernetes.io/hostname: ${host.name}}
  terminationGracePeriodSeconds: 0
  containers:
  - name: asker
    image: busybox:1
    imagePullPolicy: IfNotPresent
    command: [sh, -c, "echo asking; while :; do for s in ${host.name} ${other.name}; do wget -T 2 -qO /dev/null http://$s.default.svc.cluster.local/ 2>/dev/null && date +%s > /told/$s; done; sleep 1; done"]
    volumeMounts: [{name: told, mountPath: /told}]
  volumes: [{name: told, hostPath: {path: ${join(host.directory, "told")}}}]
---
`;
/** Resolves when the asker of `host` has reached the service of `other` from now on. */
async function reaches(host: Host, other: Host): Promise<void> {
  const now = Math.ceil(Date.now() / 1000);
  await eventually(`a pod of ${host.name} reaches the service of ${other.name} by name`, async () => Number(readFileSync(join(host.directory, "told", other.name), "utf8")) >= now);
}

test("pods, Services, DNS and NodePorts work from and to every node; logs and exec reach agents", async () => {
  for (const host of [a, b]) {
    mkdirSync(join(host.directory, "told"), { recursive: true });
    await host.importImage("busybox");
  }
  await boss.kubectl("create", "configmap", "page", "--from-literal=index.html=hello ");
  await boss.kubectl("create", "secret", "generic", "door", "--from-literal=password=open-sesame");
  await boss.apply(web("limb-a", 30081) + web("limb-b", 30082) + asker(a, b) + asker(b, a));
  await boss.kubectl("wait", "--for=condition=Available", "deployment", "--all", "--timeout=300s");
  await Promise.all([reaches(a, a), reaches(a, b), reaches(b, a), reaches(b, b)]);
  for (const from of [boss, a, b]) for (const at of [boss, a, b]) expect(await page(from, `http://${at.address}:30081/`)).toBe("hello open-sesame");
  expect(await boss.kubectl("exec", "deploy/limb-b", "--", "cat", "/www/index.html")).toBe("hello open-sesame");
  expect(await boss.kubectl("logs", "asker-limb-a")).toBe("asking\n");
});

test("without the server everything on the agents goes on", async () => {
  const before = await Promise.all([a, b].map(containers));
  await boss.kill("KILL");
  await Bun.sleep(3000);
  await Promise.all([reaches(a, a), reaches(a, b), reaches(b, a), reaches(b, b)]);
  expect(await page(b, "http://172.30.0.22:30082/")).toBe("hello open-sesame");
  expect(await Promise.all([a, b].map(containers))).toEqual(before);
});

let sinceReboot: string[];

test("an agent that loses its power while the server is away brings its pods back by itself", async () => {
  await a.reboot();
  expect((await a.run([a.binary, "crictl", "ps"])).code).not.toBe(0);
  const startMs = performance.now();
  await a.startAgent("--server", SERVER); // the token is not needed any more
  await Promise.all([reaches(a, a), reaches(a, b), reaches(b, a)]);
  console.log(`pods of a rebooted agent work after ${((performance.now() - startMs) / 1000).toFixed(1)} s, without a server`);
  await eventually("both pods serve", async () => (await containers(a)).length === 3);
  for (const from of [a, b]) expect(await page(from, "http://172.30.0.22:30081/")).toBe("hello open-sesame");
  sinceReboot = await containers(a);
});

test("the server comes back, and nothing is rebuilt", async () => {
  const untouched = await containers(b);
  const startMs = performance.now();
  await boss.start();
  await eventually("the server knows the pods' restarts", async () => {
    const { items } = await json<{ items: Pod[] }>("pods");
    const restarts = (host: string): number[] => items.filter((pod) => pod.spec.nodeName === host).map((pod) => pod.status?.containerStatuses?.[0]?.restartCount ?? -1);
    return restarts("limb-a").join() === "1,1,1" && restarts("limb-b").join() === "0,0,0" && items.every((pod) => pod.status?.containerStatuses?.[0]?.ready);
  });
  await eventually("all nodes are Ready", async () => (await Promise.all(["boss", "limb-a", "limb-b"].map(isReady))).every(Boolean));
  console.log(`the server has the truth again ${((performance.now() - startMs) / 1000).toFixed(1)} s after its start`);
  expect(await containers(a)).toEqual(sinceReboot);
  expect(await containers(b)).toEqual(untouched);
  expect(await boss.kubectl("exec", "deploy/limb-a", "--", "cat", "/www/index.html")).toBe("hello open-sesame");
  await boss.kubectl("scale", "deployment", "limb-a", "--replicas=1"); // and is in charge
  await eventually("a pod of the agent ends", async () => (await containers(a)).length === 2);
  await Promise.all([reaches(a, b), reaches(b, a)]);
});

/** All three start again, so that agents read the cluster's settings anew; pods stay. */
async function changeOverlay(overlay: string): Promise<void> {
  await Promise.all([boss, a, b].map((host) => host.kill("TERM")));
  await boss.start("--overlay", overlay);
  await eventually("the server is ready", async () => (await boss.kubectl("get", "--raw", "/readyz")) === "ok");
  await Promise.all([a, b].map((host) => host.startAgent("--server", SERVER)));
}
const routes = async (host: Host): Promise<string[]> => (await host.ok(["ip", "-4", "route", "show", "root", "10.42.0.0/16"])).trim().split("\n").filter((line) => !line.includes("dev cni0")).map((line) => line.replace(/ +$/, "").replace(/ proto \S+/, "")).sort();
const podCidr = async (host: Host): Promise<string> => (await boss.kubectl("get", "node", host.name, "-o", "jsonpath={.spec.podCIDR}")).trim();
const hasTunnel = async (host: Host): Promise<boolean> => (await host.run(["ip", "link", "show", "coracle-vxlan"])).code === 0;

test("a running cluster changes from vxlan to host-gw, to none, and back; no container is restarted", async () => {
  const before = await Promise.all([a, b].map(containers));
  const cidrs = await Promise.all([boss, a, b].map(podCidr));
  const others = (host: Host) => [boss, a, b].flatMap((one, i) => (one === host ? [] : [`${cidrs[i]} via ${one.address} dev eth0`])).sort();
  expect(await Promise.all([boss, a, b].map(hasTunnel))).toEqual([true, true, true]);

  await changeOverlay("host-gw");
  for (const host of [boss, a, b]) await eventually(`${host.name} has routes by way of the other nodes, and no tunnel`, async () => (await routes(host)).join() === others(host).join() && !(await hasTunnel(host)));
  await Promise.all([reaches(a, b), reaches(b, a)]);
  for (const from of [boss, a, b]) expect(await page(from, `http://${a.address}:30082/`)).toBe("hello open-sesame");

  await changeOverlay("none");
  for (const host of [boss, a, b]) await eventually(`${host.name} has nothing of ours`, async () => (await routes(host)).length === 0 && !(await hasTunnel(host)));
  expect((await boss.run(["curl", "-sS", "-m", "2", `http://${boss.address}:30082/`])).code).not.toBe(0);
  for (const host of [boss, a, b]) for (const route of others(host)) await host.sh(`ip route add ${route}`); // somebody else's business: the test's
  await Promise.all([reaches(a, b), reaches(b, a)]);
  for (const host of [boss, a, b]) expect(await routes(host)).toEqual(others(host));

  for (const host of [boss, a, b]) for (const route of others(host)) await host.sh(`ip route del ${route}`);
  await changeOverlay("vxlan");
  await Promise.all([reaches(a, b), reaches(b, a)]);
  for (const host of [boss, a, b]) await eventually(`${host.name} has a tunnel`, () => hasTunnel(host));
  expect(await Promise.all([a, b].map(containers))).toEqual(before);
});

test("a revoked node is refused at once, cannot join again though it has a token, and may when it is allowed to", async () => {
  const node = async (...words: string[]): Promise<string> => await boss.ok([boss.binary, "node", ...words]);
  expect(await boss.run([boss.binary, "node", "revoke", "boss"])).toMatchObject({ code: 2, stderr: expect.stringContaining("node boss is a server") });
  expect(await boss.run([boss.binary, "node", "revoke", "limb-bb"])).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining('Error from server (NotFound): nodes "limb-bb" not found') });
  expect(await node("list")).not.toContain("limb-bb");
  expect(await node("revoke", "limb-b")).toBe("node limb-b revoked: its certificates are refused from now on, and its Node is deleted\n");
  await eventually("the agent is told", async () => b.log().includes("node limb-b was revoked at "));
  await Bun.sleep(15_000); // informers ask again by then
  const told = b.log().split("\n").filter((line) => line.includes("node limb-b was revoked at "));
  expect(told).toMatchObject([expect.stringContaining('"msg":"the API server does not accept this node"')]);
  expect(await boss.kubectl("get", "nodes", "-o", "name")).toBe("node/boss\nnode/limb-a\n");

  await b.kill("TERM");
  const again = await newToken();
  await b.startAgent("--server", SERVER, "--token", again);
  await eventually("its request is denied", async () => (await json<{ items: { status?: { conditions?: { reason?: string }[] } }[] }>("csr")).items.some(({ status }) => status?.conditions?.[0]?.reason === "NodeRevoked"));
  expect(await node("allow", "limb-b")).toBe("node limb-b: a machine may join under this name again, with a token\n");
  await b.kill("TERM");
  await b.startAgent("--server", SERVER, "--token", again);
  await eventually("it is a node again", async () => isReady("limb-b"));
  expect(await node("list")).toMatch(/^limb-b +\S+Z +any machine may join +1$/m);
});

test("a node whose machine gets another address ends, and is there once it is started again; its name stays when the machine's changes", async () => {
  await a.sh("ip addr flush dev eth0; ip addr add 172.30.0.28/24 dev eth0; ip route add default via 172.30.0.254");
  await eventually("it says why it ends", async () => a.log().includes("this machine was 172.30.0.22 and is 172.30.0.28 now: Coracle ends, to be started again with that"));
  await eventually("it has ended", () => a.sh(`[ ! -d /proc/$(cat ${a.directory}/coracle.pid) ]`));
  const untouched = await containers(a);
  await a.sh(`hostname other; setsid ${a.binary} agent --server ${SERVER} --kubelet-arg 'eviction-hard=memory.available<100Mi' </dev/null >>${a.directory}/coracle.log 2>&1 &`);
  await eventually("it is there", async () => (await boss.kubectl("get", "node", "limb-a", "-o", "wide")).includes(" 172.30.0.28 ") && await isReady("limb-a"));
  for (const from of [boss, b]) expect(await eventually("its pods are reached", () => page(from, "http://172.30.0.28:30081/"))).toBe("hello open-sesame");
  expect(await containers(a)).toEqual(untouched);
  expect(await boss.kubectl("get", "nodes", "-o", "name")).toBe("node/boss\nnode/limb-a\nnode/limb-b\n");
});
