/** What works on the cluster all the time, as a client of this server: controllers and the scheduler. Of several servers one does it at a time. */
import type { KeyObject } from "node:crypto";
import { mkdirSync } from "node:fs";
import { completeTemplate } from "../complete-template.ts";
import type { ClusterTrustBundle } from "../../core/api/gen/certificates.v1beta1.ts";
import { encodeLegacyClaims } from "../../core/authn/service-account-claims.ts";
import type { Client, ResourceRef } from "../../core/client/client.ts";
import type { LeaseTimes } from "../../core/client/leader.ts";
import { eventWriter } from "../../core/client/events.ts";
import type { Informers } from "../../core/client/informer-factory.ts";
import { manifestDirectory } from "../../core/controllers/addons/manifest-directory.ts";
import { allControllers } from "../../core/controllers/all.ts";
import { LEADER_ELECTION, leaderElection } from "../../core/controllers/leaderelection/leaderelection.ts";
import { controllerMetrics } from "../../core/controllers/run-controller.ts";
import { dnsEndpoints } from "../../core/dns/dns-endpoints.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Random } from "../../core/lifecycle/random.ts";
import type { Runnable } from "../../core/lifecycle/run-all.ts";
import type { Log } from "../../core/observe/log.ts";
import type { Metrics } from "../../core/observe/metrics.ts";
import { signJwt } from "../../core/pki/jwt.ts";
import type { Pki } from "../../core/pki/pki.ts";
import { parsePortRange } from "../../core/registry/core/service/allocator/port-range.ts";
import type { SchedulingExplainer } from "../../core/scheduler/explainer.ts";
import { scheduler } from "../../core/scheduler/scheduler.ts";
import type { Settings } from "../config/flags.ts";
import type { ControllerSettings } from "../controller-settings.ts";
import { leading, type LeadingOptions } from "../leading.ts";
import type { Paths } from "../paths.ts";
import type { SchedulerSetup } from "../scheduler-settings.ts";
import { releasedMs } from "../version.ts";
import type { LoopsState } from "./components.ts";
import { reservedPorts } from "./reserved-ports.ts";

/** Events under way at once, of all controllers or of the scheduler: one after the other they would fall behind a thousand pods a second, and most would be dropped. */
const EVENT_WRITES_MAX = 64;

interface Options {
  readonly settings: Settings;
  readonly paths: Pick<Paths, "manifests">;
  readonly controlling: ControllerSettings;
  readonly scheduling: SchedulerSetup;
  readonly explainer: SchedulingExplainer;
  /** Feature gates that are off by default and were switched on, of which there is work: see gatesWithTheirResources. */
  readonly gates: ReadonlySet<string>;
  /** ClusterTrustBundles, in the version in which they are served; absent: they are not. */
  readonly trustBundles?: ResourceRef<ClusterTrustBundle> | undefined;
  /** Of the Lease by which servers agree on who elects leaders; absent: LeaseCandidates are not elected from. */
  readonly election: LeaseTimes | undefined;
  /** What this server says of itself in StorageVersions, for as long as it runs; absent: nothing is said. */
  readonly storageVersions: Runnable | undefined;
  /** What is told of them at ports of their own. */
  readonly state: LoopsState;
  /** Other servers do the same work, too. */
  readonly isShared: boolean;
  readonly nodeName: string;
  /** What clients call the API server, and no node. */
  readonly serverNames: () => readonly string[];
  readonly pki: Pki;
  /** Whenever its authorities may be others. Returns what ends that. */
  onReload(handler: () => void): () => void;
  /** Signs tokens that stand in Secrets, if they are made here. */
  readonly legacyTokenKey: KeyObject | undefined;
  /** In whose names they work. */
  readonly clients: { readonly loopback: Client; readonly controllers: Client; readonly scheduler: Client };
  readonly informers: Informers;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: Metrics;
}

export function loopsOf(options: Options): readonly Runnable[] {
  const { settings, paths, controlling, scheduling, explainer, gates, trustBundles, election, storageVersions, state, isShared, nodeName, pki, onReload, legacyTokenKey, clients, informers, clock, random, log, metrics } = options;
  mkdirSync(paths.manifests, { recursive: true, mode: 0o700 });
  const enabled = (part: string): boolean => !settings.disable.includes(part);
  const eventsOf = (client: Client): ReturnType<typeof eventWriter> => eventWriter({ client, clock, random, log, writesMax: EVENT_WRITES_MAX });
  const [events, schedulerEvents] = [eventsOf(clients.controllers), eventsOf(clients.scheduler)]; // each tells in its own name
  const status = metrics.gauge(
    "leader_election_master_status",
    "[ALPHA] Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master. 'name' is the string used to identify the lease. Please make sure to group by name.",
  );
  const slow = metrics.counter("leader_election_slowpath_total", "[ALPHA] Total number of slow path exercised in renewing leader leases. 'name' is the string used to identify the lease. Please make sure to group by name.");
  const leader: LeadingOptions = { leads: (name, does) => status.set(does ? 1 : 0, { name }), lookedAnew: (name) => slow.inc({ name }), isShared, nodeName, client: clients.controllers, informers, events, clock, random, metrics, log };

  const queues = enabled("controllers") || election ? controllerMetrics(metrics) : undefined;
  const electing = election ? leading({ ...leader, client: clients.loopback, events: undefined, times: election }, LEADER_ELECTION, ({ informers }) => leaderElection({
    client: clients.loopback, informers, clock, metrics: queues, log: log.with({ part: "leader election" }),
  })) : [];
  const dns = (informers: Informers): readonly Runnable[] => (enabled("dns") ? [dnsEndpoints({ client: clients.loopback, informers, ownNetwork: enabled("network"), clock, log: log.with({ part: "dns" }) })] : []);
  /** Without controllers the Lease is left to who has them: another server, or a kube-controller-manager beside us. */
  const led = enabled("controllers") ? leading(leader, "kube-controller-manager", ({ informers, metrics }) => [
    ...allControllers({
      ...controlling, nodeName, client: clients.controllers, informers, events, clock, random, metrics, queues, gates,
      log: log.with({ part: "controllers" }),
      complete: completeTemplate, collectsStorageVersions: storageVersions !== undefined, migratesStorage: gates.has("StorageVersionMigrator"),
      trustBundles, certifiesPods: gates.has("PodCertificateRequest"), groupsPods: gates.has("GenericWorkload"),
      groupsJobs: gates.has("WorkloadWithJob"),
      tellRunning: (running) => { state.controllers = running; },
      rootCa: () => pki.authority("server-ca").bundlePem, onRootCa: onReload,
      nodeIpam: { clusterCidrs: settings.clusterCidr.split(","), serviceCidrs: settings.serviceCidr.split(","), ...controlling.nodeMasks },
      nodePortRange: parsePortRange(settings.serviceNodePortRange), manifests: manifestDirectory(paths.manifests),
      approveServing: true, serverNames: options.serverNames, localStorage: enabled("local-storage"), ingress: enabled("ingress"), serviceLb: enabled("servicelb") ? { reserved: reservedPorts(settings) } : undefined,
      tokenFor: legacyTokenKey && (({ metadata: { name, namespace = "", uid } }, secret) => signJwt(encodeLegacyClaims({ namespace, secretName: secret.metadata.name, serviceAccount: { name, uid } }), legacyTokenKey)),
      releasedMs: releasedMs(), authorityFor: (signer) => (signer === "kubernetes.io/kubelet-serving" ? pki.authority("server-ca") : signer.startsWith("kubernetes.io/kube-apiserver-client") ? pki.authority("client-ca") : undefined),
    }),
    ...dns(informers),
  ]) : enabled("dns") ? leading({ ...leader, client: clients.loopback }, "coracle-dns", ({ informers }) => dns(informers)) : [];
  const controllers = [events, ...(storageVersions ? [storageVersions] : []), ...led, ...electing];
  if (!enabled("scheduler")) return controllers;
  return [...controllers, schedulerEvents, ...leading({ ...leader, client: clients.scheduler, events: schedulerEvents }, "kube-scheduler", (deps) => [
    told(state, scheduler({ ...deps, client: clients.scheduler, nodeName, events: schedulerEvents, clock, random, log: log.with({ part: "scheduler" }), explainer, gates, ...scheduling })),
  ])];
}

/** Nobody waits for a scheduler: what it has to know of the cluster may not be readable yet, and the node that starts after it runs what makes it so. */
function told(state: LoopsState, part: Runnable): Runnable {
  return {
    name: part.name,
    async run(signal, ready) {
      state.scheduler = "starting";
      ready();
      try {
        await part.run(signal, () => { state.scheduler = "synced"; });
      } finally {
        state.scheduler = "elsewhere";
      }
    },
  };
}
