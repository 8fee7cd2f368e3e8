/** `coracle server`: the control plane, and unless --disable-agent a node, in one process. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { measuredTransport } from "../core/client/measured-transport.ts";
import { systemClock } from "../core/lifecycle/clock.ts";
import { giveBack } from "../core/lifecycle/give-back.ts";
import { systemRandom } from "../core/lifecycle/random.ts";
import { runAll } from "../core/lifecycle/run-all.ts";
import { cpuProfiler } from "../core/observe/cpu-profile.ts";
import { debugPages } from "../core/observe/debug-pages.ts";
import type { Log } from "../core/observe/log.ts";
import { metricsRegistry } from "../core/observe/metrics.ts";
import { signerFirst } from "../core/pki/authority.ts";
import { SERVING_NAME } from "../core/pki/identities.ts";
import { addressWatch } from "../node/network/address-watch.ts";
import { sendDatagram } from "../node/os/notify-socket.ts";
import { renewalErrors } from "../node/kubelet/server/certificate-metrics.ts";
import { type AdminKubeconfig, adminKubeconfig, kubeconfigMode } from "./admin-kubeconfig.ts";
import { apiServerArgs } from "./apiserver-args.ts";
import { setNativeDirectory } from "./assets.ts";
import { ConfigError, helpOf, loadSettings, readText } from "./config/config.ts";
import type { Settings } from "./config/flags.ts";
import { checkRanges, isOfServicesFamily, withOwnAddresses } from "./config/ranges.ts";
import { type ControlPlane, controlPlane } from "./control-plane/control-plane.ts";
import { engineMemory } from "./engine-memory.ts";
import { tellOfFormerNode } from "./former-node.ts";
import { giveLoneAddress, isAtGivenAddress, mustBeRoot, podFamilies, rememberName, thisNode } from "./node-identity.ts";
import { type NodeOptions, nodeParts } from "./node.ts";
import { lastWords } from "./last-words.ts";
import { NOT_OURS, ownDirectory } from "./own-directory.ts";
import { paths } from "./paths.ts";
import { shutdownDelay } from "./shutdown-delay.ts";
import { serviceManager, toldBySystemd } from "./service-manager.ts";
import { stderrLog } from "./stderr-log.ts";
import { stopSignal } from "./stop-signal.ts";

export async function server(argv: readonly string[]): Promise<number> {
  if (argv.includes("--help") || argv.includes("-h")) {
    console.log(helpOf("server"));
    return 0;
  }
  const settings = withOwnAddresses(loadSettings("server", { argv, env: process.env, readFile: readText }));
  checkRanges(settings);
  if (!settings.disableAgent) mustBeRoot("server");
  process.umask(0o022); // whoever starts us: what containerd and we make is for containers of all users, who could not even enter their root otherwise
  kubeconfigMode(settings); // one that is none is told before anything is made
  const where = paths(settings.dataDir);
  const stranger = ownDirectory(where);
  makeDataDirectory(settings.dataDir, where.native);
  setNativeDirectory(where.native);

  const log = stderrLog(settings.logLevel);
  lastWords(process, log);
  if (stranger) log.warn(NOT_OURS, { dataDir: settings.dataDir, ...stranger });
  const { signal: asked, reason } = stopSignal(process);
  const stop = shutdownDelay({ asked, ms: apiServerArgs(settings.kubeApiserverArg).durationMs("shutdown-delay-duration") ?? 0, clock: systemClock }), { signal } = stop;
  if (settings.disableAgent) tellOfFormerNode(where, log);
  const systemd = toldBySystemd(process.env, process.pid);
  const common = { settings, paths: where, clock: systemClock, random: systemRandom, log, metrics: metricsRegistry() };
  if (!settings.disableAgent) giveLoneAddress(settings, log);
  const node = await thisNode(settings, { log });
  const address = settings.advertiseAddress ?? node.ips[0]!;
  if (!isOfServicesFamily(settings, address))
    log.warn("pods will not reach this server at the Service kubernetes, whose address is of another family: give a new cluster --cluster-cidr, --service-cidr and --cluster-dns of this family, as fd00:42::/56, fd00:43::/112 and fd00:43::a, or this server another --node-ip", { address, serviceCidr: settings.serviceCidr });
  log.info("coracle server starts", { node: node.name, addresses: node.ips, dataDir: settings.dataDir });

  const debug = debugPages({ profiler: cpuProfiler(systemClock), verbosity: log.verbosity });
  let plane: ControlPlane;
  try {
    const renewals = settings.disableAgent ? undefined : renewalErrors(common.metrics);
    plane = await controlPlane({ ...common, node, signal: asked, stop, debug, onRenewFailed: renewals?.serving, onRenewed: (pki) => kubeconfigOf(pki, settings, log).write() });
  } catch (error) {
    if (!asked.aborted) throw error;
    return 0; // told to stop while it waited for etcd
  }
  await rememberName(settings, node);
  try {
    const agent = settings.disableAgent ? undefined : nodeParts({
      ...common, node, debug,
      transport: (user, userAgent) => measuredTransport(plane.transport(user, userAgent), { ...common, host: () => `127.0.0.1:${settings.httpsListenPort}` }),
      kubeletTls: kubeletTls(plane),
    });
    await runAll(
      [
        ...(agent?.early ?? []), ...plane.parts, kubeconfigOf(plane.pki, settings, log), ...(agent?.parts ?? []),
        ...(isAtGivenAddress(settings) ? [] : [addressWatch({ own: node, families: podFamilies(settings), clock: systemClock, log, homeFile: settings.disableAgent || settings.datastoreEndpoint !== undefined ? undefined : join(where.agent, "network", "home") })]), serviceManager({ systemd, send: sendDatagram, clock: systemClock, log }),
        giveBack({ clock: systemClock, ...engineMemory, forget: () => plane.forgetUnused() }),
      ],
      signal,
    );
  } finally {
    await plane.close();
  }
  log.info("coracle server has ended", { reason: reason() });
  return 0;
}

/** The kubelet in this process has its certificates from the authorities here. */
function kubeletTls({ pki, onReload }: ControlPlane): NodeOptions["kubeletTls"] {
  return {
    material: () => {
      const { keyPem, certificatePem } = pki.leaf("serving-kubelet");
      return { key: keyPem, cert: certificatePem, clientCas: [pki.authority("client-ca").bundlePem] };
    },
    clientCa: () => pki.authority("client-ca").bundle,
    onReload,
  };
}

function makeDataDirectory(dataDir: string, native: string): void {
  try {
    mkdirSync(native, { recursive: true, mode: 0o700 });
  } catch (cause) {
    throw new ConfigError(`the data directory ${dataDir} cannot be used: run as root, or choose another with --data-dir`, { cause });
  }
}

function kubeconfigOf(pki: ControlPlane["pki"], settings: Settings, log: Log): AdminKubeconfig {
  return adminKubeconfig({
    path: settings.writeKubeconfig, mode: kubeconfigMode(settings),
    content: () => ({
      server: `https://127.0.0.1:${settings.httpsListenPort}`,
      certificateAuthorityPem: signerFirst(pki.authority("server-ca"), pki.leaf(SERVING_NAME).certificate), // tokens name the first
      user: pki.leaf("client-admin"),
    }),
  }, { clock: systemClock, log });
}
