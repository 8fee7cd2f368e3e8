/**
 * `coracle agent`: this machine as a node of a cluster whose control plane is elsewhere.
 *
 *   join (node/join) → the way to the server, with a checkpoint for when it is away (core/client/checkpoint) → the parts of a node (node.ts)
 */
import { join } from "node:path";
import { checkpointed } from "../core/client/checkpoint/checkpoint.ts";
import { openJournal } from "../core/client/checkpoint/journal.ts";
import { reachability } from "../core/client/checkpoint/reachability.ts";
import { CLIENT_CA_KEY } from "../core/client/cluster-objects.ts";
import { httpTransport } from "../core/client/http-transport.ts";
import { measuredTransport } from "../core/client/measured-transport.ts";
import { serverClock } from "../core/client/server-clock.ts";
import { refusals } from "../core/client/refusals.ts";
import { clientOver } from "../core/client/resource-client.ts";
import { ENDPOINT_SLICES } from "../core/client/resources.ts";
import { systemClock } from "../core/lifecycle/clock.ts";
import { giveBack } from "../core/lifecycle/give-back.ts";
import { systemRandom } from "../core/lifecycle/random.ts";
import { runAll } from "../core/lifecycle/run-all.ts";
import { environmentProxy } from "../core/net/environment-proxy.ts";
import { http2Fetch } from "../core/net/http2-fetch.ts";
import { fetchTls } from "../core/net/tls.ts";
import type { VerboseLog } from "../core/observe/log.ts";
import { cpuProfiler } from "../core/observe/cpu-profile.ts";
import { debugPages } from "../core/observe/debug-pages.ts";
import { metricsRegistry } from "../core/observe/metrics.ts";
import { parseJoinToken } from "../core/pki/join-token.ts";
import { machineName } from "../core/pki/machine-key.ts";
import { readCertificatePems } from "../core/pki/pem.ts";
import { type Certificate, parseCertificate } from "../core/pki/x509.ts";
import { followAuthorities } from "../node/join/authorities.ts";
import { joinCluster, type JoinedIdentity } from "../node/join/join.ts";
import { renewalErrors } from "../node/kubelet/server/certificate-metrics.ts";
import { nodeCertificates } from "../node/join/node-certificates.ts";
import { learnServers } from "../node/join/servers.ts";
import { temporaryServing } from "../node/join/temporary-serving.ts";
import { connectionError } from "../node/join/trust.ts";
import { addressWatch } from "../node/network/address-watch.ts";
import type { ShutdownNotices } from "../node/kubelet/shutdown/shutdown.ts";
import { sendDatagram } from "../node/os/notify-socket.ts";
import { agentOnWindows } from "./agent.windows.ts";
import { withShared } from "./cluster-settings.ts";
import { ConfigError, helpOf, loadSettings, readText } from "./config/config.ts";
import type { Settings } from "./config/flags.ts";
import { engineMemory } from "./engine-memory.ts";
import { kubeletSettings } from "./kubelet-settings.ts";
import { lastWords } from "./last-words.ts";
import { giveLoneAddress, isAtGivenAddress, mustBeRoot, podFamilies, rememberName, thisNode } from "./node-identity.ts";
import { type NodeOptions, nodeParts } from "./node.ts";
import { NOT_OURS, ownDirectory } from "./own-directory.ts";
import { paths } from "./paths.ts";
import { proxyEnvironment } from "./proxy-environment.ts";
import { serviceManager, toldBySystemd } from "./service-manager.ts";
import { stderrLog } from "./stderr-log.ts";
import { type StopSignal, stopSignal } from "./stop-signal.ts";
import { givenToken } from "./token-file.ts";
import { nodeTunnel } from "./tunnel.ts";
import { gitVersion } from "./version.ts";

/** Probes of a server that may be there: any answer will do. */
const PROBE_PATH = "/version";

export async function agent(argv: readonly string[]): Promise<number> {
  if (argv.includes("--help") || argv.includes("-h")) {
    console.log(helpOf("agent"));
    return 0;
  }
  const settings = loadSettings("agent", { argv, env: process.env, readFile: readText });
  if (process.platform === "win32") return await agentOnWindows(settings, (log, stop, notices) => runAgent(settings, log, stop, notices));
  mustBeRoot("agent");
  return await runAgent(settings, stderrLog(settings.logLevel), stopSignal(process));
}

async function runAgent(settings: Settings, log: VerboseLog, { signal, reason }: StopSignal, shutdownNotices?: ShutdownNotices): Promise<number> {
  process.umask(0o022); // whoever starts us: what containerd and we make is for containers of all users, who could not even enter their root otherwise
  lastWords(process, log);
  const systemd = toldBySystemd(process.env, process.pid);
  const servers = serversOf(settings);
  const token = givenToken(settings);
  const where = paths(settings.dataDir);
  const stranger = ownDirectory(where);
  if (stranger) log.warn(NOT_OURS, { dataDir: settings.dataDir, ...stranger });
  giveLoneAddress(settings, log);
  const node = await thisNode(settings, { log });
  const checkpoint = join(where.agent, "checkpoint");
  const userAgent = `coracle-agent/${gitVersion()}`;
  const { log: partsLog, heard } = refusals({ log, clock: systemClock });
  const metrics = metricsRegistry();
  const base = { clock: systemClock, random: systemRandom, log: partsLog };
  const kubelet = kubeletSettings(settings, node, where); // what cannot be used is told now, not when the machine has joined with it
  log.info("coracle agent starts", { node: node.name, addresses: node.ips, dataDir: settings.dataDir, servers });

  let identity: JoinedIdentity;
  try {
    identity = await joinCluster({ ...base, servers, token, nodeName: node.name, dir: where.nodeTls, remembered: [checkpoint], userAgent }, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
    return 0; // told to stop before it had joined
  }
  await rememberName(settings, node);
  const journal = openJournal({ ...base, path: join(checkpoint, "journal") });
  const allServers = (): readonly string[] => [...servers, ...identity.cluster.servers.filter((one) => !servers.includes(one))];
  const end = new AbortController();
  const clusterSettings = withShared(settings, identity.cluster.settings);
  const proxyOf = environmentProxy(proxyEnvironment(process.env, clusterSettings));
  const http2 = http2Fetch({ clock: systemClock, signal: end.signal, proxyOf });
  const reach = reachability({ ...base, servers: allServers, probe: (server, quit) => probe(server, identity, quit), onLost: (server) => http2.reconnect(`the connection to ${server} is lost`) });
  const server = (): string => reach.server();
  const inOwnName = () => ({ ca: identity.ca, cert: identity.client.certificatePem, key: identity.client.keyPem });
  const serversClock = serverClock(systemClock);
  const overTheWire = heard(measuredTransport(httpTransport({ server, credentials: inOwnName, clock: systemClock, userAgent, fetch: http2, onDate: serversClock.told }), { metrics, clock: systemClock, host: () => new URL(server()).host }));
  const transport = checkpointed(overTheWire, { journal, reach, clock: systemClock });

  const temporary = await temporaryServing(node.name, systemRandom, systemClock.nowMs());
  let reload = (): void => {};
  const renewals = renewalErrors(metrics);
  const certificates = nodeCertificates({
    ...base, identity, client: clientOver(transport), nodeIps: () => node.ips, onServing: () => reload(), failed: (whose) => renewals[whose](),
    bootstrap: token === undefined ? undefined : clientOver(httpTransport({ server, credentials: () => ({ ca: identity.ca, token: parseJoinToken(token).secret }), clock: systemClock, userAgent })),
  });
  const { early, parts, informers } = nodeParts({
    ...base, settings: clusterSettings, paths: where, node, metrics, transport: () => transport, serverMs: serversClock.nowMs, machine: machineName(identity.machineKey),
    debug: debugPages({ profiler: cpuProfiler(systemClock), verbosity: log.verbosity }),
    kubeletTls: kubeletTls(identity, temporary, (call) => { reload = call; }), shutdownNotices,
  });
  const tunnel = nodeTunnel({ ...base, node, kubelet, informers, servers: allServers, credentials: inOwnName, proxyOf, metrics, log: partsLog.with({ part: "tunnel" }) });
  const authorities = followAuthorities({ ...base, identity, client: clientOver(overTheWire), onClientCa: () => reload() });
  const others = learnServers({ slices: informers.of(ENDPOINT_SLICES), identity, log: partsLog });
  await runAll(
    [
      ...early, journal, reach, transport, certificates, ...parts, tunnel, others, authorities,
      ...(isAtGivenAddress(settings) ? [] : [addressWatch({ own: node, families: podFamilies(clusterSettings), clock: systemClock, log })]), serviceManager({ systemd, send: sendDatagram, clock: systemClock, log }),
      giveBack({ clock: systemClock, ...engineMemory, forget: () => 0 }),
    ],
    signal,
  );
  end.abort(new Error("the agent ends"));
  log.info("coracle agent has ended", { reason: reason() });
  return 0;
}

/** What --server says. Throws ConfigError. */
export function serversOf({ server }: Pick<Settings, "server">): string[] {
  const servers = (server ?? "").split(",").map((text) => text.trim().replace(/\/+$/, "")).filter((text) => text !== "");
  if (servers.length === 0) throw new ConfigError("which cluster? --server https://host:6443 (or CORACLE_URL)");
  for (const one of servers) if (!/^https:\/\/[^/]+$/.test(one) || !URL.canParse(one)) throw new ConfigError(`--server ${JSON.stringify(one)}: must be https://host:port`);
  return servers;
}

/** Until the cluster has signed a certificate, the kubelet's server shows one that nobody believes. */
function kubeletTls(identity: JoinedIdentity, temporary: { readonly keyPem: string; readonly certificatePem: string }, onReload: (reload: () => void) => void): NodeOptions["kubeletTls"] {
  const clientCa = (): string => identity.cluster.settings[CLIENT_CA_KEY] ?? "";
  let known = { pem: "", certificates: [] as readonly Certificate[] }; // the same list as long as it is the same text
  return {
    client: () => identity.client.certificatePem,
    material: () => {
      const { keyPem, certificatePem } = identity.serving ?? temporary;
      return { key: keyPem, cert: certificatePem, clientCas: [clientCa()] };
    },
    clientCa: () => {
      const pem = clientCa();
      if (pem !== known.pem) known = { pem, certificates: readCertificatePems(pem).map(parseCertificate) };
      return known.certificates;
    },
    onReload,
  };
}

async function probe(server: string, { ca }: JoinedIdentity, signal: AbortSignal): Promise<void> {
  const { status, body } = await fetch(server + PROBE_PATH, { tls: fetchTls({ ca }), redirect: "manual", signal } as RequestInit).catch((error: unknown) => { throw connectionError(server, error); });
  await body?.cancel();
  if (status === 502 || status === 503 || status === 504) throw new Error(`${server} answered ${status}`);
}
