/**
 * This node's own addresses: those of the interface its default route leaves by, IPv4 first. A device without any network has the first address it can find, at
 * last the loopback's (lone-address.ts gives it one), so that a single node works on a desk or in a tunnel.
 */
import { existsSync, readFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { systemRoutes } from "../os/route.windows.ts";
import { compareText } from "../../core/api/meta/compare-text.ts";
import { cidrContains, type Family, formatIp, ipFromBytes, parseCidr, parseIp } from "../../core/net/cidr.ts";

export interface NodeAddresses {
  /** One of each family at most; never empty. */
  readonly ips: readonly string[];
  /** The interface they belong to, as far as known. */
  readonly interfaceName: string | undefined;
  readonly mtu: number;
  /** The user has chosen that it has one address, of this family if there is any. */
  readonly family?: Family;
}

interface InterfaceAddress { readonly interfaceName: string; readonly address: string }

/** What the kernel says, as text: /proc/net/route, /proc/net/ipv6_route, /proc/net/if_inet6, and IPv4 addresses by interface, of the loopback's those that are not in 127.0.0.0/8. */
export interface NetworkFacts {
  readonly route4: string;
  /** Where there is no such file: the interface of the IPv4 default route. */
  readonly default4?: (() => string | undefined) | undefined;
  readonly route6: string;
  readonly addresses6: string;
  readonly addresses4: readonly InterfaceAddress[];
  readonly loopback4: readonly string[];
  readonly mtuOf: (interfaceName: string) => number | undefined;
}

const MTU_DEFAULT = 1500;
/** In a certificate, which each handshake sends. */
const MACHINE_ADDRESSES_MAX = 16;
const LOOPBACK = "lo";
/** Made by container software: their addresses are not the node's. */
const VIRTUAL = /^(Loopback|vEthernet \((nat|Default Switch)\)|lo|cni|docker|br-|veth|flannel|cali|coracle|tunl|kube|virbr|podman|nodelocaldns)/;
/** Of a machine that has asked for an address and got none. */
const LINK_LOCAL = /^169\.254\./;
/** Private networks over another: other nodes do not find a machine there because it has dialled in. */
const PRIVATE = /^(tun|tap|wg|ppp|ipsec|vti|gre|tailscale|zt|nordlynx|proton)/;
const OF_ANY_MACHINE = /^(127\.|::1$)/;
/** From the best: high, medium, low. Source: linux include/uapi/linux/ipv6_route.h (RTF_PREF), RFC 4191 */
const ROUTER_PREFERENCES: readonly number[] = [1, 0, 3], ROUTER_PREFERENCE_SHIFT = 27;
/** Added to the metric of a network's default route. Source: NetworkManager src/core/devices/nm-device.c (default_route_metric_penalty_get) */
const NO_INTERNET_PENALTY = 20_000;
const TEMPORARY = 0x01, DEPRECATED = 0x20, TENTATIVE = 0x40; // linux/if_addr.h

/** Of one network alone, or of a site: fc00::/7, RFC 4193. */
const UNIQUE_LOCAL = /^f[cd]/;

/** The family that the user has chosen in place of an address, by 0.0.0.0 or ::. Source: kubernetes v1.36 pkg/kubelet/nodestatus/setters.go (NodeAddress) */
export function chosenFamily(given: readonly string[]): Family | undefined {
  const [ip, ...more] = given.map(parseIp);
  return ip?.value === 0n && more.length === 0 ? ip.family : undefined;
}

/** `chosen`: by the user, which is taken as it is, but for how it is written: the kernel, and who compares, know but one way; a family of addresses alone is a wish. */
export function nodeAddresses(chosen: readonly string[] = [], facts: NetworkFacts = readFacts()): NodeAddresses {
  const family = chosenFamily(chosen);
  if (family !== undefined) return preferring(family, facts);
  const all = [...facts.addresses4, ...addressesV6(facts.addresses6)];
  if (chosen.length > 0) {
    const ips = chosen.map(asWritten);
    return addressesOn(all.find(({ address }) => ips.includes(address))?.interfaceName, ips, facts);
  }
  const routed = routedAddresses(facts);
  if (routed) return routed;
  const any = all.find(({ interfaceName }) => !isVirtual(interfaceName));
  return any ? addressesOn(any.interfaceName, [any.address], facts) : addressesOn(undefined, ownOfLoopback(facts), facts);
}

/** As everybody writes it: an address of IPv6 may be given in many ways. */
function asWritten(text: string): string {
  const ip = parseIp(text);
  return ip ? formatIp(ip) : text;
}

/** The loopback's, of a machine that has no other. */
export function isOfAnyMachine(address: string): boolean { return OF_ANY_MACHINE.test(address); }

/** Which of these no interface of this machine has; the loopback's may have one that routers lead to, beside those of any machine's. */
export function addressesElsewhere(given: readonly string[], interfaces: ReturnType<typeof networkInterfaces> = networkInterfaces()): readonly string[] {
  const here = Object.values(interfaces).flatMap((list) => list ?? []).map(({ address }) => asWritten(address)).filter((address) => !isOfAnyMachine(address));
  return given.filter((text) => !here.includes(asWritten(text)));
}

/** One address: the first of that family on the interfaces of the default routes, or without one on any; then the first of the other. */
function preferring(family: Family, facts: NetworkFacts): NodeAddresses {
  const all = [...facts.addresses4, ...addressesV6(facts.addresses6)].filter(({ interfaceName }) => !isVirtual(interfaceName));
  const outside = routedAddresses(facts)?.ips ?? all.map(({ address }) => address);
  const ips = outside.length > 0 ? outside : ownOfLoopback(facts);
  const ip = ips.find((one) => isOf(family, one)) ?? ips[0]!;
  return { ...addressesOn(all.find(({ address }) => address === ip)?.interfaceName, [ip], facts), family };
}

function isOf(family: Family, ip: string): boolean { return parseIp(ip)?.family === family; }

/**
 * Where a machine is now that was at `own`; undefined while it still is, or is nowhere: whose cable is out comes back to where it was. A family of addresses that is there no
 * more counts only when another of the same has come, so that a network that gives IPv6 sooner than IPv4 is waited for. One of the family that the user wishes counts when it comes,
 * and so does one of `families`, the cluster's: machines get IPv4 and IPv6 seconds apart, or have one of them from another router.
 */
export function movedTo(own: NodeAddresses, families: readonly Family[] = [], facts: NetworkFacts = readFacts()): NodeAddresses | undefined {
  const gone = goneOf(own, facts);
  const found = own.family === undefined ? (routedAddresses(facts) ?? nodeAddresses([], facts)) : preferring(own.family, facts);
  if (gone.length === 0) return (isWished(found) && !isWished(own)) || (own.family === undefined && isMore(found, own, families)) ? found : undefined;
  if (found.ips.join() === own.ips.join() || (found.interfaceName !== own.interfaceName && !routedAddresses(facts))) return undefined;
  if (own.interfaceName === undefined && routedAddresses(facts)) return isUseful(found, families) ? found : undefined;
  return familiesOf(gone).some((family) => familiesOf(found.ips).includes(family)) ? found : undefined;
}

/** Which of its addresses no network has given it now. */
function goneOf({ ips }: NodeAddresses, { addresses4, addresses6 }: NetworkFacts): readonly string[] {
  const present = new Set([...addresses4, ...addressesV6(addresses6)].filter(({ interfaceName }) => interfaceName !== LOOPBACK).map(({ address }) => address));
  return ips.filter((ip) => !present.has(ip) || LINK_LOCAL.test(ip));
}

export interface Away {
  /** When no network has its address any more it goes where it still is: pods do not reach the API server at an address that nobody has. */
  readonly mayBeAlone?: boolean;
  /** Where it was before it went, if it has: it comes back as soon as there is a way out of there. */
  readonly home?: string | undefined;
}

/**
 * Where a machine is that has been as it is for a minute, though addresses may come yet: one that was started on no network is on one that leads nowhere else; and one whose network is gone, as its
 * manager takes the address away with the cable, is on another, as the side of a gateway that machines are on, or on none. One that is where its second default route leads, as while its cable was
 * out or its router was not up yet, is back at the first: there it is looked for, and was when it was last started.
 */
export function settledAt(own: NodeAddresses, families: readonly Family[] = [], { mayBeAlone = false, home }: Away = {}, facts: NetworkFacts = readFacts()): NodeAddresses | undefined {
  const found = own.family === undefined ? nodeAddresses([], facts) : preferring(own.family, facts);
  const isAlone = found.interfaceName === undefined, isGiven = !isAlone && !found.ips.some((ip) => LINK_LOCAL.test(ip)) && isUseful(found, families);
  if (own.interfaceName === undefined) return isGiven ? found : undefined;
  if (isBetter(found, own, facts)) return found;
  if (isGiven && home !== undefined && home !== own.interfaceName && found.interfaceName === home && routedAddresses(facts)) return found;
  return mayBeAlone && !hasAny(own, facts) && (isAlone || isGiven) ? found : undefined;
}

/** One that a router deprecates, as where it has lost its own network, is reached as before. */
function hasAny(own: NodeAddresses, facts: NetworkFacts): boolean {
  const held = addressesV6(facts.addresses6, 0).map(({ address }) => address);
  return goneOf(own, facts).filter((ip) => !held.includes(ip)).length < own.ips.length;
}

/** Whether its default route leaves by the interface that it is at. */
export function isAtHome({ interfaceName }: NodeAddresses, facts: NetworkFacts = readFacts()): boolean { return interfaceName !== undefined && routedAddresses(facts)?.interfaceName === interfaceName; }

/** To a machine that was on no network. Its pods reach the API server at an address of their first family alone, as which the loopback's serves until there is one. */
function isUseful({ ips, family: wished }: NodeAddresses, [first]: readonly Family[]): boolean {
  const family = wished ?? first;
  return family === undefined || familiesOf(ips).includes(family);
}

/** It has all families that `own` has, and one that the cluster has besides. */
function isMore(found: NodeAddresses, own: NodeAddresses, families: readonly Family[]): boolean {
  const has = familiesOf(found.ips), had = familiesOf(own.ips);
  return had.every((family) => has.includes(family)) && families.some((family) => has.includes(family) && !had.includes(family));
}

/**
 * The first default route leads by it, one of a larger metric by the node's own, and none of its families is lost. A node whose own has no such route any more stays: that may be about the internet
 * alone, as what a router of IPv6 thinks of itself may be. So does one whose networks are alike, as systemd's are: there the first is who came first.
 */
function isBetter(found: NodeAddresses, own: NodeAddresses, { route4, route6 }: NetworkFacts): boolean {
  const has = familiesOf(found.ips), had = familiesOf(own.ips);
  const routes = had.includes(4) ? defaultRoutesV4(route4) : defaultRoutesV6(route6).toSorted((a, b) => a.metric - b.metric);
  const [best] = routes, ofOwn = routes.find(({ device }) => device === own.interfaceName);
  return own.family === undefined && best !== undefined && !PRIVATE.test(best.device) && best.device === found.interfaceName && ofOwn !== undefined && best.metric < ofOwn.metric
    && had.every((family) => has.includes(family)) && !found.ips.some((ip) => LINK_LOCAL.test(ip));
}

function familiesOf(ips: readonly string[]): readonly Family[] { return ips.flatMap((ip) => parseIp(ip)?.family ?? []); }

export function isVirtual(interfaceName: string): boolean { return VIRTUAL.test(interfaceName); }

/** Whether it has an address of the family that was asked for. */
function isWished({ ips, family }: NodeAddresses): boolean {
  return family === undefined || ips.some((ip) => isOf(family, ip));
}

/** On the interfaces of the default routes. */
function routedAddresses(facts: NetworkFacts): NodeAddresses | undefined {
  const default4 = facts.default4 ? facts.default4() : defaultInterfaceV4(facts.route4), default6 = defaultInterfaceV6(facts.route6, default4);
  const found = [facts.addresses4.find(({ interfaceName }) => interfaceName === default4), addressesV6(facts.addresses6).find(({ interfaceName }) => interfaceName === default6)].flatMap((one) => one ?? []);
  return found.length === 0 ? undefined : addressesOn(found[0]!.interfaceName, found.map(({ address }) => address), facts);
}

/** The first of each family. */
function ownOfLoopback({ loopback4, addresses6 }: NetworkFacts): readonly string[] {
  const found = [loopback4[0], addressesV6(addresses6).find(({ interfaceName }) => interfaceName === LOOPBACK)?.address].flatMap((ip) => ip ?? []);
  return found.length > 0 ? found : ["127.0.0.1"];
}

function addressesOn(interfaceName: string | undefined, ips: readonly string[], { mtuOf }: NetworkFacts): NodeAddresses {
  return { ips, interfaceName, mtu: (interfaceName === undefined ? undefined : mtuOf(interfaceName)) ?? MTU_DEFAULT };
}

/** What of the machine's own, but for what a pod network has made, lies in these ranges. */
export function addressesWithin(ranges: readonly string[], { addresses4, addresses6 }: Pick<NetworkFacts, "addresses4" | "addresses6"> = readFacts()): readonly InterfaceAddress[] {
  const cidrs = ranges.flatMap((range) => parseCidr(range.trim()) ?? []);
  return [...addresses4, ...addressesV6(addresses6)].filter(({ interfaceName, address }) => {
    const ip = parseIp(address);
    return ip !== undefined && !isVirtual(interfaceName) && cidrs.some((cidr) => cidr.family === ip.family && cidrContains(cidr, ip));
  });
}

/** Networks' at which others may find this machine, but for those of container software; a machine with hundreds, as a router has, is found at the first. */
export function machineAddresses({ addresses4, addresses6 }: Pick<NetworkFacts, "addresses4" | "addresses6"> = readFacts()): readonly string[] {
  return [...addresses4, ...addressesV6(addresses6)].filter(({ interfaceName, address }) => !isVirtual(interfaceName) && !LINK_LOCAL.test(address)).map(({ address }) => address).slice(0, MACHINE_ADDRESSES_MAX);
}

/** How large its packets may be now: a tunnel's or a lease's say may come later than the address. */
export function mtuNow({ interfaceName, mtu }: NodeAddresses): number { return (interfaceName === undefined ? undefined : mtuOf(interfaceName)) ?? mtu; }

function mtuOf(interfaceName: string): number | undefined { return Number(textOf(`/sys/class/net/${interfaceName}/mtu`)) || undefined; }

/** "" on Windows, where these files may be seen and are not its own. */
function textOf(path: string): string { return process.platform !== "win32" && existsSync(path) ? readFileSync(path, "utf8") : ""; }

function readFacts(): NetworkFacts {
  const all4 = Object.entries(networkInterfaces()).flatMap(([interfaceName, list]) => (list ?? []).filter(({ family }) => family === "IPv4").map((one) => ({ ...one, interfaceName })));
  const addresses4 = all4.filter(({ internal }) => !internal).map(({ interfaceName, address }) => ({ interfaceName, address }));
  const loopback4 = all4.filter(({ internal, address }) => internal && !address.startsWith("127.")).map(({ address }) => address);
  return {
    route4: textOf("/proc/net/route"), default4: process.platform === "win32" ? defaultInterfaceOfWindows : undefined, route6: textOf("/proc/net/ipv6_route"), addresses6: textOf("/proc/net/if_inet6"), addresses4,
    loopback4, mtuOf,
  };
}

function defaultInterfaceOfWindows(): string | undefined {
  try {
    const [best] = systemRoutes().list().filter(({ to }) => to === "0.0.0.0/0").sort((a, b) => a.metric - b.metric);
    return Object.entries(networkInterfaces()).find(([, list]) => list?.some(({ address }) => address === best?.interfaceIp))?.[0];
  } catch {
    return undefined; // route.exe failed: the first address there is will do
  }
}

function defaultInterfaceV4(text: string): string | undefined { return defaultRoutesV4(text)[0]?.device; }

/** Without internet on it NetworkManager has a network be the last resort: where this machine is found does not depend on that. */
function withoutPenalty(metric: number): number { return metric >= NO_INTERNET_PENALTY ? metric - NO_INTERNET_PENALTY : metric; }

interface DefaultRoute { readonly device: string; readonly metric: number }

/** Columns: Iface Destination Gateway Flags RefCnt Use Metric Mask …; the best first. */
function defaultRoutesV4(text: string): DefaultRoute[] {
  const routes = text.split("\n").slice(1).map((line) => line.split(/\s+/)).filter(([, destination, , , , , , mask]) => destination === "00000000" && mask === "00000000");
  return routes.map(([device = "", , , , , , metric]) => ({ device, metric: withoutPenalty(Number(metric)) })).sort((a, b) => a.metric - b.metric);
}

/**
 * Columns: destination length source length gateway metric refcount use flags interface; numbers in hexadecimal. Routers' routes have one metric, and what they think of themselves is in the
 * flags: `preference`, the best is 0.
 */
function defaultRoutesV6(text: string): (DefaultRoute & { readonly preference: number })[] {
  const routes = text.split("\n").map((line) => line.trim().split(/\s+/)).filter(([destination, length, , , , , , , , device]) => /^0{32}$/.test(destination ?? "") && length === "00" && device !== "lo");
  return routes.map(([, , , , , metric, , , flags, device = ""]) => ({ device, metric: withoutPenalty(Number(`0x${metric}`)), preference: ROUTER_PREFERENCES.indexOf((Number(`0x${flags}`) >>> ROUTER_PREFERENCE_SHIFT) & 3) }));
}

/** Where neither the metric nor routers tell, IPv4's interface is taken if it is one of them. */
function defaultInterfaceV6(text: string, ofV4: string | undefined): string | undefined {
  const isOther = ({ device }: DefaultRoute): number => (device === ofV4 ? 0 : 1);
  return defaultRoutesV6(text).sort((a, b) => a.metric - b.metric || a.preference - b.preference || isOther(a) - isOther(b))[0]?.device;
}

/**
 * Columns: address index prefix scope flags interface. Global addresses that will stay, those that are reached from everywhere first: the kernel tells them in an order that is another
 * at each boot, and a node must not be somewhere else then.
 */
function addressesV6(text: string, unwanted = TEMPORARY | DEPRECATED | TENTATIVE): { interfaceName: string; address: string }[] {
  const lines = text.split("\n").toSorted((a, b) => Number(UNIQUE_LOCAL.test(a)) - Number(UNIQUE_LOCAL.test(b)) || compareText(a, b));
  return lines.flatMap((line) => {
    const [hex, , , scope, flags, interfaceName] = line.trim().split(/\s+/);
    if (!hex || !interfaceName || scope !== "00" || (Number(`0x${flags}`) & unwanted) !== 0) return [];
    const ip = ipFromBytes(Buffer.from(hex, "hex"));
    return ip && parseIp(formatIp(ip)) ? [{ interfaceName, address: formatIp(ip) }] : [];
  });
}
