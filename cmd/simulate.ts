/**
 * `coracle simulate`: nodes without machines (node/hollow) join a cluster, for as long as this process runs.
 *
 *   --server, --token   each joins as a real agent does and speaks in its own name, with a connection (HTTP/2) and watches of its own; who they are is kept in --data-dir
 *   --kubeconfig        all speak in that file's name through one connection and one set of watches: costs the server least, and is for large numbers
 *
 * Their Nodes stay behind when it ends, and become NotReady: `kubectl delete node -l coracle.local/simulated=true`.
 */
import { join } from "node:path";
import { eventWriter } from "../core/client/events.ts";
import { httpTransport } from "../core/client/http-transport.ts";
import { informerFactory } from "../core/client/informer-factory.ts";
import { clientOver } from "../core/client/resource-client.ts";
import { NODES, PODS } from "../core/client/resources.ts";
import { systemClock } from "../core/lifecycle/clock.ts";
import { systemRandom } from "../core/lifecycle/random.ts";
import { type Runnable, runAll } from "../core/lifecycle/run-all.ts";
import { settleAll } from "../core/lifecycle/settle-all.ts";
import { http2Fetch } from "../core/net/http2-fetch.ts";
import type { Log } from "../core/observe/log.ts";
import { MACHINE_ANNOTATION, machineName } from "../core/pki/machine-key.ts";
import { memoryRuntime } from "../node/cri/memory-runtime.ts";
import { HOLLOW_NODES_MAX, hollowNode } from "../node/hollow/hollow-node.ts";
import { slim } from "../node/hollow/slim-transport.ts";
import { joinCluster } from "../node/join/join.ts";
import { serversOf } from "./agent.ts";
import { ConfigError, helpOf, loadSettings, readText } from "./config/config.ts";
import type { Settings } from "./config/flags.ts";
import { nodeLabels } from "./node-labels.ts";
import { lastWords } from "./last-words.ts";
import { nodeTaint } from "./node-taint.ts";
import { readKubeconfig } from "./kubeconfig-file.ts";
import { stderrLog } from "./stderr-log.ts";
import { stopSignal } from "./stop-signal.ts";
import { givenToken } from "./token-file.ts";
import { gitVersion } from "./version.ts";

/** So many join at a time: each waits for the server's controllers to sign its certificate. */
const JOINING_MAX = 32;
/** Events under way at once where one writer has those of all nodes. */
const EVENT_WRITES_MAX = 64;

interface Base { readonly settings: Settings; readonly clock: typeof systemClock; readonly random: typeof systemRandom; readonly log: Log; readonly userAgent: string }

export async function simulate(argv: readonly string[]): Promise<number> {
  if (argv.includes("--help") || argv.includes("-h")) {
    console.log(helpOf("simulate"));
    return 0;
  }
  const settings = loadSettings("simulate", { argv, env: process.env, readFile: readText });
  const { nodes: count, kubeconfig } = settings;
  if (count < 1 || count > HOLLOW_NODES_MAX) throw new ConfigError(`--nodes must be between 1 and ${HOLLOW_NODES_MAX}, not ${count}`);
  const log = stderrLog(settings.logLevel);
  lastWords(process, log);
  const { signal, reason } = stopSignal(process);
  const base: Base = { settings, clock: systemClock, random: systemRandom, log, userAgent: `coracle-simulate/${gitVersion()}` };
  const names = Array.from({ length: count }, (_, index) => `${settings.nodePrefix}-${index}`);
  log.info("hollow nodes start", { nodes: count });
  await (kubeconfig === undefined ? inOwnNames(names, base, signal) : inOneName(kubeconfig, names, base, signal));
  log.info("hollow nodes have ended", { reason: reason() });
  return 0;
}

/** Every node joins, and runs from then on. */
async function inOwnNames(names: readonly string[], base: Base, signal: AbortSignal): Promise<void> {
  const { settings, clock, random, log, userAgent } = base;
  const servers = serversOf(settings), token = givenToken(settings);
  const cri = memoryRuntime({ nowMs: clock.nowMs });
  const waiting = [...names.entries()].values();
  const failed = new AbortController();
  const quit = AbortSignal.any([signal, failed.signal]);
  const fetch = http2Fetch({ clock, signal: quit });
  const running: Promise<void>[] = [];

  async function start(index: number, name: string): Promise<void> {
    const identity = await joinCluster({ clock, random, log: log.with({ node: name }), servers, token, nodeName: name, dir: join(settings.dataDir, "simulate", name), remembered: [], userAgent, fetch }, quit);
    const client = clientOver(slim(httpTransport({ server: servers[0]!, credentials: () => ({ ca: identity.ca, cert: identity.client.certificatePem, key: identity.client.keyPem }), clock, userAgent, fetch })));
    const informers = informerFactory({ client, clock, random, log });
    const events = eventWriter({ client, clock, random, log });
    const parts = hollowNode({
      ...identityOf(settings), name, index, client, cri, events, clock, log, annotations: { [MACHINE_ANNOTATION]: machineName(identity.machineKey) },
      pods: informers.of(PODS, { fieldSelector: `spec.nodeName=${name}` }), nodes: informers.of(NODES, { fieldSelector: `metadata.name=${name}` }),
    });
    running.push(runAll([informers, events, ...parts], quit).catch((error: unknown) => {
      failed.abort(error);
      throw error;
    }));
  }

  async function joinOneByOne(): Promise<void> {
    for (const [index, name] of waiting) {
      if (quit.aborted) return;
      await start(index, name);
    }
  }

  try {
    await Promise.all(Array.from({ length: JOINING_MAX }, joinOneByOne));
    log.info("all hollow nodes have joined", { nodes: names.length });
  } catch (error) {
    if (!signal.aborted) failed.abort(error);
    await Promise.allSettled(running);
    if (signal.aborted) return; // told to stop before all had joined
    throw error;
  }
  await settleAll(running);
}

/** One client, one copy of pods and nodes for all. */
async function inOneName(kubeconfig: string, names: readonly string[], base: Base, signal: AbortSignal): Promise<void> {
  const { settings, clock, random, log, userAgent } = base;
  const { server, credentials } = readKubeconfig(kubeconfig);
  const client = clientOver(slim(httpTransport({ server, credentials: () => credentials, clock, userAgent, fetch: http2Fetch({ clock, signal }) })));
  const informers = informerFactory({ client, clock, random, log });
  const events = eventWriter({ client, clock, random, log, writesMax: EVENT_WRITES_MAX });
  const cri = memoryRuntime({ nowMs: clock.nowMs });
  const pods = informers.of(PODS), nodes = informers.of(NODES);
  const together: Runnable = {
    name: "hollow nodes",
    async run(quit, ready) {
      ready();
      await settleAll(names.map((name, index) => runAll(hollowNode({ ...identityOf(settings), name, index, client, cri, events, pods, nodes, clock, log, annotations: {} }), quit)));
    },
  };
  await runAll([informers, events, together], signal);
}

function identityOf({ nodeLabel, nodeTaint: taints }: Settings) {
  return { version: gitVersion(), labels: nodeLabels(nodeLabel), taints: taints.map((text) => nodeTaint(text)) };
}
