/**
 * Gives services what only one of them can have: addresses of the service ranges, ports of the nodes.
 *
 *   allocate(next, old) → next has all it needs → the write → commit or rollback
 *
 * Source: kubernetes v1.36 pkg/registry/core/service/storage/alloc.go
 */
import { child, index, invalid } from "../../../../api/meta/field-error.ts";
import { repeats } from "../../../../api/meta/linear.ts";
import type { Service } from "../../../../api/gen/core.v1.ts";
import type { IPAddress, ServiceCIDR } from "../../../../api/gen/networking.v1.ts";
import { internalError, invalid as invalidObject, statusError, type StatusError } from "../../../../api/meta/status-error.ts";
import type { Random } from "../../../../lifecycle/random.ts";
import type { Allocation } from "../../../generic/resource.ts";
import { type Address, bitsOf, type Family, formatAddress, parseAddress, parseRange } from "../../checks/ip.ts";
import { mayHaveNodePorts, needsClusterIp, needsHealthCheck, needsNodePorts, nodePortsOf } from "../shape.ts";
import type { AllocationMeter, Usage } from "./allocation-metrics.ts";
import { initFamilies, staysPreferDual } from "./ip-families.ts";
import { Pool, type PoolRange } from "./pool.ts";

export interface NodePortRange { readonly first: number; readonly last: number }

export interface AllocatorOptions {
  /** One range, or one of each family; the first is the family services get when they do not ask. */
  readonly serviceCidrs: readonly string[];
  readonly nodePortRange: NodePortRange;
  /** Every service there is, as of the last finished write. */
  readonly existing: () => Iterable<Readonly<Service>>;
  /** The ranges addresses are given out of; of a family without any, `serviceCidrs`. */
  readonly ranges?: (() => Iterable<Readonly<ServiceCIDR>>) | undefined;
  /** Addresses that are taken, by services that are about to be written and by whoever else. */
  readonly addresses?: (() => Iterable<Readonly<IPAddress>>) | undefined;
  readonly random: Random;
  readonly meter?: AllocationMeter | undefined;
}

export interface ServiceAllocation extends Allocation {
  /** What was taken, among all there is to take. */
  readonly names: readonly string[];
  /** Of `names`, those that are addresses, as IPAddresses are named. */
  readonly addresses: readonly string[];
  /** Whether no service has it by now. */
  isFree(): boolean;
  commit(): void;
  rollback(): void;
}

export class ServiceAllocator {
  readonly #families: readonly Family[];
  readonly #pools = new Map<string, FamilyPool>(); // by CIDR
  readonly #inFlight: Readonly<Record<Family, Set<bigint>>> = { IPv4: new Set(), IPv6: new Set() };
  readonly #ports: Pool;
  readonly #read = new WeakMap<object, readonly Address[]>();
  readonly #options: AllocatorOptions;

  constructor(options: AllocatorOptions) {
    this.#options = options;
    options.meter?.follow(() => this.usage());
    this.#families = options.serviceCidrs.map((cidr) => this.#poolOf(cidr).family);
    const { first, last } = options.nodePortRange;
    const size = last - first + 1;
    this.#ports = new Pool({ first: BigInt(first), last: BigInt(last), reserved: reservedOf(size, { step: 32, max: 128 }) }, options.random);
  }

  /** Mutates `next`. Throws a StatusError for what cannot be had. A dry run takes nothing: it gets numbers that stand for those it would get, and is told of ports that are taken. */
  allocate(next: Service, old: Readonly<Service> | undefined, { dryRun = false }: { readonly dryRun?: boolean } = {}): ServiceAllocation {
    const taken = new Taken({ dryRun, portsInUse: () => this.#portsInUse() });
    try {
      initFamilies(next, old, this.#families);
      this.#allocateAddresses(next, old, taken);
      if (mayHaveNodePorts(next)) this.#allocateNodePorts(next, old, taken);
      if (needsHealthCheck(next) && !(old && needsHealthCheck(old))) this.#allocateHealthCheckPort(next, taken);
    } catch (error) {
      taken.release();
      throw error;
    }
    const values = taken.values();
    return {
      commit: () => taken.release(),
      rollback: () => taken.release(),
      names: values.map(({ pool, value }) => `${this.#nameOf(pool)}/${value}`),
      addresses: values.flatMap(({ pool, value }) => {
        const family = this.#familyOf(pool);
        return family ? [formatAddress({ family, value })] : [];
      }),
      isFree: () => [...Map.groupBy(values, ({ pool }) => pool)].every(([pool, own]) => {
        const inUse = this.#inUse(pool);
        return own.every(({ value }) => !inUse.has(value));
      }),
    };
  }

  #familyOf(pool: Pool): Family | undefined { return [...this.#pools.values()].find((one) => one.pool === pool)?.family; }
  #nameOf(pool: Pool): string { return this.#familyOf(pool) ?? "port"; }

  #inUse(pool: Pool): Set<bigint> {
    const family = this.#familyOf(pool);
    return family ? this.#addressesInUse(family) : this.#portsInUse();
  }

  #poolOf(cidr: string): FamilyPool {
    const known = this.#pools.get(cidr);
    if (known) return known;
    const { family, range } = addressRange(cidr);
    const made = { cidr, family, pool: new Pool(range, this.#options.random, this.#inFlight[family]) };
    this.#pools.set(cidr, made);
    return made;
  }

  /** Those that give out addresses: what the cluster was configured with first. */
  #rangesOf(family: Family): readonly FamilyPool[] {
    const { serviceCidrs, ranges = () => [] } = this.#options;
    const objects = [...ranges()].flatMap((object) => (object.spec?.cidrs ?? []).map((cidr) => ({ cidr, ready: isReady(object) })));
    const own = objects.filter(({ cidr }) => parseRange(cidr)?.address.family === family);
    if (own.length === 0) return serviceCidrs.map((cidr) => this.#poolOf(cidr)).filter((one) => one.family === family);
    const ready = new Set(own.filter((one) => one.ready).map(({ cidr }) => cidr));
    return [...ready].toSorted((a, b) => Number(serviceCidrs.includes(b)) - Number(serviceCidrs.includes(a))).map((cidr) => this.#poolOf(cidr));
  }

  #allocateAddresses(next: Service, old: Readonly<Service> | undefined, taken: Taken): void {
    if (!needsClusterIp(next)) return;
    if (old && (staysPreferDual(next, old) || old.spec.clusterIPs?.[0] === "None")) return;
    const had = old && needsClusterIp(old) ? old.spec.ipFamilies ?? [] : [];
    const families = (next.spec.ipFamilies ?? []) as Family[];
    if (had.length === 0 ? next.spec.clusterIPs?.[0] === "None" : !(had.length === 1 && families.length === 2)) return;
    const asked = [...(next.spec.clusterIPs ?? [])];
    while (asked.length < families.length) asked.push(""); // refusals show one for each family
    const ips = [...asked];
    for (const [i, family] of families.entries()) if (i >= had.length) ips[i] = this.#takeAddress(next, { family, wanted: asked[i]!, asked }, taken);
    next.spec.clusterIPs = ips;
    next.spec.clusterIP = ips[0]!;
  }

  /** `wanted`: one of `asked`, or "" for any. */
  #takeAddress(service: Readonly<Service>, { family, wanted, asked }: { readonly family: Family; readonly wanted: string; readonly asked: readonly string[] }, taken: Taken): string {
    const ranges = this.#rangesOf(family);
    const { meter } = this.#options;
    const sinceMs = meter?.nowMs() ?? 0;
    const counted = (cidr: string | undefined, failed: boolean): void => {
      if (!taken.dryRun && cidr !== undefined) meter?.address(cidr, wanted === "" ? "dynamic" : "static", { failed, sinceMs });
    };
    const inUse = this.#addressesInUse(family);
    if (wanted === "") {
      const [first] = ranges;
      if (taken.dryRun && first) return formatAddress({ family, value: first.pool.range.first - 1n });
      for (const { cidr, pool } of ranges) {
        const value = pool.takeAny(inUse);
        counted(cidr, value === undefined);
        if (value === undefined) continue;
        taken.add(pool, value);
        return formatAddress({ family, value });
      }
      throw internalError(new Error(`failed to allocate a serviceIP for Service ${JSON.stringify(service.metadata.name ?? "")}: range is full`));
    }
    const { value } = parseAddress(wanted)!; // validated by initFamilies
    const range = ranges.find(({ pool }) => pool.has(value));
    if (taken.dryRun && range) return wanted;
    const problem = range ? (range.pool.take(value, inUse) ? undefined : "provided IP is already allocated")
      : taken.dryRun && ranges[0] ? `the provided IP (${wanted}) is not in the valid range. The range of valid IPs is ${ranges[0].cidr}`
        : "the provided network does not match the current range";
    counted(range?.cidr, problem !== undefined);
    if (problem !== undefined || !range) throw refused(service, "spec.clusterIPs", asked, `failed to allocate IP ${wanted}: ${problem}`);
    taken.add(range.pool, value);
    return wanted;
  }

  /** Of each range, and of the ports. */
  usage(): Usage {
    const { length } = [...this.#portsInUse()].filter((port) => this.#ports.has(port));
    return {
      ranges: this.#families.flatMap((family) => {
        const inUse = [...this.#addressesInUse(family)];
        return this.#rangesOf(family).map(({ cidr, pool }) => {
          const allocated = inUse.filter((value) => pool.has(value)).length;
          return { cidr, allocated, available: Number(sizeOf(pool)) - allocated };
        });
      }),
      ports: { allocated: length, available: Number(sizeOf(this.#ports)) - length },
    };
  }

  #addressesInUse(family: Family): Set<bigint> {
    const inUse = new Set<bigint>();
    const add = (object: object, texts: () => readonly string[]): void => {
      for (const address of this.#addressesOf(object, texts)) if (address.family === family) inUse.add(address.value);
    };
    for (const service of this.#options.existing()) if (service.spec.type !== "ExternalName") add(service, () => service.spec.clusterIPs ?? []);
    for (const object of this.#options.addresses?.() ?? []) add(object, () => [object.metadata.name]);
    return inUse;
  }

  /** Read once: versions of objects never change, and there may be ten thousand of them. */
  #addressesOf(object: object, texts: () => readonly string[]): readonly Address[] {
    const known = this.#read.get(object);
    if (known) return known;
    const addresses = texts().flatMap((text) => parseAddress(text) ?? []);
    this.#read.set(object, addresses);
    return addresses;
  }

  /** A port number that stands for several protocols shares one node port. */
  #allocateNodePorts(next: Service, old: Readonly<Service> | undefined, taken: Taken): void {
    const before = new Set(old ? nodePortsOf(old) : []);
    const sharedByPort = new Map<number, number>();
    const ports = (next.spec.ports ?? []).map((port) => ({ ...port }));
    const asked = Map.groupBy(ports.filter(({ nodePort }) => nodePort), ({ port }) => port);
    const cameBefore = repeats<string>();
    for (const [i, port] of ports.entries()) {
      if (!port.nodePort && !needsNodePorts(next)) continue;
      const shared = old ? undefined : sharedByPort.get(port.port);
      const wanted = port.nodePort || (old || shared !== undefined ? 0 : asked.get(port.port)?.[0]?.nodePort ?? 0);
      if (shared !== undefined && (wanted === 0 || wanted === shared)) port.nodePort = shared;
      else if (wanted === 0) port.nodePort = this.#takeAnyPort(taken, "failed to allocate a nodePort: ");
      else {
        if (!before.has(wanted) && !taken.has(this.#ports, BigInt(wanted), old !== undefined)) this.#takePort(next, wanted, child(index("spec.ports", i), "nodePort"), taken);
        port.nodePort = wanted;
      }
      if (shared === undefined) sharedByPort.set(port.port, port.nodePort);
      if (cameBefore(`${port.protocol} ${port.nodePort}`) && old) throw statusError({ code: 500, reason: "", message: `duplicate nodePort: {${port.protocol} ${port.nodePort}}` });
    }
    if (next.spec.ports) next.spec.ports = ports;
  }

  #takePort(service: Readonly<Service>, port: number, path: string, taken: Taken): void {
    const problem = this.#portProblem(port, taken);
    if (problem !== undefined) throw refused(service, path, port, problem);
  }

  #portProblem(port: number, taken: Taken): string | undefined {
    const value = BigInt(port);
    const { first, last } = this.#options.nodePortRange;
    if (taken.dryRun) {
      if (taken.has(this.#ports, value, true) || this.#ports.isTaken(value, taken.portsInUse)) return "provided port is already allocated";
      taken.add(this.#ports, value);
      return undefined;
    }
    const problem = !this.#ports.has(value) ? `provided port is not in the valid range. The range of valid ports is ${first}-${last}`
      : !this.#ports.take(value, taken.portsInUse) ? "provided port is already allocated" : undefined;
    this.#options.meter?.port("static", problem !== undefined);
    if (problem === undefined) taken.add(this.#ports, value);
    return problem;
  }

  #takeAnyPort(taken: Taken, what: string): number {
    if (taken.dryRun) {
      const value = taken.highest(this.#ports) || DRY_RUN_PORT;
      taken.add(this.#ports, value + 1n);
      return Number(BigInt.asIntN(32, value + 1n)); // as far as a port goes, of which nobody has said yet that it is none
    }
    const value = this.#ports.takeAny(taken.portsInUse);
    this.#options.meter?.port("dynamic", value === undefined);
    if (value === undefined) throw internalError(new Error(`${what}range is full`));
    taken.add(this.#ports, value);
    return Number(value);
  }

  #portsInUse(): Set<bigint> {
    const inUse = new Set<bigint>();
    for (const service of this.#options.existing()) {
      for (const port of nodePortsOf(service)) inUse.add(BigInt(port));
      if (service.spec.healthCheckNodePort) inUse.add(BigInt(service.spec.healthCheckNodePort));
    }
    return inUse;
  }

  #allocateHealthCheckPort(service: Service, taken: Taken): void {
    const wanted = service.spec.healthCheckNodePort ?? 0;
    if (wanted === 0) service.spec.healthCheckNodePort = this.#takeAnyPort(taken, "failed to allocate a HealthCheck NodePort 0: ");
    else {
      const problem = this.#portProblem(wanted, taken);
      if (problem !== undefined) throw internalError(new Error(`failed to allocate requested HealthCheck NodePort ${wanted}: ${problem}`));
    }
  }
}

function refused(service: Readonly<Service>, path: string, value: unknown, detail: string): StatusError {
  return invalidObject({ group: "", kind: "Service" }, service.metadata.name ?? "" /* a body may have none */, [invalid(path, value, detail)]);
}

/** After it come the ports that a dry run gets. Source: pkg/registry/core/service/portallocator/operation.go */
const DRY_RUN_PORT = 32768n;

/** What one write has taken, of which there may be tens of thousands of ports. */
class Taken {
  /** Then nothing has been taken out of the pools. */
  readonly dryRun: boolean;
  readonly #portsInUse: () => ReadonlySet<bigint>;
  #inUse: ReadonlySet<bigint> | undefined;
  readonly #values: { readonly pool: Pool; readonly value: bigint }[] = [];
  readonly #of = new Map<Pool, Set<bigint>>();
  readonly #highest = new Map<Pool, bigint>();

  constructor({ dryRun, portsInUse }: { readonly dryRun: boolean; readonly portsInUse: () => ReadonlySet<bigint> }) {
    this.dryRun = dryRun;
    this.#portsInUse = portsInUse;
  }

  /** By the services there are, none of which changes meanwhile. */
  get portsInUse(): ReadonlySet<bigint> { return (this.#inUse ??= this.#portsInUse()); }
  values(): readonly { readonly pool: Pool; readonly value: bigint }[] { return [...this.#values]; }

  add(pool: Pool, value: bigint): void {
    this.#values.push({ pool, value });
    const own = this.#of.get(pool) ?? new Set();
    this.#of.set(pool, own.add(value));
    if (value > this.highest(pool)) this.#highest.set(pool, value);
  }

  /** 0: none is more. */
  highest(pool: Pool): bigint { return this.#highest.get(pool) ?? 0n; }
  /** An update may name a node port twice, for two protocols; a create goes by port numbers. */
  has(pool: Pool, value: bigint, isUpdate: boolean): boolean { return isUpdate && this.#of.get(pool)?.has(value) === true; }

  release(): void {
    const values = this.#values.splice(0);
    if (!this.dryRun) for (const { pool, value } of values) pool.done(value);
  }
}

interface FamilyPool { readonly cidr: string; readonly family: Family; readonly pool: Pool }

/** Said to be, or nothing said: the controllers may not have seen it yet. */
function isReady({ metadata, status }: Readonly<ServiceCIDR>): boolean {
  return metadata.deletionTimestamp === undefined && (status?.conditions?.find(({ type }) => type === "Ready")?.status ?? "True") === "True";
}

/** Of one protocol a node port is one port's. Throws 500, as upstream's allocator does before an update is validated. */
const IPV6_PREFIX_MIN = 64;

/** The addresses of a range that can be given out: neither the first, nor the last of an IPv4 range. Throws if `cidr` is no range. */
function addressRange(cidr: string): { readonly family: Family; readonly range: PoolRange } {
  const parsed = parseRange(cidr);
  if (!parsed) throw new Error(`service range ${cidr} is not a CIDR`);
  const { address: { family }, base, prefix } = parsed;
  if (family === "IPv6" && prefix < IPV6_PREFIX_MIN) throw new Error(`shortest allowed prefix length for service CIDR is 64, got ${prefix}`);
  const size = 1n << BigInt(bitsOf(family) - prefix);
  const last = base + size - (family === "IPv4" ? 2n : 1n);
  return { family, range: { first: base + 1n, last, reserved: reservedOf(Number(size), { step: 16, max: 256 }) } };
}

function sizeOf({ range: { first, last } }: Pool): bigint { return last - first + 1n; }

const RESERVED_MIN = 16;

function reservedOf(size: number, { step, max }: { readonly step: number; readonly max: number }): bigint {
  if (size <= RESERVED_MIN) return 0n;
  return BigInt(Math.min(Math.max(Math.floor(size / step), RESERVED_MIN), max));
}
