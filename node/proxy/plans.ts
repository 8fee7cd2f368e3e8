/**
 * What each Service should be on this node, and the rules that follow from it. Only what has changed is planned again.
 *
 *   change(key), placeNode(node) ─▶ plan() ─▶ rulesets, which know what differs · staleFlows · local
 */
import { isDeepStrictEqual } from "node:util";
import type { Service } from "../../core/api/gen/core.v1.ts";
import type { EndpointSlice } from "../../core/api/gen/discovery.v1.ts";
import { objectKey, type ObjectKey } from "../../core/api/meta/object-meta.ts";
import type { Index, Informer } from "../../core/client/informer.ts";
import type { Breathe } from "../../core/lifecycle/breather.ts";
import type { Family } from "../../core/net/cidr.ts";
import { losesFlows } from "./conntrack.ts";
import { planService, type PortPlan, type ProxyNode, SERVICE_NAME_LABEL, type ServicePlan } from "./desired.ts";
import { LiveRuleset } from "./nftables/live-ruleset.ts";
import { renderPort } from "./nftables/render.ts";

export const SLICES_BY_SERVICE: Index<EndpointSlice> = { name: "service", valuesOf: (slice) => servicesOf(slice) };

interface Deps {
  readonly services: Pick<Informer<Service>, "get">;
  readonly slices: Pick<Informer<EndpointSlice>, "by">;
  /** Of pods, by family. */
  readonly clusterCidrs: Readonly<Record<Family, readonly string[]>>;
  readonly node: ProxyNode;
}

export class ServicePlans {
  readonly rulesets: Readonly<Record<Family, LiveRuleset>> = { 4: new LiveRuleset(), 6: new LiveRuleset() };
  /** Families with UDP services whose flows may lead to endpoints that are no more. Emptied by whoever forgets them. */
  readonly staleFlows = new Set<Family>();
  readonly #deps: Omit<Deps, "node">;
  readonly #planned = new Map<ObjectKey, ServicePlan>();
  readonly #withLocal = new Map<ObjectKey, ServicePlan>(); // those of them with a Local policy
  readonly #changed = new Set<ObjectKey>();
  #node: ProxyNode;

  constructor({ node, ...deps }: Deps) {
    this.#deps = deps;
    this.#node = node;
  }

  /** The Service has changed, or its endpoints have. */
  change(key: ObjectKey): void {
    this.#changed.add(key);
  }

  /** Where this node is, what reaches it from outside, and what is no Service's. False: that is known. */
  placeNode({ zone, externalIps, kept }: Pick<ProxyNode, "zone" | "externalIps" | "kept">): boolean {
    const isElsewhere = zone !== this.#node.zone || !isDeepStrictEqual(externalIps ?? [], this.#node.externalIps ?? []);
    if (!isElsewhere && isDeepStrictEqual(kept ?? new Map(), this.#node.kept ?? new Map())) return false;
    this.#node = { ...this.#node, zone, externalIps, kept };
    const before = this.#changed.size;
    for (const key of this.#planned.keys()) if (isElsewhere || this.#isOutside(key)) this.#changed.add(key);
    return this.#changed.size > before;
  }

  /** Whether it has other addresses than its own: which ports are kept concerns no other. */
  #isOutside(key: ObjectKey): boolean {
    const { spec, status } = this.#deps.services.get(key) ?? {};
    return (spec?.externalIPs ?? []).length > 0 || (status?.loadBalancer?.ingress ?? []).length > 0;
  }

  /** Whether anything has changed since the last plan. */
  get isStale(): boolean { return this.#changed.size > 0; }

  /** What changes meanwhile is planned, too. */
  async plan(breathe: Breathe): Promise<void> {
    for (const key of this.#changed) {
      this.#planOne(key);
      this.#changed.delete(key);
      await breathe();
    }
  }

  #planOne(key: ObjectKey): void {
    const { services, slices, clusterCidrs } = this.#deps;
    const service = services.get(key);
    const before = this.#planned.get(key);
    const next = service && planService(service, slices.by(SLICES_BY_SERVICE, key), this.#node);
    if (before !== undefined && next !== undefined && isDeepStrictEqual(before, next)) return;
    const had = new Map(before?.ports.toReversed().map((port): [string, PortPlan] => [portKey(port), port]));
    for (const port of next?.ports ?? []) if (losesFlows(had.get(portKey(port)), port)) this.staleFlows.add(port.family);
    for (const family of [4, 6] as const) this.rulesets[family].set(key, next?.ports.filter((port) => port.family === family).map((port) => renderPort(port, clusterCidrs[family])));
    put(this.#planned, key, next);
    put(this.#withLocal, key, next?.ports.some(({ internalLocal, externalLocal }) => internalLocal || externalLocal) ? next : undefined);
  }

  /** Services of which only endpoints on the node are taken, for some clients at least. */
  local(): readonly ServicePlan[] { return [...this.#withLocal.values()]; }

  /** All ports of a family that are UDP. */
  udpPorts(family: Family): readonly PortPlan[] {
    return [...this.#planned.values()].flatMap(({ ports }) => ports.filter((port) => port.family === family && port.protocol === "udp"));
  }
}

/** The key of the Service that a slice belongs to, if it belongs to one. */
export function servicesOf({ metadata }: Readonly<EndpointSlice>): readonly ObjectKey[] {
  const name = metadata.labels?.[SERVICE_NAME_LABEL];
  return name === undefined ? [] : [objectKey(metadata.namespace ?? "", name)];
}

function put<K, V>(map: Map<K, V>, key: K, value: V | undefined): void {
  if (value === undefined) map.delete(key);
  else map.set(key, value);
}

function portKey({ family, portName, protocol }: PortPlan): string { return `${family} ${protocol} ${portName}`; }
