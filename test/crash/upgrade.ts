/**
 * What an upgrade leaves alone: `bun test/crash/upgrade.ts OTHER_BINARY` with an executable of an older commit, on two machines made of namespaces.
 *
 *   a server and an agent of the other build  →  the server of this one  →  the agent too  →  the server of the other build again
 *
 * Each time: no container is restarted, Services answer all the while, names are answered, and new pods start on both nodes. A server that goes back may refuse, with a reason; then this one goes on.
 * Exits with 1 otherwise.
 */
import { cpSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { eventually, Host, IMAGES } from "../cluster/host.ts";
import { webOnEachNode } from "../web-on-each-node.ts";
import { endWith } from "./outcome.ts";

const [other] = process.argv.slice(2);
const THIS = process.env["CORACLE_BINARY"] ?? "dist/coracle";
const SERVICE = "10.43.7.7";
const begin = performance.now();
const say = (text: string): void => console.log(`${((performance.now() - begin) / 1000).toFixed(1)} s  ${text}`);
let serial = 0;

/** What runs keeps its file, as the installer has it. */
function install(host: Host, binary: string): void {
  cpSync(binary, `${host.binary}.new`);
  renameSync(`${host.binary}.new`, host.binary);
}

await endWith(async () => {
  if (other === undefined) throw new Error("which other executable?");
  await using boss = await Host.up("up-s", "172.30.0.80");
  await using limb = await Host.up("up-a", "172.30.0.81");
  const hosts = [boss, limb];
  for (const host of hosts) install(host, other);
  await boss.start();
  await boss.nodeReady();
  const token = (await boss.ok([boss.binary, "token", "create"])).trim();
  await limb.startAgent("--server", `https://${boss.address}:6443`, "--token", token);
  await boss.nodeReady("up-a");
  for (const host of hosts) await host.ok([host.binary, "images", "import", host.bring(join(IMAGES, "busybox.tar"))]);
  await boss.apply(webOnEachNode({ clusterIp: SERVICE }));
  const pods = async (): Promise<string[]> => (await boss.kubectl("get", "pods", "-l", "app=web", "-o", "jsonpath={range .items[*]}{.metadata.name} {.spec.nodeName} {.status.containerStatuses[0].containerID} {.status.containerStatuses[0].restartCount} {.status.containerStatuses[0].ready}{\"\\n\"}{end}")).split("\n").filter(Boolean).toSorted();
  await eventually("both pods are ready", async () => { const all = await pods(); return all.length === 2 && all.every((line) => line.endsWith(" true")); });
  const before = await pods();
  say(`${(await boss.ok([boss.binary, "version"])).split("\n")[0]}: ${before.length} pods`);

  /** Asks the Service twice a second on each machine, and notes what fails. */
  for (const host of hosts) await host.sh(`(while [ ! -e ${host.directory}/enough ]; do curl -sf -m 5 -o /dev/null http://${SERVICE}/ || date +%T.%N >> ${host.directory}/failed; echo >> ${host.directory}/asked; sleep 0.5; done) </dev/null >/dev/null 2>&1 &`);
  const lines = (file: string): string[] => { try { return readFileSync(file, "utf8").split("\n").slice(0, -1); } catch { return []; } };

  async function well(): Promise<void> {
    for (const { name } of hosts) await boss.nodeReady(name);
    const now = await pods();
    if (now.join() !== before.join()) throw new Error(`pods of before:\n${before.join("\n")}\nare now:\n${now.join("\n")}`);
    for (const line of now) {
      const [name] = line.split(" ");
      await eventually(`${name} is answered by name`, () => boss.kubectl("exec", name!, "--", "wget", "-qO-", "-T", "3", "http://web.default.svc.cluster.local/"), 120_000);
    }
    for (const host of hosts) {
      const name = `new-${serial++}`;
      await boss.apply(JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata: { name }, spec: { nodeName: host.name, terminationGracePeriodSeconds: 1, containers: [{ name: "c", image: "busybox:1", imagePullPolicy: "Never", command: ["sleep", "100000"] }] } }));
      await eventually(`${name} runs`, async () => (await boss.kubectl("get", "pod", name, "--no-headers")).includes(" 1/1 "), 120_000);
      await boss.kubectl("delete", "pod", name, "--wait=true", "--timeout=60s");
      const failed = lines(`${host.directory}/failed`), asked = lines(`${host.directory}/asked`);
      if (failed.length > 0) throw new Error(`${host.name} asked the Service ${asked.length} times, in vain at ${failed.join()}`);
      say(`  ${host.name}: ${asked.length} answers, none missed`);
    }
  }

  await well();
  await boss.kill("TERM");
  install(boss, THIS);
  await boss.start();
  await well();
  say("the server is of this build");
  await limb.kill("TERM");
  install(limb, THIS);
  await limb.startAgent("--server", `https://${boss.address}:6443`);
  await well();
  say("the agent is of this build, too");
  await boss.kill("TERM");
  install(boss, other);
  const mark = boss.log().length;
  await boss.start();
  const refusal = await eventually("it serves, or refuses", async () => boss.log().slice(mark).split("\n").find((line) => line.startsWith("coracle: ")) ?? ((await boss.kubectl("get", "--raw", "/readyz")) === "ok" ? "it serves" : undefined));
  say(`  the server of the other build again: ${refusal}`);
  if (refusal !== "it serves") {
    install(boss, THIS);
    await boss.start();
  }
  await well();
  say("the server has gone back");
  for (const host of hosts) await host.sh(`touch ${host.directory}/enough`);
  return true;
});
