/** IP addresses and networks: ip(text).family(), cidr(text).containsIP(…). Source: kubernetes v1.36 apiserver/pkg/cel/library/{ip,cidr}.go */
import { goQuote } from "../../api/meta/go-quote.ts";
import { defineFunction, method, overload, type FunctionDeclaration, type Library } from "../check/declarations.ts";
import { BOOL, INT, STRING, opaque } from "../check/type.ts";
import { AddressError, containsAddress, formatAddress, masked, parseAddress, parsePrefix, type Address, type Prefix } from "../../api/meta/go-netip.ts";
import { EvalError, isError, noSuchOverload, Opaque, type Value } from "../value/value.ts";

const IP_TYPE = opaque("net.IP");
const CIDR_TYPE = opaque("net.CIDR");

class Ip extends Opaque {
  override readonly type = IP_TYPE;
  override readonly goType = "cel.IP";
  readonly address: Address;
  constructor(address: Address) { super(); this.address = address; }
  override get size(): number { return this.address.bits / 8; }
  override get key(): string { return `ip ${this.address.bits} ${this.address.value}`; }
  override equals(other: Value): boolean | EvalError { return other instanceof Ip ? other.key === this.key : noSuchOverload(other); }
}

class Cidr extends Opaque {
  override readonly type = CIDR_TYPE;
  override readonly goType = "cel.CIDR";
  readonly prefix: Prefix;
  constructor(prefix: Prefix) { super(); this.prefix = prefix; }
  override get size(): number { return Math.ceil(this.prefix.length / 8); }
  override get key(): string { return `cidr ${this.prefix.address.bits} ${this.prefix.address.value} ${this.prefix.length}`; }
  override equals(other: Value): boolean | EvalError { return other instanceof Cidr ? other.key === this.key : noSuchOverload(other); }
}

export const ipLibrary: Library = {
  functions: [
    defineFunction("ip", overload("string_to_ip", [STRING], IP_TYPE, ([text]) => ipOf(text as string)), method("cidr_ip", [CIDR_TYPE], IP_TYPE, ([cidr]) => new Ip(prefixOf(cidr).address))),
    defineFunction("isIP", overload("is_ip", [STRING], BOOL, ([text]) => !isError(ipOf(text as string)))),
    defineFunction("ip.isCanonical", overload("ip_is_canonical", [STRING], BOOL, ([text]) => isCanonical(text as string))),
    defineFunction("family", method("ip_family", [IP_TYPE], INT, ([ip]) => (addressOf(ip).bits === 32 ? 4n : 6n))),
    property("isUnspecified", "ip_is_unspecified", ({ value }) => value === 0n),
    property("isLoopback", "ip_is_loopback", isLoopback),
    property("isLinkLocalMulticast", "ip_is_link_local_multicast", isLinkLocalMulticast),
    property("isLinkLocalUnicast", "ip_is_link_local_unicast", isLinkLocalUnicast),
    property("isGlobalUnicast", "ip_is_global_unicast", isGlobalUnicast),
    defineFunction("string", overload("ip_to_string", [IP_TYPE], STRING, ([ip]) => formatAddress(addressOf(ip))), overload("cidr_to_string", [CIDR_TYPE], STRING, ([cidr]) => `${formatAddress(prefixOf(cidr).address)}/${prefixOf(cidr).length}`)),
    defineFunction("cidr", overload("string_to_cidr", [STRING], CIDR_TYPE, ([text]) => cidrOf(text as string))),
    defineFunction("isCIDR", overload("is_cidr", [STRING], BOOL, ([text]) => !isError(cidrOf(text as string)))),
    defineFunction("containsIP",
      method("cidr_contains_ip_string", [CIDR_TYPE, STRING], BOOL, ([cidr, text]) => containsIp(prefixOf(cidr), ipOf(text as string))),
      method("cidr_contains_ip_ip", [CIDR_TYPE, IP_TYPE], BOOL, ([cidr, ip]) => containsIp(prefixOf(cidr), ip!))),
    defineFunction("containsCIDR",
      method("cidr_contains_cidr_string", [CIDR_TYPE, STRING], BOOL, ([cidr, text]) => containsCidr(prefixOf(cidr), cidrOf(text as string))),
      method("cidr_contains_cidr", [CIDR_TYPE, CIDR_TYPE], BOOL, ([cidr, other]) => containsCidr(prefixOf(cidr), other!))),
    defineFunction("prefixLength", method("cidr_prefix_length", [CIDR_TYPE], INT, ([cidr]) => BigInt(prefixOf(cidr).length))),
    defineFunction("masked", method("cidr_masked", [CIDR_TYPE], CIDR_TYPE, ([cidr]) => new Cidr(masked(prefixOf(cidr))))),
  ],
  types: [IP_TYPE, CIDR_TYPE],
};

function addressOf(ip: Value | undefined): Address { return (ip as Ip).address; }
function prefixOf(cidr: Value | undefined): Prefix { return (cidr as Cidr).prefix; }

function ipOf(text: string): Value {
  return parsed(() => {
    const address = parseAddress(text);
    if (address.zone !== "") return new EvalError(`IP address ${goQuote(text)} with zone value is not allowed`);
    return address.mapped ? new EvalError(`IPv4-mapped IPv6 address ${goQuote(text)} is not allowed`) : new Ip(address);
  }, `IP Address ${goQuote(text)} parse error during conversion from string`);
}

function cidrOf(text: string): Value {
  const why = "network address parse error during conversion from string";
  return parsed(() => {
    const prefix = parsePrefix(text);
    return prefix.address.mapped ? new EvalError(`${why}: IPv4-mapped IPv6 address ${goQuote(text)} is not allowed`) : new Cidr(prefix);
  }, `${why}: ${why}`);
}

function parsed(read: () => Value, otherwise: string): Value {
  try {
    return read();
  } catch (error) {
    if (error instanceof AddressError) return new EvalError(`${otherwise}: ${error.message}`);
    throw error;
  }
}

function isCanonical(text: string): Value {
  const ip = ipOf(text);
  return isError(ip) ? ip : formatAddress(addressOf(ip)) === text;
}

function property(name: string, id: string, holds: (address: Address) => boolean): FunctionDeclaration {
  return defineFunction(name, method(id, [IP_TYPE], BOOL, ([ip]) => holds(addressOf(ip))));
}

function isLoopback({ bits, value }: Address): boolean { return bits === 32 ? value >> 24n === 127n : value === 1n; }
function isMulticast({ bits, value }: Address): boolean { return bits === 32 ? value >> 28n === 0xen : value >> 120n === 0xffn; }
function isLinkLocalMulticast({ bits, value }: Address): boolean { return bits === 32 ? value >> 8n === 0xe00000n : ((value >> 112n) & 0xff0fn) === 0xff02n; }
function isLinkLocalUnicast({ bits, value }: Address): boolean { return bits === 32 ? value >> 16n === 0xa9fen : value >> 118n === 0x3fan; }
function isGlobalUnicast(address: Address): boolean {
  const broadcast = address.bits === 32 && address.value === 0xffffffffn;
  return address.value !== 0n && !broadcast && !isLoopback(address) && !isMulticast(address) && !isLinkLocalUnicast(address);
}

/** Upstream does not say what is wrong with an address that is none. */
function containsIp(prefix: Prefix, ip: Value): Value { return isError(ip) ? noSuchOverload() : containsAddress(prefix, addressOf(ip)); }

function containsCidr(prefix: Prefix, other: Value): Value {
  if (isError(other)) return other;
  const inner = prefixOf(other);
  return prefix.length <= inner.length && containsAddress(prefix, inner.address);
}
