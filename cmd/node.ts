/**
 * The node of this machine, in data-flow order:
 *
 *   container runtime → network and its policies, service proxy, DNS, ingress → kubelet
 *
 * The first three are the operating system's: node-platform.linux.ts, node-platform.windows.ts.
 * It knows the cluster through a client only: the server's own process, or a server elsewhere.
 */
import { existsSync } from "node:fs";
import { networkInterfaces, setPriority } from "node:os";
import { join, resolve } from "node:path";
import { clientOver } from "../core/client/resource-client.ts";
import { eventWriter } from "../core/client/events.ts";
import { type Informers, informerFactory } from "../core/client/informer-factory.ts";
import { ENDPOINT_SLICES, NODES, PODS, POD_CERTIFICATE_REQUESTS, SERVICES } from "../core/client/resources.ts";
import type { Transport } from "../core/client/transport.ts";
import { zpages } from "../core/api/codec/zpages.ts";
import { objectKey } from "../core/api/meta/object-meta.ts";
import type { UserInfo } from "../core/api/request/user.ts";
import { DNS_PORT, dnsServer } from "../core/dns/dns.ts";
import { dnsAddresses } from "../core/dns/dns-endpoints.ts";
import { ownAddresses } from "../core/dns/own-addresses.ts";
import { hostUpstreams } from "../core/dns/upstreams.ts";
import type { Clock } from "../core/lifecycle/clock.ts";
import type { Random } from "../core/lifecycle/random.ts";
import type { Runnable } from "../core/lifecycle/run-all.ts";
import { startEarly } from "../core/lifecycle/start-early.ts";
import type { DebugPages } from "../core/observe/debug-pages.ts";
import type { Log } from "../core/observe/log.ts";
import type { Metrics } from "../core/observe/metrics.ts";
import { MACHINE_ANNOTATION } from "../core/pki/machine-key.ts";
import type { TlsMaterial } from "../core/net/tls.ts";
import type { Certificate } from "../core/pki/x509.ts";
import { fallbackCertificate } from "../node/ingress/fallback-certificate.ts";
import { nodeIngress } from "../node/ingress/ingress.ts";
import { kubeletConfiguration } from "../node/kubelet/server/configz.ts";
import { podDirectory } from "../node/kubelet/volumes/pod-directories.ts";
import { tracedCri } from "../node/cri/traced.ts";
import { measuredCri } from "../node/cri/measured.ts";
import { certificateMetrics } from "../node/kubelet/server/certificate-metrics.ts";
import { givenCertificate } from "../node/kubelet/server/given-certificate.ts";
import { healthzServer } from "../node/kubelet/server/healthz.ts";
import { withoutEffect } from "../node/kubelet/configuration/without-effect.ts";
import { readOnlyServer } from "../node/kubelet/server/read-only.ts";
import { requestCounts } from "../node/kubelet/server/requests.ts";
import { kubeletServer } from "../node/kubelet/server/server.ts";
import { kubelet } from "../node/kubelet/kubelet.ts";
import { kernelTunables } from "../node/kubelet/resources/kernel-tunables.ts";
import { measuredCgroups } from "../node/kubelet/resources/measured-cgroups.ts";
import { hasLogind, logindNotices } from "../node/kubelet/shutdown/logind.ts";
import type { ShutdownNotices } from "../node/kubelet/shutdown/shutdown.ts";
import { localPathDirectories } from "../node/kubelet/volumes/local-path.ts";
import { systemCgroups } from "../node/os/cgroup.ts";
import { adjustOomScore } from "../node/os/oom-score.ts";
import { exec, sparing } from "../node/os/exec.ts";
import { machineInfo } from "../node/os/machine.ts";
import { systemMounts } from "../node/os/mount.ts";
import { sysctlKeeper } from "../node/os/sysctl.ts";
import type { Settings } from "./config/flags.ts";
import { gateWarnings } from "./kubelet-gates.ts";
import { kubeletSettings, providersOf } from "./kubelet-settings.ts";
import { completePod } from "./complete-pod.ts";
import type { ThisNode } from "./node-identity.ts";
import { linuxPlatform } from "./node-platform.linux.ts";
import { windowsPlatform } from "./node-platform.windows.ts";
import { shownFlags } from "./shown-flags.ts";
import { shutdownSignal } from "./shutdown-signal.ts";
import { checkCgroups } from "./usable-cgroups.ts";
import { releasedMs, versionInfo } from "./version.ts";
import type { Paths } from "./paths.ts";
import { kubeletTracing } from "./tracing.ts";

/** For /statusz. */
const KUBELET_PATHS = ["/checkpoint", "/configz", "/containerLogs", "/flagz", "/healthz", "/logs", "/metrics", "/metrics/cadvisor", "/metrics/probes", "/metrics/resource", "/metrics/slis", "/pods", "/runningpods", "/stats", "/statusz"];

export interface NodeOptions {
  readonly settings: Settings;
  readonly paths: Paths;
  readonly node: ThisNode;
  /** The way to the API server in somebody's name. */
  readonly transport: (user: UserInfo, userAgent: string) => Transport;
  /** The server's clock, where that is another machine's. */
  readonly serverMs?: (() => number | undefined) | undefined;
  /** What the kubelet's own server presents, and who may have signed a caller's certificate. */
  readonly kubeletTls: {
    /** PEM: what the node calls the API server with; absent: it calls within this process. */
    readonly client?: (() => string | undefined) | undefined;
    readonly material: () => TlsMaterial;
    readonly clientCa: () => readonly Certificate[];
    /** Is given what to call when `material` has changed. */
    readonly onReload?: ((reload: () => void) => void) | undefined;
  };
  /** Which machine it is, for its Node: core/pki/machine-key.ts. */
  readonly machine?: string | undefined;
  /** Who says that the machine goes down, on Windows. Absent: nobody. */
  readonly shutdownNotices?: ShutdownNotices | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly debug: DebugPages;
  readonly metrics: Metrics;
}

export interface NodeParts {
  /** To be begun before anything else: takes long and needs nothing. */
  readonly early: readonly Runnable[];
  readonly parts: readonly Runnable[];
  /** Run with `parts`. */
  readonly informers: Informers;
}

export function nodeParts(options: NodeOptions): NodeParts {
  const { settings, paths, node, clock, random, metrics } = options;
  const log = options.log.with({ part: "node" });
  const user: UserInfo = { name: `system:node:${node.name}`, groups: ["system:nodes", "system:authenticated"] };
  const client = clientOver(options.transport(user, "kubelet"));
  const informers = informerFactory({ client, clock, random, log });
  const events = eventWriter({ client, clock, random, log });

  const enabled = (part: string): boolean => !settings.disable.includes(part);
  if (process.platform === "linux") checkCgroups(log);
  const machine = machineInfo();
  const mounts = systemMounts();
  const agentSettings = { ...kubeletSettings(settings, node, paths), annotations: options.machine === undefined ? {} : { [MACHINE_ANNOTATION]: options.machine } };
  for (const { field, why } of withoutEffect(agentSettings.configuration)) log.warn("a field of the KubeletConfiguration has no effect", { field, why });
  for (const { message, ...gate } of gateWarnings(agentSettings.placement.gates)) log.warn(message, { ...gate });
  if (agentSettings.processPriority !== undefined) setPriority(agentSettings.processPriority);
  if (process.platform === "linux") {
    adjustOomScore(agentSettings.oomScoreAdjust, log);
    kernelTunables(sysctlKeeper({ recordFile: join(paths.kubelet, "sysctls.json"), log }), { protects: agentSettings.protectsKernel });
  }
  const isPodHere = (uid: string): boolean => existsSync(podDirectory(agentSettings.dataDir, uid));
  const platformOptions = { isPodHere, onBridge: () => dns.look(), kubelet: agentSettings, settings, paths, node, client, informers, mounts, machine, events, clock, metrics, log };
  const { cri, runtime, network, proxy, policies } = process.platform === "win32" ? windowsPlatform(platformOptions) : linuxPlatform(platformOptions);

  const traces = kubeletTracing(agentSettings.configuration, { instance: node.name, env: process.env, clock, random, log: log.with({ part: "traces" }) });
  const agent = kubelet({
    settings: agentSettings,
    client, cri: tracedCri(measuredCri(cri, { metrics, clock }), traces.spans), spans: traces.spans, mounts, exec: sparing(exec), clock, serverMs: options.serverMs, random, log, events, metrics,
    pods: informers.of(PODS, { fieldSelector: `spec.nodeName=${node.name}` }),
    certificateRequests: () => informers.of(POD_CERTIFICATE_REQUESTS, { fieldSelector: `spec.nodeName=${node.name}` }),
    services: informers.of(SERVICES),
    nodes: informers.of(NODES),
    cgroups: measuredCgroups(systemCgroups(), { metrics, clock }),
    machine, networkProblem: network.problem,
    completePod,
    credentialProviders: providersOf(settings, { metrics, clock, log: log.with({ part: "node" }) }),
    shutdownNotices: process.platform === "linux" ? (hasLogind() ? logindNotices({ exec, clock, log }) : shutdownSignal(process)) : options.shutdownNotices,
  });
  const { access } = agentSettings;
  const counts = requestCounts({ metrics, clock });
  const readOnly = access.readOnlyPort === 0 ? [] : [readOnlyServer({ api: agent.api, counts, host: agentSettings.address, port: access.readOnlyPort, clock, exec, metrics, log: log.with({ part: "kubelet server" }) })];
  const ownTls = (): TlsMaterial => ({ ...options.kubeletTls.material(), policy: agentSettings.tls });
  const given = agentSettings.servingFiles && givenCertificate(agentSettings.servingFiles, { changed: () => agentServer.reloadCertificates(), clock, log: log.with({ part: "kubelet server" }) });
  const agentServer = kubeletServer({
    api: agent.api, access, counts, host: agentSettings.address, port: agentSettings.port, tls: () => ({ ...ownTls(), ...given?.current() }), tlsForApiServer: given && ownTls, clientCa: options.kubeletTls.clientCa, client,
    localPath: localPathDirectories({ root: resolve(settings.defaultLocalStoragePath ?? join(paths.dataDir, "storage")), mounts }),
    zpages: zpages({ component: "kubelet", flags: shownFlags(settings), version: versionInfo(), paths: KUBELET_PATHS, cbor: agentSettings.placement.gates["CBORServingAndStorage"] === true, clock }), debug: options.debug,
    configz: () => (kubeletConfiguration(agentSettings)), clock, exec, metrics, log: log.with({ part: "kubelet server" }),
  });
  certificateMetrics({ metrics, clock, serving: () => options.kubeletTls.material().cert, client: options.kubeletTls.client });
  options.kubeletTls.onReload?.(() => agentServer.reloadCertificates());
  const hasBridge = process.platform === "linux" && enabled("network");
  const dnsListens = (): string[] => dnsAddresses(informers.of(NODES).get(objectKey("", node.name)) ?? { metadata: {}, spec: {} }, { ownNetwork: enabled("network") });
  const dnsIsAt = (): string[] => [settings.clusterDns, ...ownAddresses({ services: informers.of(SERVICES), slices: informers.of(ENDPOINT_SLICES), listen: dnsListens() })];
  const dns = dnsServer({
    informers, clusterDomain: settings.clusterDomain, cidrs: [...settings.clusterCidr.split(","), ...settings.serviceCidr.split(",")], clients: () => node.ips,
    listen: () => dnsListens().map((address) => ({ address, port: DNS_PORT })),
    onListenChange: hasBridge ? undefined : (look) => informers.of(NODES).onChange(({ object }) => { if (object.metadata.name === node.name) look(); }),
    upstreams: hostUpstreams({ exclude: dnsIsAt, clock }), clock, random, metrics, log: log.with({ part: "dns" }),
  });
  const ingress = nodeIngress({
    client, informers, addresses: node.ips, ownAddresses: () => Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => address)),
    clusterCidrs: settings.clusterCidr.split(","), serviceCidrs: settings.serviceCidr.split(","), fallbackCertificate: () => fallbackCertificate(random, { nowMs: clock.nowMs(), releasedMs: releasedMs() }), clock, random, metrics, log: log.with({ part: "ingress" }),
  });
  const early = runtime.map(startEarly);
  return {
    early: early.map(([begun]) => begun), informers,
    parts: [
      ...traces.parts, informers, events, ...early.map(([, ready]) => ready),
      ...(enabled("network") ? [network] : []), ...policies, proxy, ...(enabled("dns") ? [dns] : []), ...(enabled("ingress") && process.platform !== "win32" ? [ingress] : []),
      agent, agentServer, ...(given ? [given] : []), ...readOnly,
      healthzServer({ address: agentSettings.healthzAddress, port: agentSettings.healthzPort, clock, log: log.with({ part: "kubelet server" }) }), // after the network, which forgets the addresses of before a reboot
    ],
  };
}
