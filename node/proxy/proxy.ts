/**
 * The service proxy: Services and EndpointSlices become rules in this node's kernel, which go on working while this process does not.
 *
 *   informers ─▶ changed services ─▶ plans.ts (desired.ts, nftables/render.ts) ─▶ proxier.ts: one transaction ─▶ health checks (health.ts), metrics
 *
 * Only services that changed are planned again; only what differs is written. Changes are gathered for a moment, and for as long as the last sync took, so that
 * a large cluster that is starting costs at most half a processor. Nothing is written before the informers have a complete copy: an agent that has lost
 * its server keeps the rules it has.
 *
 * Source: kubernetes v1.36 pkg/proxy (behaviour, metrics)
 */
import { isDeepStrictEqual } from "node:util";
import type { Node } from "../../core/api/gen/core.v1.ts";
import { keyOf, type ObjectKey, objectKey } from "../../core/api/meta/object-meta.ts";
import type { EventReporter } from "../../core/client/events.ts";
import type { Informers } from "../../core/client/informer-factory.ts";
import { ENDPOINT_SLICES, NODES, SERVICES } from "../../core/client/resources.ts";
import { serviceRanges } from "../../core/client/service-ranges.ts";
import { aborted } from "../../core/lifecycle/aborted.ts";
import { backoffMs } from "../../core/lifecycle/backoff.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Runnable } from "../../core/lifecycle/run-all.ts";
import { Waker } from "../../core/lifecycle/waker.ts";
import type { Log } from "../../core/observe/log.ts";
import type { Metrics } from "../../core/observe/metrics.ts";
import { trouble } from "../../core/observe/trouble.ts";
import type { Nft } from "../os/exec-nft.ts";
import type { OnTables } from "../os/table-watch.ts";
import type { Conntrack } from "./conntrack.ts";
import { type Asked, keptPorts, KUBERNETES } from "./desired.ts";
import { type HealthCheck, ProxyHealth, proxyHealthListener, type ProxyStatus, proxyStatusListener, ServiceHealth, tellStart, unopened } from "./health.ts";
import { listen } from "./listen.ts";
import { proxyMetrics, type Trigger } from "./metrics.ts";
import { SLICES_BY_SERVICE, servicesOf } from "./plans.ts";
import { Proxier } from "./proxier.ts";

export interface ServiceProxyOptions {
  readonly informers: Informers;
  readonly nodeName: string;
  readonly nodeIps: readonly string[];
  /** Addresses of pods, of one or both families: packets from elsewhere to a cluster IP are masqueraded. */
  readonly clusterCidrs: readonly string[];
  /** Addresses of services, until the ServiceCIDRs have been heard of: packets to those nobody has are dropped. */
  readonly serviceCidrs: readonly string[];
  /** What this machine itself relies on, over TCP: no Service has it as its external address here. */
  readonly asked?: readonly Asked[] | undefined;
  /** Of this node's addresses, those at which node ports answer; absent: all. */
  readonly nodePortCidrs?: readonly string[] | undefined;
  readonly nft: Nft;
  /** Somebody may have emptied the packet filter. Absent: that is seen at the end of a period alone. */
  readonly onTables?: OnTables | undefined;
  /** Absent: flows of UDP services live until they are quiet. */
  readonly conntrack?: Conntrack | undefined;
  /** Where /healthz and /livez are served; absent: nowhere. */
  readonly healthz?: { readonly address: string; readonly port: number } | undefined;
  /** Where /metrics and /proxyMode are served, to this machine only; absent: nowhere. */
  readonly status?: { readonly address: string; readonly port: number } | undefined;
  /** What is shown there besides. */
  readonly pages?: Pick<ProxyStatus, "zpages" | "configz"> | undefined;
  readonly table?: string | undefined;
  /** Absent: nobody but the log is told what fails. */
  readonly events?: EventReporter | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
}

export interface ServiceProxy extends Runnable {
  /** Resolves once the kernel has had all services once. */
  whenSynced(signal: AbortSignal): Promise<void>;
}

const PROXY_TABLE = "coracle";
/** How long changes are gathered: a rollout changes many slices within milliseconds. */
const GATHER_MS = 50;
/** How often the table is looked after; upstream's syncPeriod. */
const VERIFY_MS = 30_000;
const RETRY = { minMs: 500, maxMs: 30_000 };

export function serviceProxy(options: ServiceProxyOptions): ServiceProxy {
  const { informers, nodeName, clock, log, table = PROXY_TABLE } = options;
  const services = informers.of(SERVICES);
  const slices = informers.of(ENDPOINT_SLICES);
  const nodes = informers.of(NODES); // all of them: the network watches them anyway
  const metrics = proxyMetrics(options.metrics);
  const health = new ProxyHealth(clock);
  const serviceHealth = new ServiceHealth({ log, healthy: () => health.healthy, cidrs: options.nodePortCidrs, onFailed: tellFailed });
  const ranges = serviceRanges(informers, options.serviceCidrs);
  const proxier = new Proxier({ ...options, services, slices, ranges, table, metrics });
  const { plans } = proxier;
  const triggers: Trigger[] = []; // of the endpoint changes that wait
  const changed = { services: new Set<ObjectKey>(), slices: 0 }; // since the last plan
  const startMs = clock.nowMs();
  const synced = Promise.withResolvers<void>();
  const waker = new Waker(clock);
  let placing: { cancel(): void } | undefined;
  let isSuspect = false; // rules may be gone

  function tellFailed(check: HealthCheck, error: Error): void {
    const service = services.get(objectKey(check.namespace, check.name));
    if (service) options.events?.report(service, unopened(nodeName, check, error));
  }

  const tellPending = (): void => metrics.pending({ services: changed.services.size, slices: changed.slices });

  function queue(): void {
    health.queued();
    metrics.queued(clock.nowMs());
    waker.wake();
  }

  function place(): void {
    placing?.cancel();
    placing = undefined;
    const own = nodes.get(objectKey("", nodeName)) as Readonly<Node> | undefined;
    const externalIps = (own?.status?.addresses ?? []).filter(({ type }) => type === "ExternalIP").map(({ address }) => address);
    if (plans.placeNode({ zone: own?.metadata.labels?.["topology.kubernetes.io/zone"], externalIps, kept: keptPorts(slices.by(SLICES_BY_SERVICE, KUBERNETES), { own, nodes: nodes.list(), asked: options.asked }) })) queue();
  }

  function watch(): readonly (() => void)[] {
    return [
      ranges.onChange(() => {
        proxier.changeRanges();
        queue();
      }),
      services.onChange(({ object }) => {
        metrics.serviceChanges.inc();
        changed.services.add(keyOf(object));
        tellPending();
        plans.change(keyOf(object));
        queue();
      }),
      slices.onChange(({ object, old, deleted }) => {
        metrics.endpointChanges.inc();
        changed.slices++;
        tellPending();
        for (const key of [object, old].flatMap((slice) => (slice ? servicesOf(slice) : []))) {
          plans.change(key);
          queue();
          if (key === KUBERNETES) place();
        }
        const triggerMs = deleted ? Number.NaN : Date.parse(object.metadata.annotations?.["endpoints.kubernetes.io/last-change-trigger-time"] ?? "");
        if (triggerMs > startMs && object.addressType !== "FQDN") triggers.push({ family: object.addressType === "IPv4" ? 4 : 6, ms: triggerMs });
      }),
      nodes.onChange(({ object: { metadata, status }, old, deleted }) => {
        if (metadata.name === nodeName) place();
        else if (deleted || !isDeepStrictEqual(status?.addresses, old?.status?.addresses)) placing ??= clock.after(GATHER_MS, place); // as many at once when there is a thousand of them
      }),
      () => placing?.cancel(),
      options.onTables?.(() => {
        isSuspect = true;
        waker.wake();
      }) ?? (() => undefined),
    ];
  }

  /** Waits until there is something to be written, or to be looked after: then whether there is. */
  async function isWanted(signal: AbortSignal): Promise<boolean> {
    const isWoken = await waker.sleep(VERIFY_MS, { isDue: proxier.isStale || isSuspect, signal });
    const looks = !isWoken || isSuspect;
    isSuspect = false;
    if (signal.aborted) return false;
    return (looks && !(await proxier.isIntact(signal).catch(() => false))) || proxier.isStale; // a failure shows in the sync
  }

  async function keep(signal: AbortSignal): Promise<void> {
    await Promise.all([services.whenSynced(signal), slices.whenSynced(signal)]);
    let failures = 0;
    const ill = trouble("service rules cannot be written", { log, clock });
    let due = true; // the first sync is made even if there is nothing
    while (!signal.aborted) {
      if (!due) due = await isWanted(signal);
      if (signal.aborted) continue;
      if (!due) {
        serviceHealth.again();
        await proxier.forgetFlows(signal);
        continue;
      }
      const beganMs = clock.uptimeMs();
      try {
        await sync(signal);
        failures = 0;
        ill.over();
        due = false;
        await clock.sleep(Math.max(GATHER_MS, clock.uptimeMs() - beganMs), signal);
      } catch (error) {
        if (signal.aborted) return;
        const retryInMs = backoffMs(++failures, RETRY);
        ill.tell(error, { retryInMs });
        await clock.sleep(retryInMs, signal);
      }
    }
  }

  /** What differs, to the kernel; then to all who want to know. */
  async function sync(signal: AbortSignal): Promise<void> {
    await proxier.plan();
    health.taken();
    const triggered = triggers.splice(0);
    changed.services.clear();
    changed.slices = 0;
    tellPending();
    await proxier.write(signal);
    const locals = plans.local();
    serviceHealth.update(locals.flatMap(({ healthCheck, ports: [port] }): HealthCheck[] => (healthCheck && port ? [{ ...healthCheck, namespace: port.namespace, name: port.service }] : [])));
    health.updated();
    metrics.finished({ nowMs: clock.nowMs(), triggered, ports: locals.flatMap(({ ports }) => ports) });
    synced.resolve();
    await proxier.forgetFlows(signal);
  }

  function listenAll(): (() => void)[] {
    const node = (): Readonly<Node> | undefined => nodes.get(objectKey("", nodeName)) as Readonly<Node> | undefined;
    return [
      ...(options.healthz ? [listen(options.healthz, proxyHealthListener({ health, node, clock, healthz: metrics.healthz, livez: metrics.livez }), { clock, log })] : []),
      ...(options.status ? [listen(options.status, proxyStatusListener({ ...options.pages, metrics: options.metrics, mode: "nftables" }), { clock, log })] : []),
    ];
  }

  return {
    name: "service-proxy",
    whenSynced: (signal) => Promise.race([synced.promise, aborted(signal)]),
    async run(signal, ready) {
      const unwatch = watch();
      const closers = listenAll();
      tellStart(options.events, nodeName);
      ready(); // pods may start before the cluster has been heard of: what the kernel has from before still holds
      try {
        await keep(signal);
      } finally {
        for (const end of [...unwatch, ...closers]) end();
        serviceHealth.close();
      }
    },
  };
}

/** Where somebody else sees to Services: rules of before would lead to the endpoints of before, for ever, those of deleted Services too. */
export function noServiceProxy({ nft, log }: Pick<ServiceProxyOptions, "nft" | "log">): Runnable {
  return {
    name: "service-proxy",
    async run(signal, ready) {
      try {
        for (const family of ["ip", "ip6"] as const)
          if (await nft.names(family, PROXY_TABLE, { signal })) await nft.apply(`delete table ${family} ${PROXY_TABLE}\n`, { signal });
      } catch (error) {
        if (!signal.aborted) log.warn("service rules of before cannot be removed", { error });
      }
      ready();
      await aborted(signal);
    },
  };
}
