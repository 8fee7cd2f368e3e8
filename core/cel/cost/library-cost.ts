/**
 * What functions of Kubernetes' libraries cost: estimated before, counted after a call. By function, not by overload.
 *
 * Source: kubernetes v1.36 apiserver/pkg/cel/library/cost.go
 */
import type { Type } from "../check/type.ts";
import { NamedFormat } from "../library/format.ts";
import { List, Mapping, Opaque, sizeOf, type Value } from "../value/value.ts";
import type { CallEstimator, CostNode } from "./call-estimate.ts";
import { LIST_COST, REGEX_FACTOR, STRING_FACTOR, STRUCT_COST } from "./factors.ts";
import { fixed, FREE, LARGEST, product, sum, times, type Estimate } from "./size-estimate.ts";

export interface LibraryCost {
  readonly estimate: CallEstimator;
  /** Undefined: it costs what any call does. */
  readonly actual: (call: { readonly args: readonly Value[]; readonly result: Value; readonly overload: string }) => number | undefined;
}

const CHECK_COST = 350_000;
const SELECTOR_REQUIREMENTS = 0.5;
const FORMAT_NAME_MAX = 64n;
const NAME_PATTERN_LENGTH = 128;
const IP_SIZE: Estimate = { min: 4n, max: 16n };

/** Undefined: of no library, or none that says what it costs. */
export function libraryCost(name: string): LibraryCost | undefined { return Object.hasOwn(COSTS, name) ? COSTS[name] : undefined; }

const one: LibraryCost = always(1);
const traversal: LibraryCost = { estimate: estimateTraversal, actual: ({ args }) => (args.length > 0 ? traversalCost(args[0]!) : 0) };
/** Reads what it is given. */
const reading: LibraryCost = { estimate: ({ args: [text], sizeOf }) => text && { cost: times(sizeOf(text), STRING_FACTOR) }, actual: ({ args }) => reads(args[0]!) };
/** Makes of it something as long. */
const copying: LibraryCost = { estimate: ({ args: [text], sizeOf }) => text && { cost: times(sizeOf(text), STRING_FACTOR), size: sizeOf(text) }, actual: reading.actual };
const copyingTarget: LibraryCost = { estimate: ({ target, sizeOf }) => target && { cost: times(sizeOf(target), STRING_FACTOR), size: sizeOf(target) }, actual: reading.actual };
const readingTwice: LibraryCost = { estimate: ({ args: [text], sizeOf }) => text && { cost: times(sizeOf(text), 2 * STRING_FACTOR) }, actual: ({ args }) => Math.ceil(size(args[0]!) * 2 * STRING_FACTOR) };
const finding: LibraryCost = { estimate: estimateFinding, actual: ({ args }) => patternCost(size(args[0]!), size(args[1]!)) };
const selector: LibraryCost = { estimate: ({ args: [text], sizeOf }) => text && { cost: selectorCost(sizeOf(text)) }, actual: ({ args }) => Number(selectorCost(fixed(BigInt(size(args[1]!)))).max) };

const COSTS: Readonly<Record<string, LibraryCost>> = {
  check: always(CHECK_COST), fieldSelector: selector, labelSelector: selector,
  ...all(one, "serviceAccount", "path", "group", "resource", "subresource", "namespace", "name", "allowed", "reason", "error", "errored"),
  ...all(one, "masked", "prefixLength", "family", "isUnspecified", "isLoopback", "isLinkLocalMulticast", "isLinkLocalUnicast", "isGlobalUnicast", "format.named"),
  ...all(one, "sign", "asInteger", "isInteger", "asApproximateFloat", "isGreaterThan", "isLessThan", "compareTo", "add", "sub", "major", "minor", "patch"),
  ...all(one, "getScheme", "getHostname", "getHost", "getPort", "getEscapedPath", "getQuery"),
  ...all(traversal, "isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"),
  ...all(copying, "url", "jsonpatch.escapeKey"), ...all(copyingTarget, "lowerAscii", "upperAscii", "substring", "trim"),
  ...all(reading, "cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), "ip.isCanonical": readingTwice,
  ...all(finding, "find", "findAll"),
  ip: {
    estimate: (call) => (call.overload === "cidr_ip" ? { cost: fixed(1n) } : reading.estimate(call)),
    actual: (call) => (call.overload === "cidr_ip" ? 1 : reading.actual(call)),
  },
  replace: { estimate: estimateReplace, actual: ({ args }) => Math.ceil(size(args[0]!) * 2 * STRING_FACTOR) },
  split: { estimate: estimateSplit, actual: ({ args }) => Math.ceil(size(args[0]!) * 2 * STRING_FACTOR) },
  join: { estimate: estimateJoin, actual: ({ result }) => Math.ceil(size(result) * 2 * STRING_FACTOR) },
  containsIP: { estimate: (call) => containing(call, "cidr_contains_ip_string", FREE), actual: (call) => contained(call, "cidr_contains_ip_string", 0) },
  containsCIDR: {
    estimate: (call) => containing(call, "cidr_contains_cidr_string", sum(times(IP_SIZE, STRING_FACTOR), fixed(1n))),
    actual: (call) => contained(call, "cidr_contains_cidr_string", Math.ceil(size(call.args[0]!) * STRING_FACTOR) + 1),
  },
  validate: {
    estimate: ({ args: [text], sizeOf }) => text && { cost: times(times(sizeOf(text), STRING_FACTOR), NAME_PATTERN_LENGTH * REGEX_FACTOR) },
    actual: ({ args: [format, text] }) => (format instanceof NamedFormat ? patternCost(size(text!), format.patternLength) : undefined),
  },
  "_==_": { estimate: estimateEquality, actual: ({ args: [left] }) => (left instanceof Opaque ? 1 : undefined) },
};

function always(cost: number): LibraryCost { return { estimate: () => ({ cost: fixed(BigInt(cost)) }), actual: () => cost }; }
function all(cost: LibraryCost, ...names: readonly string[]): Readonly<Record<string, LibraryCost>> { return Object.fromEntries(names.map((name) => [name, cost])); }

function size(value: Value): number { return sizeOf(value) ?? 1; }
function reads(value: Value): number { return Math.ceil(size(value) * STRING_FACTOR); }
function patternCost(text: number, pattern: number): number { return Math.ceil((1 + text) * STRING_FACTOR) * Math.ceil(pattern * REGEX_FACTOR); }

function selectorCost(length: Estimate): Estimate {
  return sum(fixed(BigInt(LIST_COST)), times(length, STRING_FACTOR), times(times(length, SELECTOR_REQUIREMENTS), LIST_COST + STRUCT_COST));
}

/** Of everything in it. */
function traversalCost(value: Value): number {
  if (typeof value === "string") return Math.trunc(Buffer.byteLength(value) * STRING_FACTOR);
  if (value instanceof Uint8Array) return Math.trunc(value.length * STRING_FACTOR);
  if (value instanceof List) return [...value].reduce((total: number, element) => total + traversalCost(element), 0);
  if (value instanceof Mapping) return [...value.keys()].reduce((total: number, key) => total + traversalCost(key) + traversalCost(value.find(key)!), 0);
  return 1;
}

/** The elements of a list; undefined for what is none. */
function elementsOf({ path, type }: CostNode): CostNode | undefined {
  const element = type.parameters[0];
  return element && { path: path && [...path, "@items"], type: element, expr: undefined, size: undefined };
}

function estimateTraversal({ target, sizeOf }: Parameters<CallEstimator>[0]): ReturnType<CallEstimator> {
  if (!target) return undefined;
  const elements = elementsOf(target);
  if (!elements) return { cost: times(sizeOf(target), STRING_FACTOR) };
  const isText = elements.type.kind === "string" || elements.type.kind === "bytes";
  return { cost: product(sizeOf(target), sum(fixed(1n), isText ? times(sizeOf(elements), STRING_FACTOR) : FREE)) };
}

function estimateFinding({ target, args: [pattern], sizeOf }: Parameters<CallEstimator>[0]): ReturnType<CallEstimator> {
  if (!target || !pattern) return undefined;
  const text = sizeOf(target);
  return { cost: product(times(sum(text, fixed(1n)), STRING_FACTOR), times(sizeOf(pattern), REGEX_FACTOR)), size: { min: 0n, max: text.max } };
}

function estimateReplace({ target, args: [old, by], sizeOf }: Parameters<CallEstimator>[0]): ReturnType<CallEstimator> {
  if (!target || !old || !by) return undefined;
  const [text, from, to] = [sizeOf(target), sizeOf(old), sizeOf(by)];
  const most = replacements(text.max, { from: from.min, grows: to.max > from.min });
  const least = replacements(text.min, { from: from.max, grows: from.max > to.min });
  const counts = { min: least.count, max: most.count };
  return { cost: times(text, 2 * STRING_FACTOR), size: sum(product(counts, to), { min: least.kept, max: most.kept }) };
}

/** How often it can be replaced so that the text changes its length the way that is asked for, and what is kept of it. */
function replacements(length: bigint, { from, grows }: { readonly from: bigint; readonly grows: boolean }): { readonly count: bigint; readonly kept: bigint } {
  if (from === 0n) return { count: length < LARGEST ? length + 1n : length, kept: length };
  if (!grows) return { count: 0n, kept: length };
  return { count: BigInt(Math.ceil(Number(length) / Number(from))), kept: 0n };
}

function estimateSplit({ target, args, sizeOf }: Parameters<CallEstimator>[0]): ReturnType<CallEstimator> {
  if (!target) return undefined;
  const text = sizeOf(target);
  const limit = args[1]?.expr;
  const parts = limit?.kind === "literal" && typeof limit.value === "bigint" ? BigInt.asUintN(64, limit.value) : text.max;
  return { cost: times(text, 2 * STRING_FACTOR), size: { min: 0n, max: parts } };
}

function estimateJoin({ target, args: [separator], sizeOf }: Parameters<CallEstimator>[0]): ReturnType<CallEstimator> {
  if (!target) return undefined;
  const list = sizeOf(target);
  const elements = elementsOf(target);
  const words = elements ? product(list, sizeOf(elements)) : FREE;
  const between = { min: list.min > 0n ? list.min - 1n : 0n, max: list.max > 0n ? list.max - 1n : 0n };
  const length = separator ? sum(words, product(sizeOf(separator), between)) : words;
  return { cost: times(length, STRING_FACTOR), size: length };
}

function containing({ args: [other], sizeOf, overload }: Parameters<CallEstimator>[0], ofText: string, more: Estimate): ReturnType<CallEstimator> {
  if (!other) return undefined;
  return { cost: sum(times(sum(IP_SIZE, IP_SIZE), STRING_FACTOR), more, overload === ofText ? times(sizeOf(other), STRING_FACTOR) : FREE) };
}

function contained({ args: [cidr, other], overload }: { readonly args: readonly Value[]; readonly overload: string }, ofText: string, more: number): number {
  return Math.ceil(2 * size(cidr!) * STRING_FACTOR) + more + (overload === ofText ? reads(other!) : 0);
}

function estimateEquality({ args: [left, right] }: Parameters<CallEstimator>[0]): ReturnType<CallEstimator> {
  if (!left || !right || left.type.name !== right.type.name) return undefined;
  const cost = equalityCost(left.type, right);
  return cost && { cost };
}

function equalityCost({ kind, name }: Type, right: CostNode): Estimate | undefined {
  if (kind === "opaque") return name === "net.IP" || name === "net.CIDR" ? fixed(1n) : undefined;
  if (kind !== "struct") return undefined;
  if (name === "kubernetes.NamedFormat") return times({ min: 1n, max: FORMAT_NAME_MAX }, STRING_FACTOR);
  if (name === "kubernetes.URL") return times({ min: 1n, max: right.size?.max ?? 1n }, STRING_FACTOR);
  return name === "kubernetes.Quantity" || name === "kubernetes.Semver" || name.startsWith("kubernetes.authorization.") ? fixed(1n) : undefined;
}
