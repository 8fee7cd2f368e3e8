/**
 * The control plane of one server, in data-flow order:
 *
 *   gates.ts · state.ts: store, keys → watch cache → registry.ts → identity.ts, permission.ts, admission.ts → handler, paths.ts → listener.ts
 *   then, as clients of the handler: first-objects.ts, loops.ts (controllers, scheduler)
 */
import { conversionBy } from "../../core/admission/webhook/conversion.ts";
import { conversionMeter } from "../../core/admission/webhook/conversion-metrics.ts";
import type { UserInfo } from "../../core/api/request/user.ts";
import { builtInResources } from "../../core/api/schema/resources.ts";
import { storageVersionsOf } from "../../core/api/schema/storage-versions.ts";
import { isProxyHeader } from "../../core/authn/request-header.ts";
import { impersonate, impersonationOf, LastModes } from "../../core/authz/impersonate.ts";
import { impersonationMeter } from "../../core/authz/impersonation-metrics.ts";
import { type AccessReviewKind, evaluateReview } from "../../core/authz/reviews.ts";
import type { Client, ResourceRef } from "../../core/client/client.ts";
import { eventWriter } from "../../core/client/events.ts";
import { informerFactory } from "../../core/client/informer-factory.ts";
import { measuredTransport } from "../../core/client/measured-transport.ts";
import { clientOver } from "../../core/client/resource-client.ts";
import * as refs from "../../core/client/resources.ts";
import type { Transport } from "../../core/client/transport.ts";
import { ownStorageVersions } from "../../core/controllers/storageversion/own-entries.ts";
import { controllersConfigz } from "../../core/controllers/configz.ts";
import { aborted } from "../../core/lifecycle/aborted.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Random } from "../../core/lifecycle/random.ts";
import type { Runnable } from "../../core/lifecycle/run-all.ts";
import { formatIp, nthAddress, parseCidr } from "../../core/net/cidr.ts";
import { hostPort } from "../../core/net/dial-tcp.ts";
import { proxyDialers } from "../../core/net/dial-through.ts";
import { environmentProxy } from "../../core/net/environment-proxy.ts";
import { KeptConnections } from "../../core/net/kept-connections.ts";
import type { DebugPages } from "../../core/observe/debug-pages.ts";
import type { Log } from "../../core/observe/log.ts";
import type { Metrics } from "../../core/observe/metrics.ts";
import { buildMetrics, processMetrics } from "../../core/observe/process-metrics.ts";
import { FRONT_PROXY } from "../../core/pki/identities.ts";
import type { Pki } from "../../core/pki/pki.ts";
import { certificateRotation } from "../../core/pki/rotate.ts";
import { crdController } from "../../core/registry/apiextensions/crd-controller.ts";
import type { APIService } from "../../core/registry/apiregistration/api-service.ts";
import { EVENT_TTL_MS, eventExpiry } from "../../core/registry/core/event-expiry.ts";
import { mendingUnreadable } from "../../core/registry/generic/unreadable.ts";
import { WatchCache } from "../../core/registry/generic/watch-cache.ts";
import { schedulerConfigz } from "../../core/scheduler/config/configz.ts";
import { SchedulingExplainer } from "../../core/scheduler/explainer.ts";
import { aggregator } from "../../core/server/aggregation/aggregator.ts";
import { inCohorts } from "../../core/server/cohorts.ts";
import { columnTexts } from "../../core/server/column-texts.ts";
import { debugPath } from "../../core/server/debug.ts";
import { featureMetrics } from "../../core/server/feature-gates.ts";
import { ResourceSizes } from "../../core/server/fairness/work-estimate.ts";
import { apiHandler } from "../../core/server/handler.ts";
import { inProcessSelf, inProcessTransport } from "../../core/server/in-process.ts";
import { apiServerId, kubernetesEndpoints } from "../../core/server/kubernetes-endpoints.ts";
import { metricsHandlers } from "../../core/server/metrics-api/metrics-api.ts";
import type { NodeProxyDeps } from "../../core/server/node-proxy/backend.ts";
import { logMeter, streamMeter } from "../../core/server/node-proxy/log-metrics.ts";
import { podResourceMetrics } from "../../core/server/pod-resource-metrics.ts";
import { nodeProxyHandlers } from "../../core/server/special/node-proxy.ts";
import { specialHandlers } from "../../core/server/special/special.ts";
import { certificateMetrics } from "../../core/server/certificate-metrics.ts";
import { storageMetrics } from "../../core/server/storage-metrics.ts";
import { VERBS } from "../../core/server/verbs/all.ts";
import { type ApiServerArgs, apiServerArgs } from "../apiserver-args.ts";
import { auditOf } from "../audit.ts";
import type { Settings } from "../config/flags.ts";
import { CONTROLLERS_LISTENING } from "../component-listening.ts";
import { coordinatedLeadership } from "../coordinated-leadership.ts";
import { controllerSettings } from "../controller-settings.ts";
import { fairnessOf, requestTimes } from "../fairness.ts";
import { healthChecks } from "../health-checks.ts";
import { applyMetricsSettings } from "../metrics-settings.ts";
import type { Paths } from "../paths.ts";
import { proxyEnvironment } from "../proxy-environment.ts";
import { schedulerSetup } from "../scheduler-settings.ts";
import type { ShutdownDelay } from "../shutdown-delay.ts";
import { takeSnapshot } from "../snapshot-path.ts";
import { snapshotSchedule } from "../snapshot-schedule.ts";
import { storageSize } from "../storage-size.ts";
import { tracingOf } from "../tracing.ts";
import { serverTunnel } from "../tunnel.ts";
import { releasedMs, versionInfo } from "../version.ts";
import { admissionOf } from "./admission.ts";
import { firstObjects } from "./first-objects.ts";
import { checkedGates, servedWith, trustBundlesOf } from "./gates.ts";
import { identityOf } from "./identity.ts";
import { components, isProfiled, LoopsState } from "./components.ts";
import { listenerOf } from "./listener.ts";
import { loopsOf } from "./loops.ts";
import { controlPlaneRole } from "./node-role.ts";
import { loadDescriptions, serverPaths } from "./paths.ts";
import { permissionOf } from "./permission.ts";
import { registryOf } from "./registry.ts";
import { openState } from "./state.ts";

export interface ControlPlaneOptions {
  readonly settings: Settings;
  readonly paths: Paths;
  /** Of this machine. */
  readonly node: { readonly name: string; readonly ips: readonly string[] };
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Ends waiting for the datastore. */
  readonly signal: AbortSignal;
  readonly stop: Pick<ShutdownDelay, "isLeaving" | "leftEarly">;
  /** Certificates of this server were renewed; asked again a minute later when it fails. */
  readonly onRenewed?: ((pki: Pki) => Promise<void>) | undefined;
  readonly onRenewFailed?: (() => void) | undefined;
  readonly debug: DebugPages;
}

export interface ControlPlane {
  readonly pki: Pki;
  readonly parts: readonly Runnable[];
  /** A client in this process with its own identity. */
  transport(user: UserInfo, userAgent: string): Transport;
  /** Whenever certificates or authorities of this server may be others. Returns what ends that. */
  onReload(handler: () => void): () => void;
  /** https://address:port of this server. */
  readonly url: string;
  /** Lets go of what reads have left in memory and nobody has asked for since this was last called. Returns about how many bytes. */
  forgetUnused(): number;
  /** After all parts have ended. */
  close(): Promise<void>;
}

export async function controlPlane(options: ControlPlaneOptions): Promise<ControlPlane> {
  const { settings, paths, node, clock, random, log, metrics, signal } = options;
  const serviceCidr = parseCidr(settings.serviceCidr.split(",")[0]!)!; // of the primary family
  const apiServiceIp = formatIp(nthAddress(serviceCidr, 1n));
  const advertise = { address: settings.advertiseAddress ?? node.ips[0]!, port: settings.httpsListenPort };
  const host = hostPort(advertise.address, advertise.port), url = `https://${host}`;
  const args = apiServerArgs(settings.kubeApiserverArg);
  applyMetricsSettings(args, metrics);
  const gates = checkedGates(args, log);
  featureMetrics(metrics, gates);
  const cbor = gates.has("CBORServingAndStorage");
  const electionTimes = coordinatedLeadership(args);

  const { tracer, parts: tracingParts } = tracingOf(args, { instance: node.name, env: process.env, clock, random, log: log.with({ part: "traces" }) });
  const { store, datastore, encryption, pki, serverNames, joinSecret, tellToken, snapshots } = await openState({ settings, args, paths, node, apiServiceIp, clock, random, log, metrics, trace: tracer?.part, signal });
  const cache = new WatchCache(store, clock);
  /** In whose name this process does what upstream's API server does to itself. */
  const loopback: UserInfo = { name: "system:apiserver", uid: random.uuid(), groups: ["system:authenticated", "system:masters"] };
  const loopbackClient = (): Client => clientOver(transport(loopback, "kube-apiserver"));
  const informers = informerFactory({ client: loopbackClient(), clock, random, log: log.with({ part: "informers" }) });
  const { served, gates: working } = servedWith(gates, args, log);
  const registry = registryOf({ settings, served, gates, store, cache, ipAddresses: loopbackClient().resource(refs.IP_ADDRESSES), clock, random, metrics, signal });

  const serverId = apiServerId(node.name);
  const identity = await identityOf({ args, pki, joinSecret, clusterDomain: settings.clusterDomain, url, serverId, client: loopbackClient(), informers, clock, random, log, metrics });
  const { authenticator, serviceAccounts, legacyTokenKey, extraCas, tokens } = identity;
  const permission = permissionOf({ args, gates, serverId, informers, clock, log, metrics });
  const { authorizer } = permission;

  const endpoints = kubernetesEndpoints({ client: loopbackClient(), clock, random, log, nodeName: node.name, advertise });
  const events = eventWriter({ client: loopbackClient(), clock, random, log });
  const tellOfNode = (name: string, reason: string, message: string): void => events.from({ component: "coracle", host: node.name }).event({ kind: "Node", apiVersion: "v1", name, uid: name }, "Warning", reason, message);
  const onSeenElsewhere = (name: string, message: string): void => {
    if (settings.disable.includes("network")) return; // where another's pods' network leads, that one knows
    log.warn("a node is seen elsewhere than where it is", { node: name, message });
    tellOfNode(name, "SeenElsewhere", message);
  };
  const tunnel = serverTunnel({ onSeenElsewhere, nodeName: node.name, serverCount: () => endpoints.serverCount(), informers, authenticator, stopping: () => listener.server.stopping, clock, random, metrics, log: log.with({ part: "tunnel" }) });
  const nodes: NodeProxyDeps = {
    dialer: tunnel.dialer, logMeter: logMeter(metrics), streamMeter: streamMeter(metrics), splitsLogs: gates.has("PodLogsQuerySplitStreams"),
    kubeletTls: () => ({ ca: pki.authority("server-ca").bundlePem, cert: pki.leaf("client-kube-apiserver").certificatePem, key: pki.leaf("client-kube-apiserver").keyPem, releasedMs: releasedMs() }),
  };
  const nodeProxy = nodeProxyHandlers(nodes);
  const metricsApi = metricsHandlers(nodes);

  const conversions = conversionMeter(metrics, clock);
  const kept = new KeptConnections(clock); // to webhooks and to servers behind this one
  const { chain: admission, webhooks } = admissionOf({
    args, gates: working, registry, client: loopbackClient(), informers, ...permission, dialer: tunnel.dialer, kept,
    proxyTo: proxyDialers(environmentProxy(proxyEnvironment(process.env, settings)), clock), self: inProcessSelf((request) => handler(request), loopback), clock, random, log, metrics,
  });
  const isWithheld = isProxyHeader(identity.proxyHeaders);
  const apiServices = refs.API_SERVICES as ResourceRef<APIService>;
  const aggregation = aggregator({
    registry, apiServices: informers.of(apiServices), resource: loopbackClient().resource(apiServices),
    serviceCopies: informers.of(refs.SERVICES), services: webhooks.services, endpointSlices: webhooks.endpointSlices,
    isWithheld, dialer: tunnel.dialer, kept, clientTls: () => ({ cert: pki.leaf(FRONT_PROXY.name).certificatePem, key: pki.leaf(FRONT_PROXY.name).keyPem }),
    clock, random, metrics, log: log.with({ part: "aggregation" }),
  });

  const fairness = fairnessOf(args, { client: loopbackClient(), informers, registry: () => registry, clock, metrics, log: log.with({ part: "fairness" }) });
  const { audit, parts: auditParts } = auditOf(args, { clock, metrics, log: log.with({ part: "audit" }) });
  storageMetrics(metrics, { registry, all: cache, sizes: new ResourceSizes(clock) });
  certificateMetrics(metrics, registry);
  if (!datastore.isShared) storageSize(metrics, paths.store);
  processMetrics(metrics, clock);
  buildMetrics(metrics, versionInfo());

  const scheduling = schedulerSetup(settings, clock, gates);
  const explainer = new SchedulingExplainer({ informers, profiles: scheduling.profiles, clock, gates: working });
  const bootstrap = firstObjects({
    settings, client: loopbackClient(), pki, apiServiceIp, advertisePort: advertise.port, url, extraCas,
    proxyNames: identity.proxyNames, proxyHeaders: identity.proxyHeaders, gates, events: () => events, clock, log,
  });
  let customResourcesServed = false;
  const aliveUntilMs = clock.uptimeMs() + (args.durationMs("livez-grace-period") ?? 0);
  const known = (...all: readonly { readonly synced: boolean }[]): boolean => all.every(({ synced }) => synced);
  const isStopping = (): boolean => options.stop.isLeaving() || listener.server.stopping.aborted;
  const checks = healthChecks({
    storeTrouble: datastore.trouble, keysTrouble: encryption.trouble, isStopping, inGrace: () => clock.uptimeMs() <= aliveUntilMs,
    steps: {
      store: () => cache.revision > 0,
      bootstrap: () => bootstrap.done,
      customResources: () => customResourcesServed,
      informers: permission.synced,
      webhooks: () => known(webhooks.mutating, webhooks.validating),
      fairness: () => known(informers.of(refs.FLOW_SCHEMAS), informers.of(refs.PRIORITY_LEVEL_CONFIGURATIONS)),
      aggregation: () => known(informers.of(refs.API_SERVICES)),
      registration: () => aggregation.registered,
    },
  });

  const describe = columnTexts(loadDescriptions);
  const profiling = args.boolean("profiling", true);
  const debug = debugPath(options.debug);
  const podResources = podResourceMetrics(() => informers.of(refs.PODS).list());
  const lastModes = new LastModes();
  const impersonations = impersonationMeter(metrics, clock);
  const mayImpersonate = impersonations.asked(authorizer);
  const handler = apiHandler({
    isWithheld, aggregation, fairness: fairness.enter, audit, tracer, ...requestTimes(args),
    registry, cache, authenticator, authorizer, admission, clock, random, metrics,
    log: log.with({ part: "server" }),
    async impersonate(attributes, request) {
      const wanted = impersonationOf(request.headers());
      return wanted ? await impersonations.measured(() => impersonate(wanted, attributes, { authorizer: mayImpersonate, lastModes })) : { user: attributes.user, constraint: "" };
    },
    paths: serverPaths({
      settings, directory: paths.executables, url, host, registry, aggregation, checks, cbor, profiling, debug, podResources, explainer, snapshots,
      fairness: fairness.paths, identity: identity.paths, clock, metrics,
    }),
    special: specialHandlers({
      tokens: identity.tokenIssuer,
      tokenReviews: { tokens, apiAudiences: serviceAccounts.apiAudiences },
      review: async ({ kind, object, namespace, user }) => (await evaluateReview(kind as AccessReviewKind, object as never, authorizer, { user, namespace })) as never,
      connections: (info) => nodeProxy(info) ?? metricsApi(info),
      components: [...["scheduler", "controller-manager"].map((name) => ({ name, check: () => undefined })), { name: "etcd-0", check: datastore.trouble }], // the first two live and die with this process
    }),
  }, VERBS);

  function transport(user: UserInfo, userAgent: string): Transport {
    return inProcessTransport((request) => handler(request), { user, userAgent });
  }

  const listener = listenerOf({
    settings, args, pki, extraCas, handler: inCohorts(handler, { later: (work) => void setImmediate(work), isApart: fairness.isCrowded }),
    isPassedOn: (path) => aggregation.serves(path), metrics, columnTexts: describe, cbor, tunnel, clock, random, log,
  });
  const tellOfStore = (reason: string, message: string): void => tellOfNode(node.name, reason, message);
  datastore.onUnwritable(tellOfStore);
  if (datastore.mended !== undefined) tellOfStore("DatastoreMended", datastore.mended);
  if (datastore.behind !== undefined) tellOfStore("DatastoreBehindSnapshot", datastore.behind);
  const state = new LoopsState();
  const controlling = controllerSettings(settings.kubeControllerManagerArg, { clusterCidrs: settings.clusterCidr.split(",") });
  const inOwnName = (user: UserInfo, userAgent: string, requests: Metrics): Client => clientOver(measuredTransport(transport(user, userAgent), { metrics: requests, clock, host: () => `127.0.0.1:${settings.httpsListenPort}` }));
  const election = working.has("CoordinatedLeaderElection") ? electionTimes : undefined;
  const storageVersions = working.has("StorageVersionAPI")
    ? ownStorageVersions({ client: loopbackClient(), clock, log: log.with({ part: "storage versions" }), serverId, entries: storageVersionsOf(registry.rows(), builtInResources.everyRow()) }) : undefined;
  const loops = loopsOf({
    settings, paths, controlling, scheduling, explainer, gates: working, trustBundles: trustBundlesOf(served), election, storageVersions, state, isShared: datastore.isShared, nodeName: node.name, serverNames, pki,
    onReload: listener.onReload, legacyTokenKey, informers, clock, random, log, metrics,
    clients: {
      loopback: loopbackClient(),
      controllers: inOwnName(loopback, "kube-controller-manager", state.controllersRequests),
      scheduler: inOwnName({ name: "system:kube-scheduler", groups: ["system:authenticated"] }, "kube-scheduler", state.schedulerRequests),
    },
  });
  const { isShared } = datastore, listening = controlling.listening ?? CONTROLLERS_LISTENING;
  const ports = components({
    state, authenticator, authorizer, debug, isShared, isStopping, tls: listener.tls, metrics, columnTexts: describe, cbor, clock, log,
    controllers: settings.disable.includes("controllers") ? undefined : {
      listening, given: settings.kubeControllerManagerArg,
      configz: () => controllersConfigz({ ...controlling, listening, clusterCidr: settings.clusterCidr, serviceCidr: settings.serviceCidr, isShared, profiling: isProfiled(settings.kubeControllerManagerArg) }, state.controllers),
    },
    scheduler: settings.disable.includes("scheduler") ? undefined : {
      listening: scheduling.listening, given: settings.kubeSchedulerArg, resources: podResources,
      configz: () => schedulerConfigz(scheduling.text, { isShared, profiling: isProfiled(settings.kubeSchedulerArg), gates }),
    },
  });
  listener.onReload(ports.reloadCertificates);
  identity.onOtherCas(listener.reloadCertificates);

  return {
    pki,
    transport,
    onReload: listener.onReload,
    url,
    forgetUnused: () => cache.forgetUnused(),
    parts: [
      { name: "watch cache", run: (signal, ready) => cache.run(signal, ready, log) },
      mendingUnreadable({ cache, clock, log }),
      ...encryption.parts,
      ...identity.parts,
      ...permission.parts,
      crdController({ registry, remoteConversion: (crd) => conversionBy(crd, { ...webhooks, meter: conversions }), clock, random, log: log.with({ part: "custom resources" }) }),
      { name: "custom resources are served", run: (signal, ready) => { customResourcesServed = true; ready(); return aborted(signal); } },
      informers,
      ...auditParts, ...tracingParts,
      ...listener.parts,
      certificateRotation({ pki, clock, log, failed: options.onRenewFailed, async onRenewed() { listener.reloadCertificates(); await tellToken(); await options.onRenewed?.(pki); } }),
      bootstrap,
      ...(settings.disableAgent ? [] : [controlPlaneRole({ nodeName: node.name, client: loopbackClient(), informers, clock, log })]),
      options.stop.leftEarly(endpoints),
      events,
      ...eventExpiryOf(args, { store, cache, clock, log }),
      ...fairness.parts,
      ...aggregation.parts,
      ...ports.parts,
      ...loops,
      ...snapshotSchedule({ settings, isShared: datastore.isShared, directory: settings.snapshotDir ?? paths.snapshots, revision: () => store.revision, take: () => takeSnapshot(snapshots), clock, log: log.with({ part: "snapshots" }) }),
    ],
    async close() {
      await store.close();
      encryption.close();
    },
  };
}

/** None for a time of nothing. */
function eventExpiryOf(args: ApiServerArgs, deps: Omit<Parameters<typeof eventExpiry>[0], "ttlMs">): Runnable[] {
  const ttlMs = args.durationMs("event-ttl") ?? EVENT_TTL_MS;
  return ttlMs === 0 ? [] : [eventExpiry({ ...deps, ttlMs })];
}
