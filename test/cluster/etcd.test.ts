/**
 * Two servers on one etcd, on the compiled binary: what one is told the other knows; one leads; when it is killed the other takes over and nothing that was acknowledged is
 * missing. An agent that neither can dial joins one of them, has a tunnel to both, and goes on by way of the other.
 */
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { testPki } from "../certificates.ts";
import { etcdDirectory } from "../etcd.ts";
import { eventually, Host, switchDown } from "./host.ts";

const TOKEN = "the-cluster-token";
const [FIRST, SECOND, LIMB] = ["172.30.0.51", "172.30.0.52", "172.30.0.53"];
const ETCD = `https://${SECOND}:2379`;
const NOBODY = `https://${SECOND}:2399`; // the first endpoint does not answer
let first: Host;
let second: Host;
let limb: Host;
/** Flags of every server: over TLS, with a client certificate. */
let datastore: (host: Host) => string[];

beforeAll(async () => {
  const [directory, { dir }, ...hosts] = await Promise.all([etcdDirectory(), testPki([SECOND]), Host.up("etcd-a", FIRST), Host.up("etcd-b", SECOND), Host.up("etcd-n", LIMB)]);
  [first, second, limb] = hosts as [Host, Host, Host];
  const bring = (host: Host, name: string): string => host.bring(join(dir, name));
  const [etcd, data] = [second.bring(join(directory, "etcd")), join(second.directory, "etcd-data")];
  const tls = `--cert-file ${bring(second, "serving-kube-apiserver.crt")} --key-file ${bring(second, "serving-kube-apiserver.key")} --trusted-ca-file ${bring(second, "client-ca.crt")} --client-cert-auth`;
  await second.sh(`setsid ${etcd} --data-dir ${data} --listen-client-urls ${ETCD} --advertise-client-urls ${ETCD} ${tls} --log-level warn --logger zap </dev/null >${second.directory}/etcd.log 2>&1 &`);
  datastore = (host) => [
    "--datastore-endpoint", `${NOBODY},${ETCD}`, "--datastore-cafile", bring(host, "server-ca.crt"),
    "--datastore-certfile", bring(host, "client-admin.crt"), "--datastore-keyfile", bring(host, "client-admin.key"),
  ];
  await first.start(...datastore(first), "--token", TOKEN);
  await eventually("the first server is ready", async () => (await first.kubectl("get", "--raw", "/readyz")) === "ok");
  await second.start(...datastore(second), "--token", TOKEN, "--disable-agent");
  await eventually("the second server is ready", async () => (await second.kubectl("get", "--raw", "/readyz")) === "ok");
});
afterAll(async () => {
  await Promise.all([first, second, limb].map((host) => host?.[Symbol.asyncDispose]()));
  await switchDown();
});

const holder = async (host: Host, lease: string) => (await host.kubectl("-n", "kube-system", "get", "lease", lease, "-o", "jsonpath={.spec.holderIdentity}")).split("_")[0];
const servers = async (host: Host) => (await host.kubectl("get", "endpoints", "kubernetes", "-o", "jsonpath={.subsets[*].addresses[*].ip}")).trim();

test("a server with another token is refused, and one that would disagree with the others", async () => {
  const start = (...flags: string[]) => second.run([second.binary, "server", "--data-dir", join(second.directory, "other"), "--disable-agent", ...datastore(second), ...flags]);
  const wrong = await start("--token", "wrong");
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining("the datastore is of a cluster with another token")]);
  const disagreeing = await start("--token", TOKEN, "--cluster-domain", "other.local");
  expect([disagreeing.code, disagreeing.stderr]).toEqual([2, expect.stringContaining('--cluster-domain is "cluster.local" on the other servers of this cluster, not "other.local"')]);
});

test("both have the same keys, and a kubeconfig of one is good at the other", async () => {
  expect(await second.sh(`sha256sum < ${second.dataDir}/server/tls/server-ca.key`)).toBe(await first.sh(`sha256sum < ${first.dataDir}/server/tls/server-ca.key`));
  const token = (await first.kubectl("create", "token", "default")).trim();
  expect(await second.ok([second.binary, "kubectl", "auth", "whoami", "--token", token, "--server", `https://${SECOND}:6443`, "--kubeconfig", "/dev/null", "--certificate-authority", `${second.dataDir}/server/tls/server-ca.crt`, "-o", "jsonpath={.status.userInfo.username}"])).toBe("system:serviceaccount:default:default");
});

test("what one server is told, the other knows at once", async () => {
  for (let i = 0; i < 5; i++) {
    await first.kubectl("create", "configmap", `seen-${i}`, `--from-literal=i=${i}`);
    expect(await second.kubectl("get", "configmap", `seen-${i}`, "-o", "jsonpath={.data.i}")).toBe(String(i));
  }
});

test("the endpoints of the API are both servers; controllers and scheduler run on one", async () => {
  await eventually("both are endpoints", async () => (await servers(first)) === `${FIRST} ${SECOND}`);
  expect([await holder(second, "kube-controller-manager"), await holder(second, "kube-scheduler")]).toEqual(["etcd-a", "etcd-a"]);
  expect((await second.kubectl("get", "nodes", "-o", "name")).trim()).toBe("node/etcd-a");
});

const POD = `
apiVersion: v1
kind: Pod
metadata: {name: far}
spec:
  nodeName: etcd-n
  terminationGracePeriodSeconds: 0
  containers:
  - {name: far, image: "busybox:1", imagePullPolicy: IfNotPresent, command: [sh, -c, "echo here; exec sleep 100000"]}
`;
const isReady = async (host: Host): Promise<boolean> => / Ready /.test(await host.kubectl("get", "node", "etcd-n", "--no-headers"));
const speaksThrough = async (host: Host): Promise<boolean> =>
  (await host.kubectl("logs", "far", "--request-timeout=20s")) === "here\n" && (await host.kubectl("exec", "far", "--request-timeout=20s", "--", "hostname")) === "far\n";

test("an agent that no server can dial joins one, and logs and exec reach it through both", async () => {
  await limb.startAgent("--server", `https://${FIRST}:6443`, "--token", TOKEN);
  await eventually("the agent is Ready", () => isReady(second));
  await limb.ok([join(limb.dataDir, "agent/current/bin/nft"), "add table inet wall; add chain inet wall in { type filter hook input priority 0; }; add rule inet wall in iifname eth0 tcp flags & (syn | ack) == syn drop"]);
  await limb.importImage("busybox");
  await second.apply(POD);
  await second.kubectl("wait", "--for=condition=Ready", "pod/far", "--timeout=300s");
  for (const server of [first, second]) {
    expect((await server.run(["curl", "-sk", "-m", "1", `https://${LIMB}:10250/healthz`])).code).toBe(28);
    await eventually("logs and exec work through this server", () => speaksThrough(server));
  }
  const open = await limb.sh(`grep -c "the tunnel to the server is open" ${limb.directory}/coracle.log`);
  expect(Number(open)).toBe(2);
});

test("the leader is killed: what it acknowledged is there, the other takes over", async () => {
  await second.kubectl("create", "deployment", "web", "--image=busybox:1", "--replicas=2");
  await eventually("the pods are placed", async () => (await second.kubectl("get", "pods", "-l", "app=web", "-o", "jsonpath={.items[*].spec.nodeName}")).split(" ").length === 2);
  const acknowledged = join(first.directory, "acknowledged");
  const tls = `${first.dataDir}/server/tls`;
  const writing = first.sh(`for i in $(seq 1 3000); do [ -e ${acknowledged}.stop ] && break; curl -sf -o /dev/null -m 5 --cacert ${tls}/server-ca.crt --cert ${tls}/client-admin.crt --key ${tls}/client-admin.key -H 'content-type: application/json' -d "{\\"metadata\\":{\\"name\\":\\"w-$i\\"}}" https://127.0.0.1:6443/api/v1/namespaces/default/configmaps && echo w-$i >> ${acknowledged}; done; true`);
  await eventually("writes are under way", async () => Number(await first.sh(`cat ${acknowledged} | wc -l`)) > 20);
  const killedMs = performance.now();
  await first.kill("KILL");
  await first.sh(`touch ${acknowledged}.stop`);
  await writing;
  const names = (await first.sh(`cat ${acknowledged}`)).trim().split("\n");
  const found = new Set((await second.kubectl("get", "configmaps", "-o", "jsonpath={.items[*].metadata.name}")).split(" "));
  expect(names.filter((name) => !found.has(name))).toEqual([]);

  await second.kubectl("scale", "deployment", "web", "--replicas=4");
  await eventually("a controller makes pods, and the scheduler places them", async () => (await second.kubectl("get", "pods", "-l", "app=web", "-o", "jsonpath={.items[*].spec.nodeName}")).split(" ").length === 4);
  const takenMs = performance.now() - killedMs;
  console.log(`${names.length} writes acknowledged before the kill, all there; controllers and scheduler moved after ${(takenMs / 1000).toFixed(1)} s`);
  expect([await holder(second, "kube-controller-manager"), await holder(second, "kube-scheduler")]).toEqual(["etcd-b", "etcd-b"]);
  await eventually("the dead server is no endpoint any more", async () => (await servers(second)) === SECOND);
});

test("the agent, whose server that was, goes on by way of the other: its node stayed Ready", async () => {
  expect(await isReady(second)).toBe(true);
  expect(await speaksThrough(second)).toBe(true);
  await limb.sh(`kill -TERM $(cat ${limb.directory}/coracle.pid); while [ -d /proc/$(cat ${limb.directory}/coracle.pid) ]; do sleep 0.05; done`);
  await limb.startAgent("--server", `https://${FIRST}:6443`); // is away for good, as far as it knows
  await eventually("it finds the other server again, and its tunnel", () => speaksThrough(second));
  const renewed = (): Promise<string> => second.kubectl("-n", "kube-node-lease", "get", "lease", "etcd-n", "-o", "jsonpath={.spec.renewTime}");
  const before = await renewed();
  await eventually("renews its lease", async () => (await renewed()) !== before);
});

test("the server comes back and follows; one that leaves in order hands over at once", async () => {
  await first.start(...datastore(first), "--token", TOKEN);
  await eventually("both are endpoints again", async () => (await servers(second)) === `${FIRST} ${SECOND}`);
  await eventually("the agent has a tunnel to it again", () => speaksThrough(first));
  expect(await holder(first, "kube-controller-manager")).toBe("etcd-b");
  const stoppedMs = performance.now();
  await second.kill("TERM");
  await eventually("the first leads", async () => (await holder(first, "kube-controller-manager")) === "etcd-a" && (await holder(first, "kube-scheduler")) === "etcd-a");
  console.log(`handed over after ${((performance.now() - stoppedMs) / 1000).toFixed(1)} s`);
  expect(await servers(first)).toBe(FIRST);
});
