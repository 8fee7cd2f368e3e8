/**
 * Brings the kernel's rules in line with what Services should be on this node: what differs, in one transaction for each family.
 *
 *   plans (plans.ts) ─▶ rulesets ─▶ a table of each family (nftables/nftables.ts)
 *                          └▶ stale UDP flows, forgotten afterwards (conntrack.ts)
 *
 * Source: kubernetes v1.36 pkg/proxy/nftables/proxier.go (syncProxyRules)
 */
import type { Service } from "../../core/api/gen/core.v1.ts";
import type { EndpointSlice } from "../../core/api/gen/discovery.v1.ts";
import type { Informer } from "../../core/client/informer.ts";
import type { ServiceRanges } from "../../core/client/service-ranges.ts";
import { breather } from "../../core/lifecycle/breather.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import { type Family, parseCidr } from "../../core/net/cidr.ts";
import type { Log } from "../../core/observe/log.ts";
import type { Nft } from "../os/exec-nft.ts";
import type { Conntrack } from "./conntrack.ts";
import type { ProxyMetrics } from "./metrics.ts";
import { NftTable } from "./nftables/nftables.ts";
import { ServicePlans } from "./plans.ts";

interface Deps {
  readonly services: Informer<Service>;
  readonly slices: Informer<EndpointSlice>;
  readonly ranges: ServiceRanges;
  readonly nodeName: string;
  readonly nodeIps: readonly string[];
  readonly clusterCidrs: readonly string[];
  readonly nodePortCidrs?: readonly string[] | undefined;
  readonly nft: Nft;
  readonly conntrack?: Conntrack | undefined;
  readonly table: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: ProxyMetrics;
}

const FAMILIES: readonly Family[] = [4, 6];

export class Proxier {
  readonly plans: ServicePlans;
  readonly #deps: Deps;
  readonly #clusterCidrs: Readonly<Record<Family, readonly string[]>>;
  readonly #tables: Readonly<Record<Family, NftTable>>;
  readonly #written = new Set<Family>(); // ever
  /** Of which families it is told that their flows cannot be forgotten. */
  readonly #keepsFlows = new Set<Family>();
  #rangesChanged = false;

  constructor(deps: Deps) {
    const { services, slices, nodeName, nodeIps, clusterCidrs } = deps;
    this.#deps = deps;
    this.#clusterCidrs = { 4: ofFamily(clusterCidrs, 4), 6: ofFamily(clusterCidrs, 6) };
    this.#tables = { 4: this.#table(4), 6: this.#table(6) };
    this.plans = new ServicePlans({ services, slices, clusterCidrs: this.#clusterCidrs, node: { name: nodeName, ips: nodeIps, zone: undefined } });
  }

  /** The addresses of services are others now. */
  changeRanges(): void { this.#rangesChanged = true; }

  /** Whether anything has changed since the last sync. */
  get isStale(): boolean { return this.plans.isStale || this.#rangesChanged; }

  /** What has changed, and what does meanwhile: ten thousand Services are a second's work, during which others have their turn. */
  async plan(): Promise<void> { await this.plans.plan(breather(this.#deps.clock)); }

  /** What is planned. Throws if the kernel does not have all of it. */
  async write(signal: AbortSignal): Promise<void> {
    if (this.#rangesChanged) for (const family of FAMILIES) this.#tables[family].reframe({ serviceCidrs: this.#deps.ranges.of(family) });
    this.#rangesChanged = false;
    for (const family of this.#families()) await this.#write(family, signal);
  }

  /** UDP flows to endpoints that are no more would go on to nowhere. Those that cannot be forgotten are looked at again when this is called again. */
  async forgetFlows(signal: AbortSignal): Promise<void> {
    const { conntrack, clock, log, metrics } = this.#deps;
    const { staleFlows } = this.plans;
    for (const family of [...staleFlows]) {
      staleFlows.delete(family);
      const beganMs = clock.uptimeMs();
      try {
        const flows = await conntrack?.forgetStale(family, this.plans.udpPorts(family), signal);
        if (flows !== undefined) metrics.forgot(family, flows, (clock.uptimeMs() - beganMs) / 1000);
        this.#keepsFlows.delete(family);
      } catch (error) {
        staleFlows.add(family);
        if (!signal.aborted && !this.#keepsFlows.has(family)) log.warn("stale UDP flows cannot be forgotten, trying again", { family, error });
        this.#keepsFlows.add(family);
      }
    }
  }

  /** Whether the kernel still has what was written. */
  async isIntact(signal: AbortSignal): Promise<boolean> {
    const { log, table } = this.#deps;
    let intact = true;
    for (const family of this.#families()) if (!(await this.#tables[family].verify(signal))) intact = false; // who empties one empties both: each is to know
    if (!intact && !signal.aborted) log.warn("the service rules are gone from the kernel, writing them again", { table });
    return intact;
  }

  async #write(family: Family, signal: AbortSignal): Promise<void> {
    const { clock, metrics } = this.#deps;
    const ruleset = this.plans.rulesets[family];
    const beganMs = clock.uptimeMs();
    try {
      metrics.synced(family, await this.#tables[family].sync(ruleset, signal, ruleset.delta()), (clock.uptimeMs() - beganMs) / 1000);
      ruleset.commit();
      this.#written.add(family);
    } catch (error) {
      if (!signal.aborted) metrics.failures.inc({ ip_family: `IPv${family}` });
      throw error;
    }
  }

  /** Whose rules there are. Of IPv6 where there is any, or was: what is gone goes from the kernel, too. */
  #families(): readonly Family[] { return FAMILIES.filter((family) => family === 4 || this.#usesV6() || this.plans.rulesets[6].size > 0 || this.#written.has(6)); }

  #usesV6(): boolean { return this.#clusterCidrs[6].length > 0 || this.#deps.ranges.of(6).length > 0; }

  #table(family: Family): NftTable {
    const { nft, table, ranges, nodePortCidrs, log, metrics } = this.#deps;
    return new NftTable({
      nft,
      frame: { table, family, clusterCidrs: this.#clusterCidrs[family], serviceCidrs: ranges.of(family), nodePortCidrs: nodePortCidrs && ofFamily(nodePortCidrs, family) },
      log, onLeftover: () => metrics.cleanupFailures.inc({ ip_family: `IPv${family}` }),
    });
  }
}

function ofFamily(cidrs: readonly string[], family: Family): string[] { return cidrs.filter((text) => parseCidr(text)?.family === family); }
