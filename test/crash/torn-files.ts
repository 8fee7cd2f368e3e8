/**
 * What a worn card or a cut of the power leaves of single files: `bun test/crash/torn-files.ts [NAME…]` on the compiled binary, on two machines made of namespaces.
 *
 * Both machines are switched off; one file of each data directory (of each kind one: of all pods' files, say) is made empty or cut in half, is zeros, has a bit flipped or cannot be read; they are switched on, and then everything is as it was:
 * both nodes are Ready and the same Nodes, every object is there, a kubeconfig of before is good, pods run and are asked in, Services and names answer. Then the disks are put back, for the next files.
 * Known not to hold: of a log of the store that is cut off between or within two records the rest is taken for what no one was promised, as after any loss of power; where a snapshot has it that is told.
 * NAME: only damage and files whose names hold it. Exits with 1 if anything was not. All of them take three hours on a small machine.
 */
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { eventually, Host, IMAGES } from "../cluster/host.ts";
import { webOnEachNode } from "../web-on-each-node.ts";
import { makeDisk, mountDisk } from "./machine.ts";
import { eachFault, endWith } from "./outcome.ts";
import { Machine } from "./supervised.ts";

const DISK = { megabytes: 900, files: 20_000 };
const SERVICE = "10.43.7.7", OBJECTS = 50;
/** Two at once do not wait longer than this for what comes back by itself. */
const PATIENCE_MS = 180_000;
const DAMAGE = {
  empty: (file: string) => `truncate -s 0 ${file}`,
  "cut in half": (file: string) => `truncate -s $(($(stat -c %s ${file}) / 2)) ${file}`,
  zeros: (file: string) => `s=$(stat -c %s ${file}); truncate -s 0 ${file}; truncate -s $s ${file}`,
  "a bit flipped": (file: string) => `python3 -c 'import sys; f = open(sys.argv[1], "r+b"); b = bytearray(f.read()); b[len(b) // 2] ^= 16; f.seek(0); f.write(b)' ${file}`,
  unreadable: (file: string) => `rm ${file} && ln -s /proc/self/mem ${file}`, // which is opened, and answers a read with EIO as a bad sector does
} as const;

/** Not: images of before they were imported, logs, what is on no disk, and what lies in volumes or layers, which is the pods'. Of the bundle: what runs all the time. */
const FIND = `find . -type f -size +0 ! -path './agent/images/*' ! -path './agent/logs/*' ! -path './agent/run/*' ! -path './agent/bin-*' ! -path '*/volumes/*' ! -path '*/fs/*' ! -path '*/sandboxes/*' ! -name 'LOG*' ! -name '*lock' ! -name LOCK;
  find ./agent/bin-* -maxdepth 1 -type f; for name in containerd containerd-shim-runc-v2 runc nft; do find ./agent/bin-*/bin -name $name; done`;

const begin = performance.now();
const say = (text: string): void => console.log(`${((performance.now() - begin) / 1000).toFixed(1)} s  ${text}`);

/** One of each kind: names that are made up are one. */
async function files({ host }: Machine): Promise<string[]> {
  const found = (await host.sh(`cd ${host.dataDir} && { ${FIND}; }`)).split("\n").filter(Boolean);
  const kinds = new Map(found.toReversed().map((file) => [file.replace(/[0-9a-f]{32,}|[0-9a-f]{8}-[0-9a-f-]{27}|\d{4,}/g, "*"), file]));
  return [...kinds.values()].sort();
}

await endWith(async () => {
  await using boss = await Host.up("torn-s", "172.30.0.70");
  await using limb = await Host.up("torn-a", "172.30.0.71");
  const machines = [new Machine(boss, "server", []), new Machine(limb, "agent", ["--server", `https://${boss.address}:6443`])] as const;
  const [server, agent] = machines;
  for (const { host } of machines) {
    await makeDisk(host, DISK);
    await host.sh(`mkdir -p ${host.dataDir}/agent/images && cp ${host.bring(join(IMAGES, "busybox.tar"))} ${host.dataDir}/agent/images/`);
  }
  const kubectl = (...args: string[]): Promise<string> => boss.kubectl("--request-timeout=20s", ...args);
  const soon = <T>(what: string, ask: () => Promise<T | undefined | false>): Promise<T> => eventually(what, ask, PATIENCE_MS);
  const ready = (): Promise<unknown> => soon("both nodes are Ready", async () => (await kubectl("get", "nodes", "--no-headers")).match(/ Ready /g)?.length === 2);
  const webs = async (): Promise<string[]> => (await kubectl("get", "pods", "-l", "app=web", "-o", "jsonpath={range .items[*]}{.metadata.name} {.metadata.deletionTimestamp} {.status.containerStatuses[0].ready}{\"\\n\"}{end}")).split("\n").filter((line) => line.endsWith("  true")).map((line) => line.split(" ")[0]!);
  const nodes = (): Promise<string> => kubectl("get", "nodes", "-o", "jsonpath={.items[*].metadata.uid}");

  await server.start();
  await boss.nodeReady();
  const { flags } = agent;
  agent.flags = [...flags, "--token", (await boss.ok([boss.binary, "token", "create"])).trim()];
  await agent.start();
  agent.flags = flags; // it is a node now
  await ready();
  await soon("the ServiceAccount is there", () => kubectl("get", "serviceaccount", "default"));
  await boss.apply(Array.from({ length: OBJECTS }, (_, i) => JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: `object-${i}`, labels: { batch: "before" } }, data: { text: "x".repeat(500) } })).join("\n---\n"));
  await boss.apply(webOnEachNode({ clusterIp: SERVICE }));
  await soon("both pods run", async () => (await webs()).length === 2);
  await boss.ok([boss.binary, "snapshot", "save"]);
  const before = await nodes(), kubeconfig = join(boss.directory, "kubeconfig-of-before");
  writeFileSync(kubeconfig, readFileSync(boss.kubeconfig));
  const [servers, agents] = [await files(server), await files(agent)];
  for (const { host } of machines) {
    await host.sh("sync");
    await host.reboot();
    cpSync(`${host.directory}/disk`, `${host.directory}/disk-of-before`);
  }
  say(`${servers.length} kinds of files on the server, ${agents.length} on the agent`);

  async function start(damaged: readonly (readonly [Machine, string])[]): Promise<void> {
    for (const { host } of machines) {
      await host.reboot();
      cpSync(`${host.directory}/disk-of-before`, `${host.directory}/disk`);
      await mountDisk(host);
    }
    for (const [{ host }, script] of damaged) await host.sh(`cd ${host.dataDir} && ${script}`);
    for (const machine of machines) await machine.start();
  }

  async function well(): Promise<void> {
    await soon("the server serves", async () => (await kubectl("get", "--raw", "/readyz")) === "ok");
    await ready();
    const all = await soon("both pods run", async () => { const found = await webs(); return found.length === 2 && found; });
    if ((await nodes()) !== before) throw new Error("a node is another Node now");
    const objects = (await kubectl("get", "configmaps", "-l", "batch=before", "--no-headers")).trim().split("\n").length;
    if (objects !== OBJECTS) throw new Error(`of ${OBJECTS} objects ${objects} are left`);
    await boss.ok([boss.binary, "kubectl", "--kubeconfig", kubeconfig, "get", "namespaces"]);
    for (const name of all) await soon(`${name} is answered by name`, () => kubectl("exec", name, "--", "wget", "-qO-", "-T", "3", "http://web.default.svc.cluster.local/"));
    for (const { host } of machines) await soon(`${host.name} reaches the Service`, () => host.ok(["curl", "-sf", "-m", "3", `http://${SERVICE}/`]));
  }

  const faults = Object.fromEntries(Array.from({ length: Math.max(servers.length, agents.length) }, (_, i) => i).flatMap((i) => Object.entries(DAMAGE).map(([how, script]) => {
    const isOnlyWritten = (file: string): boolean => how === "unreadable" && file.endsWith("/etc-hosts"); // in place: to where the link leads
    const torn = ([[server, servers[i]], [agent, agents[i]]] as const).flatMap(([machine, file]) => (file === undefined || isOnlyWritten(file) ? [] : [{ machine, file }]));
    return [`${how}: ${torn.map(({ machine, file }) => `${machine.host.name} ${file}`).join(", ")}`, () => start(torn.map(({ machine, file }) => [machine, script(file)] as const))];
  })));
  return await eachFault({
    faults, words: process.argv.slice(2), cause: (fault) => fault(), well, say,
    story: async () => {
      for (const machine of machines) console.error(machine.said().filter((line) => /"level":"error"|^coracle| because/.test(line)).slice(-6).map((line) => line.slice(0, 400)).join("\n"));
      console.error((await boss.run([boss.binary, "kubectl", "get", "nodes,pods", "-o", "wide", "--request-timeout=10s"])).stdout);
    },
  });
});
