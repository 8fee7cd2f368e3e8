/**
 * The formats a schema may ask of a string: which there are, and what they accept. A format nobody knows is not checked; whoever writes it is warned.
 *
 * Source: kubernetes v1.36 apiextensions-apiserver/pkg/apiserver/validation/formats.go, kube-openapi/pkg/validation/strfmt
 */
import { parseDurationNs } from "../../../api/meta/duration.ts";
import { compileRegex } from "../../../cel/regex.ts";
import { isBase64, isDate, isDateTime, isRequestUri, uuidPattern } from "../../../cel/string-formats.ts";
import { parseAddress, parseRange } from "../../core/checks/ip.ts";

export interface FormatCheck {
  /** As it is written in the schema. */
  readonly name: string;
  accepts(text: string): boolean;
}

const HOSTNAME = compileRegex(String.raw`^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$`);
const HOSTNAME_BYTES_MAX = 255;
const LABEL_BYTES_MAX = 63;
const CREDIT_CARD = /^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11})$/;
const COLOR_PART = String.raw`\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*`;
const RGB_COLOR = new RegExp(String.raw`^rgb\(${COLOR_PART},${COLOR_PART},${COLOR_PART}\)$`);
const ATOM = String.raw`[A-Za-z0-9!#$%&'*+\-/=?^_\x60{|}~\x{80}-\x{10ffff}]+`;
const ADDRESS = String.raw`(?:${ATOM}(?:\.${ATOM})*|"(?:[^"\\]|\\.)*")@(?:${ATOM}(?:\.${ATOM})*|\[[^\[\]\\]*\])`;
const EMAIL = compileRegex(String.raw`^\s*(?:${ADDRESS}|(?:(?:${ATOM}|"(?:[^"\\]|\\.)*")[\s.]*)*<${ADDRESS}>)\s*$`);
const MAC = /^(?:[0-9a-fA-F]{2}([:-])(?:[0-9a-fA-F]{2}\1){4}[0-9a-fA-F]{2}|[0-9a-fA-F]{2}([:-])(?:[0-9a-fA-F]{2}\2){6}[0-9a-fA-F]{2}|[0-9a-fA-F]{2}([:-])(?:[0-9a-fA-F]{2}\3){18}[0-9a-fA-F]{2}|[0-9a-fA-F]{4}(?:\.[0-9a-fA-F]{4}){2}|[0-9a-fA-F]{4}(?:\.[0-9a-fA-F]{4}){3}|[0-9a-fA-F]{4}(?:\.[0-9a-fA-F]{4}){9}|[0-9a-fA-F]{12}|[0-9a-fA-F]{16}|[0-9a-fA-F]{40})$/;
const SHORT_NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const LONG_NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const LONG_NAME_BYTES_MAX = 253;
const SSN_LENGTH = 11;

/** By name, without dashes. */
const FORMATS: Readonly<Record<string, (text: string) => boolean>> = {
  bsonobjectid: (text) => /^[0-9a-fA-F]{24}$/.test(text),
  uri: isRequestUri, email: (text) => EMAIL.test(text), hostname: isHostname,
  ipv4: (text) => text.includes(".") && parseAddress(text) !== undefined, ipv6: (text) => text.includes(":") && parseAddress(text)?.strict === true,
  cidr: (text) => parseRange(text) !== undefined, mac: (text) => MAC.test(text),
  uuid: uuid("[0-9a-f]", "[0-9a-f]"), uuid3: uuid("3", "[0-9a-f]"), uuid4: uuid("4", "[89ab]"), uuid5: uuid("5", "[89ab]"),
  isbn: (text) => isIsbn10(text) || isIsbn13(text), isbn10: isIsbn10, isbn13: isIsbn13, creditcard: isCreditCard,
  ssn: (text) => text.length === SSN_LENGTH && /^\d{3}[- ]?\d{2}[- ]?\d{4}$/.test(text),
  hexcolor: (text) => /^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$/.test(text), rgbcolor: (text) => RGB_COLOR.test(text),
  byte: isBase64, password: () => true, date: isDate, datetime: isDateTime, duration: isDuration,
  k8sshortname: (text) => text.length <= LABEL_BYTES_MAX && SHORT_NAME.test(text), k8slongname: (text) => text.length <= LONG_NAME_BYTES_MAX && LONG_NAME.test(text),
};
const NUMBER_FORMATS: Readonly<Record<string, readonly string[]>> = { integer: ["int32", "int64"], number: ["float", "double"] };

/** Whether `format` means anything for values of `type`; "" is any. */
export function isKnownFormat(type: string, format: string): boolean {
  if (type === "" || type === "string") return Object.hasOwn(FORMATS, format.replaceAll("-", ""));
  return NUMBER_FORMATS[type]?.includes(format) ?? false;
}

/** Of strings; undefined if there is nothing to check. */
export function formatCheck(type: string, name: string): FormatCheck | undefined {
  if (name === "" || (type !== "" && type !== "string") || !isKnownFormat(type, name)) return undefined;
  return { name, accepts: FORMATS[name.replaceAll("-", "")]! };
}

function isHostname(text: string): boolean {
  return HOSTNAME.test(text) && Buffer.byteLength(text) <= HOSTNAME_BYTES_MAX && text.split(".").every((label) => Buffer.byteLength(label) <= LABEL_BYTES_MAX);
}

function uuid(version: string, variant: string): (text: string) => boolean {
  const pattern = uuidPattern(version, variant);
  return (text) => pattern.test(text);
}

function isIsbn10(text: string): boolean {
  const digits = text.replace(/[\s-]+/g, "");
  if (!/^(?:[0-9]{9}X|[0-9]{10})$/.test(digits)) return false;
  return [...digits].reduce((sum, digit, i) => sum + (i + 1) * (digit === "X" ? 10 : Number(digit)), 0) % 11 === 0;
}

function isIsbn13(text: string): boolean {
  const digits = text.replace(/[\s-]+/g, "");
  if (!/^[0-9]{13}$/.test(digits)) return false;
  return [...digits].reduce((sum, digit, i) => sum + Number(digit) * (i % 2 === 0 ? 1 : 3), 0) % 10 === 0;
}

function isCreditCard(text: string): boolean {
  const digits = text.replace(/[^0-9]+/g, "");
  if (!CREDIT_CARD.test(digits)) return false;
  const sum = [...digits].reverse().reduce((total, digit, i) => total + luhn(Number(digit), i % 2 === 1), 0);
  return sum % 10 === 0;
}

function luhn(digit: number, doubled: boolean): number {
  if (!doubled) return digit;
  return digit * 2 >= 10 ? ((digit * 2) % 10) + 1 : digit * 2;
}

const DURATION_UNITS: readonly (readonly string[])[] = [
  ["ns", "nano"], ["us", "µs", "micro"], ["ms", "milli"], ["s", "sec"], ["m", "min"], ["h", "hr", "hour"], ["d", "day"], ["w", "wk", "week"],
];

/** Go's, or Scala's: "2 days". */
function isDuration(text: string): boolean {
  try {
    parseDurationNs(text);
    return true;
  } catch {
    // then perhaps Scala's
    return [...text.matchAll(/(?<!\d)\d+\s*([A-Za-zµ]+)/g)].some(([, unit = ""]) => DURATION_UNITS.some((names) =>
      names.includes(unit.toLowerCase()) || unit.toLowerCase().startsWith(names.at(-1)!)));
  }
}
