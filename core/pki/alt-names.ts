/** The names a certificate holds for: DNS names, addresses, and the two kinds Kubernetes knows but never wants. RFC 5280 section 4.2.1.6. */
import { formatIp, ipBytes, ipFromBytes, parseIp } from "../net/cidr.ts";
import { type Asn1, Asn1Error, contextTag, readChildren, sequence, text, tlv } from "./asn1.ts";

export interface AltNames {
  readonly dnsNames: readonly string[];
  /** Canonical text. */
  readonly ipAddresses: readonly string[];
  readonly emailAddresses: readonly string[];
  readonly uris: readonly string[];
}

export const NO_ALT_NAMES: AltNames = Object.freeze({ dnsNames: [], ipAddresses: [], emailAddresses: [], uris: [] });

const EMAIL = contextTag(1, false);
const DNS = contextTag(2, false);
const URI = contextTag(6, false);
const IP = contextTag(7, false);

/** Sorts host names from addresses, and drops what is there twice. */
export function altNamesOf(hosts: Iterable<string>): AltNames {
  const dnsNames = new Set<string>();
  const ipAddresses = new Set<string>();
  for (const host of hosts) {
    const ip = parseIp(host);
    if (ip) ipAddresses.add(formatIp(ip));
    else if (host !== "") dnsNames.add(host);
  }
  return { ...NO_ALT_NAMES, dnsNames: [...dnsNames], ipAddresses: [...ipAddresses] };
}

export function isEmptyAltNames({ dnsNames, ipAddresses, emailAddresses, uris }: AltNames): boolean {
  return dnsNames.length + ipAddresses.length + emailAddresses.length + uris.length === 0;
}

/** Whether everything in `wanted` is in `have`. */
export function coversAltNames(have: AltNames, wanted: AltNames): boolean {
  return wanted.dnsNames.every((name) => have.dnsNames.includes(name)) && wanted.ipAddresses.every((ip) => have.ipAddresses.includes(ip));
}

export function encodeAltNames(names: AltNames): Uint8Array {
  return sequence(
    ...names.dnsNames.map((name) => text(DNS, name)),
    ...names.emailAddresses.map((name) => text(EMAIL, name)),
    ...names.ipAddresses.map((ip) => tlv(IP, ipBytes(parseIp(ip) ?? fail(`${ip} is no IP address`)))),
    ...names.uris.map((uri) => text(URI, uri)),
  );
}

function fail(message: string): never { throw new Asn1Error(message); }

export function decodeAltNames(value: Asn1): AltNames {
  const dnsNames: string[] = [], ipAddresses: string[] = [], emailAddresses: string[] = [], uris: string[] = [];
  for (const { tag, content } of readChildren(value)) {
    const latin = (): string => Buffer.from(content).toString("latin1");
    if (tag === DNS) dnsNames.push(latin());
    else if (tag === EMAIL) emailAddresses.push(latin());
    else if (tag === URI) uris.push(latin());
    else if (tag === IP) ipAddresses.push(formatIp(ipFromBytes(content) ?? fail("alternative name: bad IP address")));
  }
  return { dnsNames, ipAddresses, emailAddresses, uris };
}
