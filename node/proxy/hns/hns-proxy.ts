/**
 * The service proxy of a Windows node: the same plans as on Linux (../desired.ts), rendered to HNS.
 *
 *   informers ─▶ desired.ts ─▶ render.ts ─▶ plan.ts, against what HNS has ─▶ apply.ts
 *
 * HNS is asked what it has before every change, so a reboot, somebody else's hand or a crash in the middle leave nothing behind. Changes are gathered for a moment;
 * what waits for a pod's endpoint is looked at again soon, everything twice a minute. How the proxy is it tells as on Linux (../health.ts).
 */
import type { Node } from "../../../core/api/gen/core.v1.ts";
import type { EndpointSlice } from "../../../core/api/gen/discovery.v1.ts";
import { objectKey } from "../../../core/api/meta/object-meta.ts";
import type { Index } from "../../../core/client/informer.ts";
import type { EventReporter } from "../../../core/client/events.ts";
import type { Informers } from "../../../core/client/informer-factory.ts";
import { ENDPOINT_SLICES, NODES, SERVICES } from "../../../core/client/resources.ts";
import { backoffMs } from "../../../core/lifecycle/backoff.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Runnable } from "../../../core/lifecycle/run-all.ts";
import type { Log } from "../../../core/observe/log.ts";
import type { Metrics } from "../../../core/observe/metrics.ts";
import type { Hcn } from "../../os/hcn.ts";
import { keptPorts, KUBERNETES, planService, type ProxyNode, SERVICE_NAME_LABEL } from "../desired.ts";
import { type HealthCheck, ProxyHealth, proxyHealthListener, type ProxyStatus, proxyStatusListener, ServiceHealth, tellStart, unopened } from "../health.ts";
import { listen } from "../listen.ts";
import { proxyMetrics } from "../metrics.ts";
import { applyHns, endpointsOf } from "./apply.ts";
import { planHns } from "./plan.ts";
import { type HnsFacts, renderHns } from "./render.ts";

/** The network the node's pods are in (node/network/windows). */
export interface ProxiedNetwork { readonly id: string; readonly type: "Overlay" | "L2Bridge"; readonly sourceVip: string; readonly hostMac: string; readonly remoteSubnets: HnsFacts["remoteSubnets"] }

export interface HnsProxyOptions {
  readonly informers: Informers;
  readonly nodeName: string;
  readonly nodeIps: readonly string[];
  /** Undefined while there is none. */
  readonly network: () => ProxiedNetwork | undefined;
  /** Is given what to call when the network has changed. */
  readonly onNetworkChange: (handler: () => void) => void;
  readonly hcn: () => Hcn;
  /** Where /healthz and /livez are served; absent: nowhere. */
  readonly healthz?: { readonly address: string; readonly port: number } | undefined;
  /** Where /metrics and /proxyMode are served, to this machine only; absent: nowhere. */
  readonly status?: { readonly address: string; readonly port: number } | undefined;
  /** What is shown there besides. */
  readonly pages?: Pick<ProxyStatus, "zpages" | "configz"> | undefined;
  /** Absent: nobody but the log is told what fails. */
  readonly events?: EventReporter | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
}

const GATHER_MS = 100;
const LOOK_MS = 30_000;
const AWAITED_MS = 1_000;
const RETRY = { minMs: 1000, maxMs: 30_000 };
const BY_SERVICE: Index<EndpointSlice> = { name: "service of the proxy", valuesOf: ({ metadata }) => (metadata.labels?.[SERVICE_NAME_LABEL] ? [objectKey(metadata.namespace ?? "", metadata.labels[SERVICE_NAME_LABEL])] : []) };

export function hnsProxy(options: HnsProxyOptions): Runnable {
  const { informers, nodeName, nodeIps, network: networkOf, onNetworkChange, hcn: open, clock, log } = options;
  const services = informers.of(SERVICES), slices = informers.of(ENDPOINT_SLICES), nodes = informers.of(NODES);
  const metrics = proxyMetrics(options.metrics);
  const health = new ProxyHealth(clock);
  const serviceHealth = new ServiceHealth({ log, healthy: () => health.healthy, onFailed: tellFailed });
  let changed = true;
  let wake: () => void = () => {};
  let told = "";

  function tellFailed(check: HealthCheck, error: Error): void {
    const service = services.get(objectKey(check.namespace, check.name));
    if (service) options.events?.report(service, unopened(nodeName, check, error));
  }

  const node = (): Readonly<Node> | undefined => nodes.get(objectKey("", nodeName)) as Readonly<Node> | undefined;

  /** Returns whether some pod of this node has no endpoint yet. */
  function sync(): boolean {
    const network = networkOf();
    if (!network) return false;
    health.taken();
    const hcn = open();
    const beganMs = clock.uptimeMs();
    const { directServerReturn, sessionAffinity } = hcn.features();
    const own: ProxyNode = { name: nodeName, ips: nodeIps, zone: node()?.metadata.labels?.["topology.kubernetes.io/zone"], kept: keptPorts(slices.by(BY_SERVICE, KUBERNETES), { own: node(), nodes: nodes.list() }) };
    const plans = [...services.list()].map((service) => planService(service, slices.by(BY_SERVICE, objectKey(service.metadata.namespace ?? "", service.metadata.name)), own));
    const wanted = renderHns(plans.flatMap(({ ports }) => ports), { ...network, networkType: network.type, nodeIp: nodeIps.find((ip) => !ip.includes(":")) ?? nodeIps[0]!, directServerReturn, sessionAffinity });
    if (wanted.skipped.join() !== told && wanted.skipped.length > 0) log.warn("some of the services cannot be had on Windows", { services: wanted.skipped });
    told = wanted.skipped.join();
    const plan = planHns(wanted, { endpoints: endpointsOf(hcn, network.id), loadBalancers: hcn.loadBalancers() });
    applyHns(plan, { hcn, networkId: network.id });
    serviceHealth.update(plans.flatMap(({ healthCheck, ports: [port] }): HealthCheck[] => (healthCheck && port ? [{ ...healthCheck, namespace: port.namespace, name: port.service }] : [])));
    health.updated();
    metrics.synced(4, "full", (clock.uptimeMs() - beganMs) / 1000);
    metrics.finished({ nowMs: clock.nowMs(), triggered: [], ports: plans.flatMap(({ ports }) => ports) });
    return plan.awaited.length > 0;
  }

  function look(): void {
    changed = true;
    wake();
  }

  function queue(): void {
    health.queued();
    metrics.queued(clock.nowMs());
    look();
  }

  function watch(): readonly (() => void)[] {
    return [
      services.onChange(() => {
        metrics.serviceChanges.inc();
        queue();
      }),
      slices.onChange(() => {
        metrics.endpointChanges.inc();
        queue();
      }),
    ];
  }

  function listenAll(): (() => void)[] {
    return [
      ...(options.healthz ? [listen(options.healthz, proxyHealthListener({ health, node, clock, healthz: metrics.healthz, livez: metrics.livez }), { clock, log })] : []),
      ...(options.status ? [listen(options.status, proxyStatusListener({ ...options.pages, metrics: options.metrics, mode: "kernelspace" }), { clock, log })] : []),
    ];
  }

  return {
    name: "service-proxy",
    async run(signal, ready) {
      const closers = [...watch(), ...listenAll()];
      tellStart(options.events, nodeName);
      onNetworkChange(look);
      ready();
      await Promise.all([services.whenSynced(signal), slices.whenSynced(signal)]);
      try {
        for (let failures = 0; !signal.aborted; ) {
          changed = false;
          let pauseMs = LOOK_MS;
          try {
            if (sync()) pauseMs = AWAITED_MS;
            failures = 0;
          } catch (error) {
            pauseMs = backoffMs(++failures, RETRY);
            log.error("services cannot be written to HNS", { error, retryInMs: pauseMs });
          }
          const pause = new AbortController();
          wake = () => pause.abort();
          if (!changed || failures > 0) await clock.sleep(pauseMs, failures > 0 ? signal : AbortSignal.any([signal, pause.signal]));
          await clock.sleep(GATHER_MS, signal);
        }
      } finally {
        for (const end of closers) end();
        serviceHealth.close();
      }
    },
  };
}
