/**
 * IP addresses and ranges in API fields: what was written, what it means, and how upstream complains.
 *
 * Older fields accept what Go used to accept (leading zeros, IPv4 inside IPv6), but only as long as nobody changes them: such a value is
 * `strict: false`, refused when it is new, and warned about.
 *
 * Source: kubernetes v1.36 apimachinery/pkg/util/validation/ip.go
 */
import { type FieldError, index, invalid } from "../../../api/meta/field-error.ts";
import { goQuote } from "../../../api/meta/go-quote.ts";

export type Family = "IPv4" | "IPv6";

export interface Address {
  readonly family: Family;
  readonly value: bigint;
  /** Written without leading zeros. */
  readonly strict: boolean;
  /** Written as ::ffff:a.b.c.d; the family is IPv4 all the same. */
  readonly mapped: boolean;
}

export interface Range { readonly address: Address; readonly base: bigint; readonly prefix: number; readonly strict: boolean }

const V6_GROUP = /^[0-9a-fA-F]{1,4}$/;

export function parseAddress(text: string): Address | undefined {
  if (!text.includes(":")) {
    const v4 = parseV4(text);
    return v4 && { family: "IPv4", value: v4.value, strict: v4.strict, mapped: false };
  }
  let rest = text;
  let strict = true;
  if (text.includes(".")) {
    const tail = text.lastIndexOf(":") + 1;
    const v4 = parseV4(text.slice(tail));
    if (!v4) return undefined;
    strict = v4.strict;
    rest = `${text.slice(0, tail)}${(v4.value >> 16n).toString(16)}:${(v4.value & 0xffffn).toString(16)}`;
  }
  const value = parseV6(rest);
  if (value === undefined) return undefined;
  return value >> 32n === 0xffffn ? { family: "IPv4", value: value & 0xffffffffn, strict, mapped: true } : { family: "IPv6", value, strict, mapped: false };
}

function parseV4(text: string): { readonly value: bigint; readonly strict: boolean } | undefined {
  const parts = text.split(".");
  if (parts.length !== 4 || !parts.every((part) => /^\d{1,16}$/.test(part) && Number(part) <= 255)) return undefined;
  return { value: parts.reduce((value, part) => value * 256n + BigInt(Number(part)), 0n), strict: parts.every((part) => part === String(Number(part))) };
}

function parseV6(text: string): bigint | undefined {
  const halves = text.split("::");
  if (halves.length > 2) return undefined;
  const [front = [], back = []] = halves.map((half) => (half === "" ? [] : half.split(":")));
  const zeros = 8 - front.length - back.length;
  if ([...front, ...back].some((group) => !V6_GROUP.test(group)) || (halves.length === 2 ? zeros < 1 : zeros !== 0)) return undefined;
  return [...front, ...Array<string>(zeros).fill("0"), ...back].reduce((value, group) => (value << 16n) | BigInt(`0x${group}`), 0n);
}

export function formatAddress({ family, value }: Pick<Address, "family" | "value">): string {
  if (family === "IPv4") return [24n, 16n, 8n, 0n].map((shift) => String((value >> shift) & 0xffn)).join(".");
  const groups = Array.from({ length: 8 }, (_, i) => ((value >> BigInt(112 - 16 * i)) & 0xffffn).toString(16)).join(":");
  const runs = [...groups.matchAll(/(?:^|:)0(?::0)+(?=:|$)/g)].map(([run]) => run).sort((a, b) => b.replace(/^:/, "").length - a.replace(/^:/, "").length);
  if (runs.length === 0) return groups;
  const at = groups.indexOf(runs[0]!);
  const [before, after] = [groups.slice(0, at), groups.slice(at + runs[0]!.length)];
  return `${before}::${after.replace(/^:/, "")}`;
}

export function bitsOf(family: Family): number { return family === "IPv4" ? 32 : 128; }

export function parseRange(text: string): Range | undefined {
  const slash = text.lastIndexOf("/");
  const address = slash < 0 ? undefined : parseAddress(text.slice(0, slash));
  const digits = text.slice(slash + 1);
  if (!address || !/^\d{1,4}$/.test(digits)) return undefined;
  const written = Number(digits);
  const prefix = address.mapped ? Math.max(written - 96, 0) : written; // one that is wider than all of IPv4 is refused for its address
  const bits = bitsOf(address.family);
  if (prefix > bits) return undefined;
  const host = BigInt(bits - prefix);
  return { address, base: (address.value >> host) << host, prefix, strict: address.strict && digits === String(written) };
}

function formatRange({ address: { family }, base, prefix }: Range): string { return `${formatAddress({ family, value: base })}/${prefix}`; }

export function familyOf(text: string): Family | undefined { return parseAddress(text)?.family; }

/** Two addresses or ranges, one of each family. */
export function isDualStack(texts: readonly string[]): boolean {
  const families = texts.map((text) => (text.includes("/") ? parseRange(text)?.address.family : familyOf(text)));
  return families.includes("IPv4") && families.includes("IPv6");
}

/** Most addresses are such, and nothing is wrong with them: a kubelet reports some all the time. */
const PLAIN_V4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)\.){3}(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)$/;
const IP_WRONG = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
const CIDR_WRONG = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

/** Of a field older than strict checks; values in `known` were stored before and stay. */
export function* legacyIp(path: string, text: string, known?: ReadonlySet<string>): Iterable<FieldError> {
  if (PLAIN_V4.test(text) || known?.has(text)) return;
  const address = parseAddress(text);
  if (!address) { yield invalid(path, text, IP_WRONG); return; }
  if (!address.strict) yield invalid(path, text, "must not have leading 0s");
  else if (address.mapped) yield invalid(path, text, "must not be an IPv4-mapped IPv6 address");
}

export function* strictIp(path: string, text: string): Iterable<FieldError> {
  const errors = [...legacyIp(path, text)];
  yield* errors;
  const canonical = errors.length === 0 ? formatAddress(parseAddress(text)!) : text;
  if (canonical !== text) yield invalid(path, text, `must be in canonical form (${goQuote(canonical)})`);
}

export function* legacyCidr(path: string, text: string, known?: ReadonlySet<string>): Iterable<FieldError> {
  if (known?.has(text)) return;
  const range = parseRange(text);
  if (!range) { yield invalid(path, text, CIDR_WRONG); return; }
  if (!range.strict) yield invalid(path, text, "must not have leading 0s in IP or prefix length");
  else if (range.address.mapped) yield invalid(path, text, "must not have an IPv4-mapped IPv6 address");
  else if (range.base !== range.address.value) yield invalid(path, text, "must not have bits set beyond the prefix length");
}

export function* strictCidr(path: string, text: string): Iterable<FieldError> {
  const errors = [...legacyCidr(path, text)];
  yield* errors;
  const canonical = errors.length === 0 ? formatRange(parseRange(text)!) : text;
  if (canonical !== text) yield invalid(path, text, `must be in canonical form (${goQuote(canonical)})`);
}

/** An address with the length of its network's prefix. */
export function* interfaceAddress(path: string, text: string): Iterable<FieldError> {
  const range = parseRange(text);
  if (!range) { yield invalid(path, text, "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"); return; }
  const canonical = `${formatAddress(range.address)}/${range.prefix}`;
  if (canonical !== text) yield invalid(path, text, `must be in canonical form (${goQuote(canonical)})`);
}

/** Addresses nothing can be reached at. */
export function* endpointIp(path: string, text: string): Iterable<FieldError> {
  const address = parseAddress(text);
  if (!address) { yield invalid(path, text, "must be a valid IP address"); return; }
  const { family, value } = address;
  const v4 = family === "IPv4";
  if (value === 0n) yield invalid(path, text, `may not be unspecified (${text})`);
  if (v4 ? value >> 24n === 127n : value === 1n) yield invalid(path, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)");
  if (v4 ? value >> 16n === 0xa9fen : value >> 118n === 0x3fan) yield invalid(path, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)");
  if (v4 ? value >> 8n === 0xe00000n : (value >> 112n & 0xff0fn) === 0xff02n) yield invalid(path, text, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)");
}

export function* ipWarnings(path: string, text: string): Iterable<string> {
  if (PLAIN_V4.test(text)) return;
  const address = parseAddress(text);
  if (!address) return; // not a matter of style: validation has refused it
  const canonical = formatAddress(address);
  if (!address.strict || address.mapped) yield `${path}: non-standard IP address ${goQuote(text)} is invalid: use ${goQuote(canonical)}`;
  else if (canonical !== text) yield `${path}: IPv6 address ${goQuote(text)} should be in RFC 5952 canonical format (${goQuote(canonical)})`;
}

/** Of the points of a load balancer, in a status. */
export function* ingressWarnings(points: readonly { readonly ip?: string | undefined }[] = []): Iterable<string> {
  for (const [i, { ip }] of points.entries()) if (ip) yield* ipWarnings(index("status.loadBalancer.ingress", i), ip);
}

export function* cidrWarnings(path: string, text: string): Iterable<string> {
  const range = parseRange(text);
  if (!range) return; // not a matter of style: validation has refused it
  const { address, base, strict } = range;
  const canonical = formatRange(range);
  let warned = false;
  if (base !== address.value) {
    warned = true;
    yield `${path}: CIDR value ${goQuote(text)} is ambiguous in this context (should be ${goQuote(canonical)} or ${goQuote(`${formatAddress(address)}/${bitsOf(address.family)}`)}?)`;
  }
  if (!strict || address.mapped) yield `${path}: non-standard CIDR value ${goQuote(text)} is invalid: use ${goQuote(canonical)}`;
  else if (!warned && address.family === "IPv6" && canonical !== text)
    yield `${path}: IPv6 CIDR value ${goQuote(text)} should be in RFC 5952 canonical format (${goQuote(canonical)})`;
}
