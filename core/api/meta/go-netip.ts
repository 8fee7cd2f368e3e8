/**
 * IP addresses and prefixes as Go's net/netip reads them, with what it says of those it does not accept.
 *
 *   parseAddress("10.0.0.1")        throws AddressError: ParseAddr("10.0.0"): IPv4 address too short
 *   parsePrefix("10.0.0.0/8")
 *
 * Source: Go's net/netip
 */
import { goQuote } from "./go-quote.ts";

export interface Address {
  readonly bits: 32 | 128;
  readonly value: bigint;
  readonly zone: string;
  /** Written as IPv6, means IPv4: ::ffff:10.0.0.1 */
  readonly mapped: boolean;
}

export interface Prefix {
  readonly address: Address;
  readonly length: number;
}

export class AddressError extends Error { override readonly name = "AddressError"; }

export function parseAddress(text: string): Address {
  const first = /[.:%]/.exec(text)?.[0];
  if (first === ".") return { bits: 32, value: parseV4(text, text), zone: "", mapped: false };
  if (first === ":") return parseV6(text);
  throw wrong(text, first === "%" ? "missing IPv6 address" : "unable to parse IP");
}

export function parsePrefix(text: string): Prefix {
  const fail = (message: string): AddressError => new AddressError(`netip.ParsePrefix(${goQuote(text)}): ${message}`);
  const slash = text.lastIndexOf("/");
  if (slash < 0) throw fail("no '/'");
  const address = addressIn(text.slice(0, slash), fail);
  if (address.zone !== "") throw fail("IPv6 zones cannot be present in a prefix");
  const digits = text.slice(slash + 1);
  if (!/^(0|[1-9]\d*)$/.test(digits)) throw fail(`bad bits after slash: ${goQuote(digits)}`);
  if (Number(digits) > address.bits) throw fail("prefix length out of range");
  return { address, length: Number(digits) };
}

function addressIn(text: string, fail: (message: string) => AddressError): Address {
  try {
    return parseAddress(text);
  } catch (error) {
    if (error instanceof AddressError) throw fail(error.message);
    throw error;
  }
}

function wrong(text: string, message: string, at = ""): AddressError { return new AddressError(`ParseAddr(${goQuote(text)}): ${message}${at && ` (at ${goQuote(at)})`}`); }

/** `whole`: what it is a part of. */
function parseV4(text: string, whole: string): bigint {
  let [value, octet, digits, fields] = [0n, 0, 0, 0];
  for (const [i, char] of [...text].entries()) {
    if (char >= "0" && char <= "9") {
      if (digits === 1 && octet === 0) throw wrong(whole, "IPv4 field has octet with leading zero");
      octet = octet * 10 + Number(char);
      digits++;
      if (octet > 255) throw wrong(whole, "IPv4 field has value >255");
    } else if (char === ".") {
      if (i === 0 || i === text.length - 1 || text[i - 1] === ".") throw wrong(whole, "IPv4 field must have at least one digit", text.slice(i));
      if (fields === 3) throw wrong(whole, "IPv4 address too long");
      value = value * 256n + BigInt(octet);
      [octet, digits, fields] = [0, 0, fields + 1];
    } else throw wrong(whole, "unexpected character", text.slice(i));
  }
  if (fields < 3) throw wrong(whole, "IPv4 address too short");
  return value * 256n + BigInt(octet);
}

function parseV6(text: string): Address {
  const percent = text.indexOf("%");
  const zone = percent < 0 ? "" : text.slice(percent + 1);
  if (percent >= 0 && zone === "") throw wrong(text, "zone must be a non-empty string");
  const { groups, gap } = groupsOf(text, percent < 0 ? text : text.slice(0, percent));
  if (groups.length < 8 && gap === undefined) throw wrong(text, "address string too short");
  if (groups.length >= 8 && gap !== undefined) throw wrong(text, "the :: must expand to at least one field of zeros");
  const at = gap ?? groups.length;
  const all = [...groups.slice(0, at), ...Array<number>(8 - groups.length).fill(0), ...groups.slice(at)];
  const value = all.reduce((sum, group) => (sum << 16n) | BigInt(group), 0n);
  return { bits: 128, value, zone, mapped: value >> 32n === 0xffffn };
}

/** `gap`: before which of them the zeros stand that :: is for. */
function groupsOf(whole: string, text: string): { readonly groups: readonly number[]; readonly gap: number | undefined } {
  const groups: number[] = [];
  let gap: number | undefined;
  let rest = text;
  if (rest.startsWith("::")) {
    gap = 0;
    rest = rest.slice(2);
  }
  while (rest !== "" && groups.length < 8) {
    const hex = /^[0-9a-fA-F]*/.exec(rest)![0];
    if (hex.length > 4) throw wrong(whole, "each group must have 4 or less digits", rest);
    if (hex === "") throw wrong(whole, "each colon-separated field must have at least one digit", rest);
    if (rest[hex.length] === ".") {
      if (gap === undefined && groups.length !== 6) throw wrong(whole, "embedded IPv4 address must replace the final 2 fields of the address", rest);
      if (groups.length > 6) throw wrong(whole, "too many hex fields to fit an embedded IPv4 at the end of the address", rest);
      const v4 = Number(parseV4(rest, whole));
      groups.push(Math.floor(v4 / 65_536), v4 % 65_536);
      return { groups, gap };
    }
    groups.push(Number.parseInt(hex, 16));
    rest = rest.slice(hex.length);
    if (rest === "") break;
    if (!rest.startsWith(":")) throw wrong(whole, "unexpected character, want colon", rest);
    if (rest.length === 1) throw wrong(whole, "colon must be followed by more characters", rest);
    rest = rest.slice(1);
    if (!rest.startsWith(":")) continue;
    if (gap !== undefined) throw wrong(whole, "multiple :: in address", rest);
    gap = groups.length;
    rest = rest.slice(1);
  }
  if (rest !== "") throw wrong(whole, "trailing garbage after address", rest);
  return { groups, gap };
}

export function formatAddress({ bits, value }: Address): string {
  if (bits === 32) return [24n, 16n, 8n, 0n].map((shift) => String((value >> shift) & 0xffn)).join(".");
  const groups = Array.from({ length: 8 }, (_, i) => Number((value >> BigInt(112 - 16 * i)) & 0xffffn));
  const runs = groups.map((_, start) => ({ start, length: lengthOfZeros(groups, start) })).filter(({ length }) => length > 1);
  const longest = runs.sort((a, b) => b.length - a.length || a.start - b.start)[0];
  const hex = (part: readonly number[]): string => part.map((group) => group.toString(16)).join(":");
  return longest ? `${hex(groups.slice(0, longest.start))}::${hex(groups.slice(longest.start + longest.length))}` : hex(groups);
}

function lengthOfZeros(groups: readonly number[], start: number): number {
  const end = groups.findIndex((group, i) => i >= start && group !== 0);
  return (end < 0 ? groups.length : end) - start;
}

/** The first address of the prefix. */
export function masked({ address, length }: Prefix): Prefix {
  const rest = BigInt(address.bits - length);
  return { address: { ...address, value: (address.value >> rest) << rest }, length };
}

export function containsAddress({ address, length }: Prefix, other: Address): boolean {
  const rest = BigInt(address.bits - length);
  return address.bits === other.bits && address.value >> rest === other.value >> rest;
}
