/**
 * What a node makes of damage to what it keeps: `bun test/crash/node-damage.ts [NAME…]` on the compiled binary, on a machine made of namespaces whose data directory is a file system of its own.
 *
 * Every one of them ends the same way: the node is Ready, pods of every kind run, new ones start, and none has an address twice. Exits with 1 otherwise.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { eventually, type Host, IMAGES, LAB } from "../cluster/host.ts";
import { faultyNode, type FaultyNode, pod } from "./faulty-node.ts";
import { failDisk, giveClock, makeDisk, mountDisk, powerCut, stepClock } from "./machine.ts";
import { eachFault, endWith } from "./outcome.ts";

const DISK = { megabytes: 1500, files: 30_000 };

/** One of each kind that comes back in a way of its own. */
const WORKLOADS = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      volumes: [{name: token, projected: {sources: [{serviceAccountToken: {path: token}}]}}]
      initContainers: [{name: side, image: "busybox:1", restartPolicy: Always, command: [sleep, "100000"]}]
      containers: [{name: c, image: "busybox:1", command: [httpd, -f, -p, "80", -h, /], ports: [{containerPort: 80}], readinessProbe: {tcpSocket: {port: 80}, periodSeconds: 1}, volumeMounts: [{name: token, mountPath: /token}]}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {clusterIP: 10.43.7.7, selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: c, image: "busybox:1", command: [sh, -c, "echo started >> /data/log; exec sleep 100000"], volumeMounts: [{name: data, mountPath: /data}]}]
  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}]
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      hostNetwork: true
      terminationGracePeriodSeconds: 1
      containers: [{name: c, image: "busybox:1", command: [sleep, "100000"]}]
---
${pod("bare")}
`;
const REDIS = "docker.io/library/redis:8";
const STATIC = `apiVersion: v1\nkind: Pod\nmetadata: {name: still}\nspec: {terminationGracePeriodSeconds: 1, containers: [{name: c, image: "busybox:1", command: [sleep, "100000"]}]}\n`;
/** bare, still, db-0, agent, web twice. */
const PODS = 6;

let serial = 0;

/** All is as it should be, and stays so for newcomers: as many as there are pods, so that one of them gets what one of these has, should it be free for all. */
async function well({ host, ready, lines }: FaultyNode): Promise<void> {
  await ready();
  await eventually("all pods run", async () => (await lines(`${host.binary} kubectl get pods --no-headers | grep -v '^new-' | grep -cE ' (1/1|2/2) +Running '`))[0] === String(PODS), 180_000);
  const names = Array.from({ length: PODS }, () => `new-${serial++}`);
  await host.apply(names.map(pod).join("\n---\n"));
  await eventually("new pods run", async () => (await lines(`${host.binary} kubectl get pods ${names.join(" ")} --no-headers | grep -c ' 1/1 '`))[0] === String(PODS), 120_000);
  const addresses = (await host.kubectl("get", "pods", "-o", "jsonpath={range .items[?(@.spec.hostNetwork!=true)]}{.status.podIP}{'\\n'}{end}")).split("\n").filter(Boolean);
  if (new Set(addresses).size !== addresses.length) throw new Error(`an address was given twice: ${addresses.join()}`);
  await eventually("the Service answers", () => host.sh("curl -sf -m 2 http://10.43.7.7/etc/ -o /dev/null || curl -s -m 2 -o /dev/null -w '%{http_code}' http://10.43.7.7/ | grep 404"));
  await host.kubectl("delete", "pod", ...names, "--wait=true", "--timeout=60s");
}

const stopAll = async ({ host, containerd }: FaultyNode): Promise<void> => {
  await host.kill("KILL");
  await host.sh(`kill -9 ${await containerd()}`);
};

/** One of 64 KiB behind its head, where a program's code is. */
const FLIP = `import sys; f = open(sys.argv[1], "r+b"); b = bytearray(f.read()); b[min(len(b) - 1, 65536)] ^= 16; f.seek(0); f.write(b)`;

const DAMAGE: Readonly<Record<string, (node: FaultyNode, start: () => Promise<void>) => Promise<void>>> = {
  async "a pod's sandbox is killed"({ host, lines }) {
    const [before] = await lines(`${host.binary} kubectl get pod bare -o jsonpath={.status.podIP}`);
    await host.sh("kill -9 $(pgrep -x pause)");
    await eventually("it is made anew", async () => Number((await host.kubectl("get", "pod", "bare", "-o", "jsonpath={.status.containerStatuses[0].restartCount}"))) > 0, 120_000);
    if (!before) throw new Error("the pod had no address");
  },
  async "the image of running pods is removed, and one of them has to start again"({ host }) {
    const ctr = `${host.dataDir}/agent/current/bin/ctr -a ${host.dataDir}/agent/run/containerd.sock -n k8s.io`;
    await host.sh(`${ctr} images rm --sync docker.io/library/busybox:1; kill -9 $(pgrep -fx 'sleep 100000' | head -n 1)`);
    await eventually("a pod misses its image", async () => /Err(ImagePull|ImageNeverPull)|ImagePullBackOff/.test(await host.kubectl("get", "pods", "--no-headers")), 120_000);
    await host.ok([host.binary, "images", "import", `${host.dataDir}/agent/images/busybox.tar`]);
  },
  async "the records of addresses are removed"({ host }) {
    await host.sh(`rm -rf ${host.dataDir}/agent/network/ipam`);
  },
  async "the records of addresses are removed, with all else of the network, while Coracle is away"({ host }, start) {
    await host.kill("KILL");
    await host.sh(`rm -rf ${host.dataDir}/agent/network`);
    await start();
  },
  async "containerd's database is removed"(node, start) {
    await stopAll(node);
    await node.host.sh(`rm ${node.host.dataDir}/agent/containerd/io.containerd.metadata.v1.bolt/meta.db`);
    await start();
  },
  async "a page within each of containerd's databases is zeros, one after the other"(node, start) {
    for (const name of ["io.containerd.metadata.v1.bolt/meta.db", "io.containerd.snapshotter.v1.overlayfs/metadata.db"]) {
      await stopAll(node);
      await node.host.sh(`dd if=/dev/zero of=${node.host.dataDir}/agent/containerd/${name} bs=4096 seek=3 count=1 conv=notrunc`);
      await start();
      await well(node);
    }
  },
  async "a bit is flipped in each of the node's components"(node, start) {
    const { host, lines } = node;
    const unpacked = async (): Promise<string> => (await lines(`grep -c 'node components unpacked' ${host.directory}/coracle.log`))[0]!, before = await unpacked();
    await stopAll(node);
    await host.sh(`for name in ${host.dataDir}/agent/current/bin/* ${host.dataDir}/agent/current/cni/*; do [ ! -f $name ] || python3 -c '${FLIP}' $name; done`);
    await start(); // of what they were, for a while
    await eventually("they are whole again", async () => (await unpacked()) !== before, 300_000); // at once if containerd does not stay up, else when all has been read
    await eventually("those that fell back are started again", async () => !/BackOff/.test(await host.kubectl("get", "pods", "--no-headers")), 400_000); // what they were could start nothing
  },
  async "everything of containerd is removed"(node, start) {
    await stopAll(node);
    await node.host.sh(`for m in $(cut -d' ' -f5 /proc/self/mountinfo | grep '^${node.host.dataDir}/agent/run/' | sort -r); do umount -l $m; done; rm -rf ${node.host.dataDir}/agent/containerd ${node.host.dataDir}/agent/run`);
    await start();
  },
  async "the node's files are empty"({ host }, start) {
    await host.kill("KILL");
    await host.sh(`find ${host.dataDir}/agent -path '*/agent/containerd' -prune -o -path '*/agent/bin-*' -prune -o -path '*/agent/run' -prune -o -path '*/volumes/*' -prune -o -path '*/images/*' -prune -o -type f -name '*[!m]' ! -name '*.key' ! -name '*.crt' ! -name '*.log' -print -exec truncate -s 0 {} ';'`);
    await start();
  },
  async "the node's files are nonsense"({ host }, start) {
    await host.kill("KILL");
    await host.sh(`find ${host.dataDir}/agent -path '*/agent/containerd' -prune -o -path '*/agent/bin-*' -prune -o -path '*/agent/run' -prune -o -path '*/volumes/*' -prune -o -path '*/images/*' -prune -o -type f -name '*[!m]' ! -name '*.key' ! -name '*.crt' ! -name '*.log' -exec sh -c 'for f; do printf "{\\"a\\":[" > "$f"; done' sh {} +`);
    await start();
  },
  async "the plug is pulled"({ host }, start) {
    await powerCut(host);
    await start();
  },
  async "the plug is pulled while an image is imported, at several moments"({ host, lines }, start) {
    for (const momentMs of [50, 150, 300, 500]) {
      await host.ok([`${host.dataDir}/agent/current/bin/ctr`, "-a", `${host.dataDir}/agent/run/containerd.sock`, "-n", "k8s.io", "images", "rm", "--sync", REDIS]).catch(() => undefined);
      void host.importImage("redis").catch(() => undefined);
      await Bun.sleep(momentMs);
      await powerCut(host);
      await start();
      await eventually("the image can be imported", () => host.importImage("redis"));
      await host.apply(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"new-redis"},"spec":{"terminationGracePeriodSeconds":1,"containers":[{"name":"c","image":"redis:8","imagePullPolicy":"Never","command":["redis-server"]}]}}`);
      await eventually("it runs", async () => (await lines(`${host.binary} kubectl exec new-redis -- redis-cli ping`))[0] === "PONG", 120_000);
      await host.kubectl("delete", "pod", "new-redis", "--wait=true", "--timeout=60s");
    }
  },
  async "the plug is pulled while pods start, at several moments"({ host, running }, start) {
    for (const momentMs of [100, 400, 800, 1500]) {
      const name = `new-cut-${momentMs}`;
      await host.apply(pod(name));
      await Bun.sleep(momentMs);
      await powerCut(host);
      await start();
      if ((await host.kubectl("get", "pod", name, "--ignore-not-found")) !== "") await running(name);
      await host.kubectl("delete", "pod", name, "--ignore-not-found", "--wait=true", "--timeout=60s");
    }
  },
  async "the disk is full"({ host, lines, say }) {
    await host.sh(`dd if=/dev/zero of=${host.dataDir}/ballast bs=1M 2>/dev/null || true`);
    await host.run([host.binary, "kubectl", "apply", "-f", "-"], { input: pod("new-full"), timeoutMs: 30_000 });
    await Bun.sleep(15_000);
    say(`  ${(await lines(`${host.binary} kubectl get nodes --no-headers --request-timeout=5s 2>&1`)).join(" ")}`);
    await host.sh(`rm ${host.dataDir}/ballast`);
    await host.run([host.binary, "kubectl", "delete", "pod", "new-full", "--ignore-not-found", "--wait=false"]);
  },
  async "there is no room for another file"({ host, lines, say }) {
    await host.sh(`mkdir ${host.dataDir}/ballast; cd ${host.dataDir}/ballast; i=0; while seq $i $((i+999)) | xargs touch 2>/dev/null; do i=$((i+1000)); done; true`);
    await host.run([host.binary, "kubectl", "apply", "-f", "-"], { input: pod("new-full"), timeoutMs: 30_000 });
    await Bun.sleep(15_000);
    say(`  ${(await lines(`${host.binary} kubectl get nodes --no-headers --request-timeout=5s 2>&1; df -i ${host.dataDir} | tail -1`)).join(" ")}`);
    await host.sh(`rm -r ${host.dataDir}/ballast`);
    await host.run([host.binary, "kubectl", "delete", "pod", "new-full", "--ignore-not-found", "--wait=false"]);
  },
  async "the disk fails, and can only be read"({ host, lines, say }, start) {
    await failDisk(host);
    const { code, stderr } = await host.run([host.binary, "kubectl", "create", "configmap", "no"], { timeoutMs: 30_000 });
    if (code === 0) throw new Error("a write was taken that cannot be kept");
    await Bun.sleep(10_000);
    say(`  ${(await lines(`${host.binary} kubectl get nodes --no-headers --request-timeout=5s 2>&1`)).join(" ")} ${stderr.trim()}`);
    await host.reboot();
    await mountDisk(host);
    await start();
  },
  "the clock goes forward by a year": ({ host }) => live(host, YEAR_S),
  "the clock goes back by two years": ({ host }) => live(host, -YEAR_S),
  async "Coracle starts while the clock is a year behind, and then it is set"({ host }, start) {
    await host.kill("KILL");
    await start();
    await live(host, 0);
  },
};

const YEAR_S = 366 * 24 * 3600;

/** The clock is moved so far from the machine's; then the node says by its Lease that it is there, at the time that it is now for it. Certificates that are no longer valid are renewed within a minute. */
async function live(host: Host, seconds: number): Promise<void> {
  await stepClock(host, seconds);
  const renewed = (): Promise<string> => host.kubectl("get", "lease", "-n", "kube-node-lease", "damage", "-o", "jsonpath={.spec.renewTime}");
  await eventually("the Lease is renewed", async () => Math.abs(Date.parse(await renewed()) / 1000 - (Date.now() / 1000 + seconds)) < 24 * 3600, 180_000);
}

const manifests = join(LAB, "damage/manifests");
const flags = ["--kubelet-arg", `pod-manifest-path=${manifests}`];
/** The image is there as on a device that sees no registry: pinned, and imported again should it be gone. */
const prepare = async (host: Host): Promise<void> => {
  await giveClock(host);
  await makeDisk(host, DISK);
  mkdirSync(manifests, { recursive: true });
  await host.sh(`mkdir -p ${host.dataDir}/agent/images && cp ${host.bring(join(IMAGES, "busybox.tar"))} ${host.dataDir}/agent/images/`);
};
await endWith(async () => {
  await using node = await faultyNode("damage", "172.30.0.16", { flags, prepare });
  const { host, say } = node;
  writeFileSync(join(manifests, "still.yaml"), STATIC);
  await host.apply(WORKLOADS);
  await well(node);
  say("pods of every kind run");
  const start = async (): Promise<void> => {
    await host.start(...flags);
    await node.ready();
  };
  return await eachFault({
    faults: DAMAGE, words: process.argv.slice(2), cause: (damage) => damage(node, start), well: () => well(node), say,
    story: async () => {
      console.error((await node.lines(`${host.binary} kubectl get pods -o wide; tail -n 5 ${host.directory}/coracle.log | cut -c1-600; pgrep -a coracle`)).join("\n"));
      if ((await host.run(["sh", "-c", `kill -0 $(cat ${host.directory}/coracle.pid)`])).code !== 0) await start();
    },
  });
});
