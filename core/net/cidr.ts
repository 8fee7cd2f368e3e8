/**
 * IP addresses and ranges, of both families, as Kubernetes reads and writes them.
 *
 *   const range = parseCidr("10.43.0.0/16")!;
 *   formatIp(nthAddress(range, 1n));                       // "10.43.0.1"
 *   formatCidr(nthSubnet(parseCidr("10.42.0.0/16")!, 24, 3n)) // "10.42.3.0/24"
 *
 * Parsing is strict, like Go's net/netip: no leading zeros, no zones. An IPv4 address written inside IPv6 (::ffff:10.0.0.1) is read as IPv4,
 * which is what sockets that accept both families report. Parsers give undefined for what is no address.
 */
export type Family = 4 | 6;

export interface Ip { readonly family: Family; readonly value: bigint }

/** `base` has no bits set beyond `prefix`. */
export interface Cidr { readonly family: Family; readonly base: bigint; readonly prefix: number }

const BITS: Readonly<Record<Family, number>> = { 4: 32, 6: 128 };
const MAPPED = 0xffffn << 32n;

/** How long an address is. */
export function addressBits(family: Family): number { return BITS[family]; }

export function parseIp(text: string): Ip | undefined {
  if (!text.includes(":")) {
    const value = parseIpv4(text);
    return value === undefined ? undefined : { family: 4, value };
  }
  const value = parseIpv6(text);
  if (value === undefined) return undefined;
  return value >> 32n === 0xffffn ? { family: 4, value: value - MAPPED } : { family: 6, value };
}

/** As objects may have it from before leading zeros were refused: they count for nothing, 010.0.0.7 is 10.0.0.7. For reading what is stored, never for letting something in. */
export function parseStoredIp(text: string): Ip | undefined { return parseIp(withoutZeros(text)); }

/** The same for ranges. */
export function parseStoredCidr(text: string): Cidr | undefined {
  const slash = text.indexOf("/");
  return slash < 0 ? undefined : parseCidr(`${withoutZeros(text.slice(0, slash))}${text.slice(slash)}`);
}

/** Of the numbers of an IPv4 address, also of one inside IPv6. */
function withoutZeros(text: string): string {
  if (!text.includes(".")) return text;
  const tail = text.lastIndexOf(":") + 1;
  return text.slice(0, tail) + text.slice(tail).replace(/(^|\.)0+(?=\d)/g, "$1");
}

function parseIpv4(text: string): bigint | undefined {
  const parts = text.split(".");
  if (parts.length !== 4 || !parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) <= 255)) return undefined;
  return parts.reduce((value, part) => value * 256n + BigInt(part), 0n);
}

function parseIpv6(text: string): bigint | undefined {
  let rest = text;
  const tail = text.lastIndexOf(":");
  if (text.includes(".")) { // the last 32 bits in IPv4's form
    const low = parseIpv4(text.slice(tail + 1));
    if (low === undefined) return undefined;
    rest = `${text.slice(0, tail + 1)}${(low >> 16n).toString(16)}:${(low & 0xffffn).toString(16)}`;
  }
  const halves = rest.split("::");
  if (halves.length > 2) return undefined;
  const groups = halves.map((half) => (half === "" ? [] : half.split(":")));
  if (!groups.flat().every((group) => /^[0-9a-fA-F]{1,4}$/.test(group))) return undefined;
  const zeros = 8 - groups.flat().length;
  if (halves.length === 2 ? zeros < 1 : zeros !== 0) return undefined;
  const all = halves.length === 2 ? [...groups[0]!, ...Array<string>(zeros).fill("0"), ...groups[1]!] : groups[0]!;
  return all.reduce((value, group) => (value << 16n) | BigInt(`0x${group}`), 0n);
}

/** Canonical text: RFC 5952 for IPv6. */
export function formatIp({ family, value }: Ip): string {
  if (family === 4) return [24n, 16n, 8n, 0n].map((shift) => String((value >> shift) & 0xffn)).join(".");
  const groups = Array.from({ length: 8 }, (_, i) => Number((value >> BigInt(112 - 16 * i)) & 0xffffn));
  let best = { start: 0, length: 1 }; // a single zero group is not shortened
  for (let start = 0; start < 8; start++) {
    let length = 0;
    while (groups[start + length] === 0) length++;
    if (length > best.length) best = { start, length };
  }
  const hex = groups.map((group) => group.toString(16));
  if (best.length === 1) return hex.join(":");
  return `${hex.slice(0, best.start).join(":")}::${hex.slice(best.start + best.length).join(":")}`;
}

/** 4 or 16 bytes, network order. */
export function ipBytes({ family, value }: Ip): Uint8Array {
  const length = BITS[family] / 8;
  return Uint8Array.from({ length }, (_, i) => Number((value >> BigInt(8 * (length - 1 - i))) & 0xffn));
}

export function ipFromBytes(bytes: Uint8Array): Ip | undefined {
  if (bytes.length !== 4 && bytes.length !== 16) return undefined;
  const value = bytes.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
  return { family: bytes.length === 4 ? 4 : 6, value };
}

/** Host bits are cleared: "10.0.0.7/24" is the range 10.0.0.0/24. Keep the text if they matter. */
export function parseCidr(text: string): Cidr | undefined {
  const slash = text.indexOf("/");
  if (slash < 0 || !/^(0|[1-9]\d{0,2})$/.test(text.slice(slash + 1))) return undefined;
  const ip = parseIp(text.slice(0, slash));
  const prefix = Number(text.slice(slash + 1));
  if (!ip || prefix > BITS[ip.family]) return undefined;
  return cidrOf(ip, prefix);
}

/** The range of this size an address is in. */
export function cidrOf({ family, value }: Ip, prefix: number): Cidr {
  const shift = BigInt(BITS[family] - prefix);
  return { family, base: (value >> shift) << shift, prefix };
}

export function formatCidr({ family, base, prefix }: Cidr): string { return `${formatIp({ family, value: base })}/${prefix}`; }

/** How many addresses the range has. */
export function cidrSize({ family, prefix }: Cidr): bigint { return 1n << BigInt(BITS[family] - prefix); }

export function cidrContains(range: Cidr, ip: Ip): boolean {
  return range.family === ip.family && ip.value >= range.base && ip.value < range.base + cidrSize(range);
}

export function cidrsOverlap(a: Cidr, b: Cidr): boolean {
  return a.family === b.family && a.base < b.base + cidrSize(b) && b.base < a.base + cidrSize(a);
}

/** Ranges as they are written without host bits, none inside another (nft refuses such a set), the widest first. What is no range is left out. */
export function withoutOverlaps(cidrs: readonly string[]): string[] {
  const parsed = cidrs.flatMap((text) => parseCidr(text) ?? []).sort((a, b) => a.prefix - b.prefix || Number(a.base - b.base > 0n) - Number(a.base - b.base < 0n));
  return outermost(parsed).map(formatCidr);
}

/** Those that no other one holds, in their order; of equal ones the first. Of very many in little more time than it takes to sort them. */
export function outermost(ranges: readonly Cidr[]): Cidr[] {
  const kept = new Set<Cidr>();
  let last: Cidr | undefined;
  for (const one of ranges.toSorted((a, b) => a.family - b.family || Number(a.base - b.base > 0n) - Number(a.base - b.base < 0n) || a.prefix - b.prefix)) {
    if (last && cidrContains(last, { family: one.family, value: one.base })) continue;
    kept.add(one);
    last = one;
  }
  return ranges.filter((one) => kept.has(one));
}

/** Throws when the range has fewer than `n + 1` addresses. Negative `n` counts from the end: -1n is the last address. */
export function nthAddress(range: Cidr, n: bigint): Ip {
  const size = cidrSize(range);
  const at = n < 0n ? size + n : n;
  if (at < 0n || at >= size) throw new RangeError(`${formatCidr(range)} has no address number ${n}`);
  return { family: range.family, value: range.base + at };
}

/** How many subnets of that size fit. */
export function subnetCount(range: Cidr, prefix: number): bigint { return prefix < range.prefix ? 0n : 1n << BigInt(prefix - range.prefix); }

export function nthSubnet(range: Cidr, prefix: number, n: bigint): Cidr {
  if (n < 0n || n >= subnetCount(range, prefix)) throw new RangeError(`${formatCidr(range)} has no /${prefix} number ${n}`);
  return { family: range.family, base: range.base + (n << BigInt(BITS[range.family] - prefix)), prefix };
}
