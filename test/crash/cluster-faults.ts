/**
 * What a server and an agent in a shed live through: `bun test/crash/cluster-faults.ts [NAME…]` on the compiled binary, on two machines made of namespaces, each supervised as an installed one is.
 *
 * Every one of them ends the same way: both nodes are Ready, their pods answer each other by address, by Service and by name, and new ones start. Exits with 1 otherwise.
 * All of them take half an hour on a small machine.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { eventually, Host, IMAGES } from "../cluster/host.ts";
import { webOnEachNode } from "../web-on-each-node.ts";
import { failDisk, giveClock, makeDisk, powerCut, stepClock } from "./machine.ts";
import { eachFault, endWith } from "./outcome.ts";
import { Machine } from "./supervised.ts";

const DISK = { megabytes: 1500, files: 30_000 };
const HOUR_S = 3600, DAY_S = 24 * HOUR_S, YEAR_S = 366 * DAY_S;
const SERVICE = "10.43.7.7";
const sleeper = (name: string, node: string): string => JSON.stringify({
  apiVersion: "v1", kind: "Pod", metadata: { name },
  spec: { nodeName: node, terminationGracePeriodSeconds: 1, containers: [{ name: "c", image: "busybox:1", imagePullPolicy: "Never", command: ["sleep", "100000"] }] },
});

const begin = performance.now();
const say = (text: string): void => console.log(`${((performance.now() - begin) / 1000).toFixed(1)} s  ${text}`);
let serial = 0;

const server = (): Machine => machines[0]!;
const agent = (): Machine => machines[1]!;
const machines: Machine[] = [];
const kubectl = (...args: string[]): Promise<string> => server().host.kubectl("--request-timeout=20s", ...args);

async function ready(names = machines.map(({ host }) => host.name)): Promise<void> {
  await eventually("the nodes are Ready", async () => {
    const nodes = await kubectl("get", "nodes", "--no-headers");
    return names.every((name) => new RegExp(`^${name} +Ready `, "m").test(nodes));
  }, 240_000);
}

interface WebPod { readonly name: string; readonly node: string; readonly ip: string }
async function webs(): Promise<WebPod[]> {
  const text = await kubectl("get", "pods", "-l", "app=web", "-o", "jsonpath={range .items[*]}{.metadata.name} {.spec.nodeName} {.status.podIP} {.metadata.deletionTimestamp} {.status.containerStatuses[0].ready}{\"\\n\"}{end}");
  return text.split("\n").filter((line) => / {2}true$/.test(line)).map((line) => line.split(" ")).map(([name, node, ip]) => ({ name: name!, node: node!, ip: ip! }));
}

/** All is as it should be. */
async function well(names = machines.map(({ host }) => host.name)): Promise<void> {
  await ready(names);
  const all = await eventually("each node has its pod", async () => { const found = await webs(); return found.length === names.length && names.every((name) => found.some(({ node }) => node === name)) ? found : undefined; }, 240_000);
  for (const { name } of all) {
    for (const { ip, node } of all) await eventually(`${name} reaches the pod of ${node}`, async () => (await kubectl("exec", name, "--", "wget", "-qO-", "-T", "3", `http://${ip}:8080/`)).trim() === node, 120_000);
    await eventually(`${name} is answered by name`, () => kubectl("exec", name, "--", "wget", "-qO-", "-T", "3", "http://web.default.svc.cluster.local/"), 120_000);
  }
  for (const { host } of machines) await eventually(`${host.name} reaches the Service`, () => host.ok(["curl", "-sf", "-m", "3", `http://${SERVICE}/`]), 120_000);
  const fresh = names.map((node) => ({ node, name: `new-${serial++}` }));
  await kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=60s");
  await server().host.apply(fresh.map(({ name, node }) => sleeper(name, node)).join("\n---\n"));
  for (const { name } of fresh) await eventually(`${name} runs`, async () => (await kubectl("get", "pod", name, "--no-headers")).includes(" 1/1 "), 120_000);
  await kubectl("delete", "pod", ...fresh.map(({ name }) => name), "--wait=true", "--timeout=60s");
}

/** What kubectl says it has made stands in a file, line by line; nobody waits for it. */
async function write(count: number): Promise<{ readonly acknowledged: () => string[]; readonly forget: () => Promise<void> }> {
  const { host } = server();
  const file = `${host.directory}/acknowledged`, label = `batch-${serial++}`;
  const items = Array.from({ length: count }, (_, i) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: `${label}-${i}`, labels: { batch: label } }, data: { text: "x".repeat(2000) } }));
  await Bun.write(`${host.directory}/batch.json`, JSON.stringify({ apiVersion: "v1", kind: "List", items }));
  await Bun.write(file, "");
  await host.sh(`${host.binary} kubectl create -o name -f ${host.directory}/batch.json > ${file} 2>/dev/null &`);
  return {
    acknowledged: () => readFileSync(file, "utf8").split("\n").slice(0, -1),
    forget: async () => void (await kubectl("delete", "configmap", "-l", `batch=${label}`, "--wait=false")),
  };
}

/** Starts it on a store that something has been done to: it mends it, or refuses and says what to do; that is done. `snapshot`: of before, kept elsewhere. */
async function startDamaged(snapshot: string): Promise<string> {
  const since = server().mark();
  await server().start();
  const outcome = await eventually("it serves, or refuses", async () => {
    const refused = server().said(since).find((line) => line.startsWith("coracle: "));
    if (refused) return refused;
    return (await kubectl("get", "--raw", "/readyz")) === "ok" ? "it serves" : undefined;
  }, 120_000);
  if (outcome === "it serves") return outcome;
  say(`  ${outcome}`);
  await server().host.sh(`kill -9 $(cat ${server().host.directory}/supervisor.pid); kill -9 $(cat ${server().host.directory}/coracle.pid) 2>/dev/null || true`);
  const { host } = server();
  const followed: string[] = [];
  if (outcome.includes("coracle check")) {
    const { code, stdout } = await host.run([host.binary, "check", "--repair", "--data-dir", host.dataDir]);
    followed.push(stdout.trim().split("\n").at(-1)!);
    if (code !== 0 && stdout.includes("restore a snapshot")) followed.push(await host.ok([host.binary, "snapshot", "restore", snapshot]));
  } else if (outcome.includes("restore a snapshot")) followed.push(await host.ok([host.binary, "snapshot", "restore", snapshot]));
  else throw new Error("it does not say what to do");
  await server().start();
  return followed.map((told) => told.trim().split("\n")[0]!).join("; ");
}

const newest = (suffix: string): string => `$(ls -t ${server().host.dataDir}/server/db/*${suffix} | head -n 1)`;
const largestTable = (): string => `$(ls -S ${server().host.dataDir}/server/db/*.ldb | head -n 1)`;
const TORN: Readonly<Record<string, () => string>> = {
  "the last bytes of the newest log are missing": () => `truncate -s -100 ${newest(".log")}`,
  "the newest log goes on with zeros": () => `truncate -s +65536 ${newest(".log")}`,
  "the newest log is empty": () => `truncate -s 0 ${newest(".log")}`,
  "a page in the midst of the newest log is zeros": () => `dd if=/dev/zero of=${newest(".log")} bs=4096 seek=1 count=1 conv=notrunc`,
  "the midst of a table is nonsense": () => `f=${largestTable()}; dd if=/dev/urandom of=$f bs=1 seek=$(($(stat -c %s $f) / 2)) count=200 conv=notrunc`,
  "a table is missing": () => `rm ${largestTable()}`,
  "the list of tables is missing": () => `rm ${server().host.dataDir}/server/db/MANIFEST-*`,
  "the name of the list of tables is empty": () => `truncate -s 0 ${server().host.dataDir}/server/db/CURRENT`,
};

const FAULTS: Readonly<Record<string, () => Promise<void>>> = {
  async "the server's plug is pulled while it writes, at several moments"() {
    for (const momentMs of [600, 1500, 3000]) {
      const batch = await write(600);
      await eventually("the first is acknowledged", async () => batch.acknowledged().length > 0); // on a busy machine kubectl takes longer to begin than any of these moments
      await Bun.sleep(momentMs);
      const promised = batch.acknowledged(); // before: a sync that is under way as ext4 is shut down may be answered with success all the same, and its bytes are gone
      await powerCut(server().host);
      await server().start();
      await ready();
      const kept = new Set((await kubectl("get", "configmaps", "-o", "name")).split("\n"));
      const lost = promised.filter((name) => !kept.has(name));
      say(`  cut after ${momentMs} ms: ${promised.length} acknowledged, ${lost.length} of them lost`);
      if (lost.length > 0) throw new Error(`lost: ${lost.join()}`);
      await batch.forget();
    }
  },
  ...Object.fromEntries(Object.entries(TORN).map(([what, script]) => [`the server's plug is pulled, and ${what}`, async () => {
    const snapshot = `${server().host.directory}/before-${serial++}.zst`;
    await server().host.ok([server().host.binary, "snapshot", "save", snapshot]);
    await write(300);
    await eventually("a part is written", async () => Number((await kubectl("get", "configmaps", "-o", "name")).split("\n").length) > 100);
    await powerCut(server().host);
    await server().host.sh(script());
    say(`  ${await startDamaged(snapshot)}`);
    await ready();
    await kubectl("delete", "configmaps", "-l", "batch", "--wait=false");
  }])),
  async "the server's disk can only be read, also when the server starts again"() {
    const { host } = server();
    await failDisk(host);
    const { code, stderr } = await host.run([host.binary, "kubectl", "create", "configmap", "no", "--request-timeout=20s"], { timeoutMs: 60_000 });
    if (code === 0) throw new Error("a write was taken that cannot be kept");
    say(`  a write: ${stderr.trim()}`);
    const since = server().mark();
    await host.kill("KILL");
    say(`  a start: ${await server().says(/^coracle: /, since)}`);
    await server().reboot();
    await server().start();
  },
  async "the agent's clock is far from the server's, and is set"() {
    for (const seconds of [-56 * YEAR_S, -2 * DAY_S, 2 * HOUR_S, 3 * YEAR_S]) {
      const since = agent().mark();
      await stepClock(agent().host, seconds);
      await agent().host.kill("KILL");
      await Bun.sleep(30_000);
      say(`  ${seconds} s: ${(await kubectl("get", "node", agent().host.name, "--no-headers")).trim()}`);
      for (const line of new Set(agent().said(since).filter((line) => /"level":"(warn|error)"|^coracle/.test(line)).map((line) => line.slice(0, 400)))) say(`    ${line}`);
      if (seconds < 2 * YEAR_S) await well();
    }
    await stepClock(agent().host, 0);
  },
  async "the agent has another address after a reboot"() {
    await agent().reboot("172.30.0.62");
    await agent().start();
    await says(agent(), "172.30.0.62");
  },
  async "the agent gets another address while it runs"() {
    await agent().host.readdress("172.30.0.63");
    await says(agent(), "172.30.0.63");
  },
  async "the agent starts without a network, and gets one later"() {
    const { host } = agent();
    const address = host.address;
    await agent().reboot("");
    await agent().start();
    await eventually("its pod runs", async () => (await host.ok([host.binary, "crictl", "ps"])).includes("web"), 120_000);
    await host.plug(address);
    await says(agent(), address);
  },
  async "the server has another address after a reboot, and the agent is told where it is"() {
    await server().reboot("172.30.0.64");
    await server().start();
    await agent().stop();
    agent().flags = ["--server", "https://172.30.0.64:6443"];
    await agent().start();
    await says(server(), "172.30.0.64");
  },
  async "the server gets another address while it runs, and the agent knows it by its name"() {
    await agent().stop();
    agent().flags = ["--server", "https://shed-s:6443"];
    await agent().host.sh("echo 172.30.0.64 shed-s > /run/hosts; mount --bind /run/hosts /etc/hosts");
    await agent().start();
    await well();
    await server().host.readdress("172.30.0.65");
    await agent().host.sh("echo 172.30.0.65 shed-s > /run/hosts");
    await says(server(), "172.30.0.65");
  },
  async "the machines are given other names"() {
    for (const machine of machines) {
      await machine.stop("TERM");
      machine.nodeName = undefined;
      await machine.host.sh(`hostname other-${machine.host.name}`);
      await machine.start();
    }
    await well();
    for (const machine of machines) {
      await machine.stop("TERM");
      await machine.host.sh(`hostname ${machine.host.name}`);
      machine.nodeName = machine.host.name;
      await machine.start();
    }
  },
  async "the agent's cable is out for a day"() {
    const { host } = agent();
    const here = (await webs()).find(({ node }) => node === host.name)!;
    await host.cable("out");
    await eventually("the server misses it", async () => /NotReady/.test(await kubectl("get", "node", host.name, "--no-headers")), 180_000);
    for (const machine of machines) await stepClock(machine.host, DAY_S);
    await host.sh(`kill -9 $(pgrep -fx 'httpd -f -p 8080 -h /www')`);
    await eventually("its pod starts again", () => host.ok(["curl", "-sf", "-m", "3", `http://${here.ip}:8080/`]), 120_000);
    await eventually("names are answered", () => host.sh(`nsenter -t $(pgrep -fo 'httpd -f -p 8080 -h /www') -m -n -r nslookup web.default.svc.cluster.local | grep ${SERVICE}`), 60_000);
    await agent().reboot();
    await host.cable("out");
    await agent().start();
    await eventually("after a reboot it is there again", async () => (await host.ok([host.binary, "crictl", "ps"])).includes("web"), 120_000);
    await host.cable("in");
    await well();
    for (const machine of machines) await stepClock(machine.host, 0);
  },
  async "the server dies for good, and is restored from a snapshot that is older than what its agent has"() {
    const { host } = server();
    const file = `${host.directory}/old.zst`;
    await server().host.apply(sleeper("old", agent().host.name));
    await eventually("old runs", async () => (await kubectl("get", "pod", "old", "--no-headers")).includes(" 1/1 "));
    await host.ok([host.binary, "snapshot", "save", file]);
    const token = (await host.sh(`cat ${host.dataDir}/server/token`)).trim();
    await kubectl("delete", "pod", "old", "--wait=true");
    await server().host.apply(sleeper("young", agent().host.name));
    await eventually("young runs", async () => (await kubectl("get", "pod", "young", "--no-headers")).includes(" 1/1 "));
    await kubectl("delete", "node", agent().host.name);
    await eventually("it is a node again", async () => / Ready/.test(await kubectl("get", "node", agent().host.name, "--no-headers")), 120_000);
    await server().stop();
    await host.sh(`cd ${host.dataDir}; rm -rf server; umount -l ${host.dataDir}`).catch(() => undefined);
    await host.reboot();
    await host.sh(`rm -f ${host.directory}/disk`);
    await makeDisk(host, DISK);
    await host.ok([host.binary, "snapshot", "restore", file, "--token", token]);
    await bringImage(host);
    await server().start();
    await ready();
    await eventually("what the snapshot has runs", async () => (await kubectl("get", "pod", "old", "--no-headers")).includes(" 1/1 "), 120_000);
    await eventually("what it has not has ended", async () => !(await agent().host.ok([agent().host.binary, "crictl", "ps"])).includes("young"), 120_000);
    await kubectl("delete", "pod", "old", "--wait=true");
  },
  async "both machines are switched off for two years, longer than their certificates hold"() {
    const since = agent().mark();
    for (const machine of machines) {
      await machine.stop();
      await machine.reboot();
      await stepClock(machine.host, 2 * YEAR_S);
    }
    for (const machine of machines) await machine.start();
    say(`  ${(await agent().says(/client certificate is renewed/, since)).slice(0, 200)}`);
    await well(); // exec and logs too
    for (const machine of machines) {
      await machine.stop();
      await stepClock(machine.host, 0);
      await machine.start();
    }
  },
  async "both clocks say 2106, as chips with an empty battery do, while all runs and at a start, and then the time is set"() {
    for (const { host } of machines) await stepClock(host, 80 * YEAR_S);
    await well();
    for (const machine of machines) {
      await machine.stop();
      await machine.start();
    }
    await well();
    for (const { host } of machines) await stepClock(host, 0);
  },
  async "machines without a clock start in 1970, and then the time is set"() {
    const last = (): Promise<string> => kubectl("get", "cronjob", "before", "-o", "jsonpath={.status.lastScheduleTime}");
    await kubectl("create", "cronjob", "before", "--image=busybox:1", "--schedule=* * * * *", "--", "true");
    const before = await eventually("its first Job starts", async () => (await last()) || undefined, 120_000);
    for (const machine of machines) await machine.stop();
    for (const { host } of machines) await stepClock(host, -Math.round(Date.now() / 1000) + 60);
    for (const machine of machines) await machine.start();
    await well(); // exec and logs too: certificates of before are of later now
    for (const { host } of machines) await eventually(`${host.name} reaches the Service`, () => host.ok(["curl", "-sf", "-m", "3", `http://${SERVICE}/`]), 120_000);
    await kubectl("create", "cronjob", "minutes", "--image=busybox:1", "--schedule=* * * * *", "--", "true");
    await Bun.sleep(5_000);
    for (const { host } of machines) await stepClock(host, 0);
    await eventually("a CronJob of before starts Jobs again", async () => (await last()) > before, 120_000);
    await well();
    say(`  ${(await kubectl("get", "events", "-A", "--no-headers")).trim().split("\n").slice(-5).join("\n    ")}`);
    say(`  ${(await kubectl("get", "cronjobs,jobs", "--no-headers")).trim()}`);
    await kubectl("delete", "cronjob", "minutes", "before");
  },
};

/** The cluster knows the machine by this address. */
async function says(machine: Machine, address: string): Promise<void> {
  await eventually(`${machine.host.name} is at ${address}`, async () => (await kubectl("get", "node", machine.host.name, "-o", "jsonpath={.status.addresses[?(@.type=='InternalIP')].address}")) === address, 240_000);
}

async function bringImage(host: Host): Promise<void> {
  await host.sh(`mkdir -p ${host.dataDir}/agent/images && cp ${host.directory}/busybox.tar ${host.dataDir}/agent/images/`);
}

await endWith(async () => {
  await using boss = await Host.up("shed-s", "172.30.0.60");
  await using limb = await Host.up("shed-a", "172.30.0.61");
  for (const host of [boss, limb]) {
    await giveClock(host);
    await makeDisk(host, DISK);
    host.bring(join(IMAGES, "busybox.tar"));
    await bringImage(host);
  }
  machines.push(new Machine(boss, "server", []));
  await server().start();
  await ready();
  const token = (await boss.ok([boss.binary, "token", "create"])).trim();
  machines.push(new Machine(limb, "agent", ["--server", `https://${boss.address}:6443`, "--token", token]));
  await agent().start();
  await ready();
  agent().flags = agent().flags.slice(0, 2); // it is a node now
  await eventually("the ServiceAccount is there", () => kubectl("get", "serviceaccount", "default"));
  await boss.apply(webOnEachNode({ clusterIp: SERVICE }));
  await well();
  say("two nodes, and a pod on each");
  return await eachFault({
    faults: FAULTS, words: process.argv.slice(2), cause: (fault) => fault(), well, say,
    story: async () => {
      for (const machine of machines) console.error(machine.said().slice(-8).map((line) => line.slice(0, 500)).join("\n"));
      console.error((await boss.run([boss.binary, "kubectl", "get", "nodes,pods", "-o", "wide", "--request-timeout=10s"])).stdout);
      for (const { host } of machines) console.error((await host.run(["sh", "-c", `${host.binary} crictl pods; ${host.binary} crictl ps -a`])).stdout);
    },
  });
});
