/** Names in resource.k8s.io: of drivers, pools, devices, attributes; and lists and maps of things that have one. Source: kubernetes v1.36 pkg/apis/resource/validation/validation.go */
import { stringify } from "../../api/codec/json.ts";
import { child, duplicate, type FieldError, index, invalid, key, required, tooLong, tooMany } from "../../api/meta/field-error.ts";
import { repeats } from "../../api/meta/linear.ts";
import { byteLength } from "../../api/meta/byte-length.ts";
import { goQuote } from "../../api/meta/go-quote.ts";
import { cIdentifier, dns1123Subdomain } from "../../api/meta/names.ts";
import { isDns1123Label, problems } from "../core/checks/values.ts";
import { csiDriverName } from "../core/pod/validation/volume-sources.ts";

const POOL_BYTES_MAX = 253;
const ID_BYTES_MAX = 32;
const DOMAIN_BYTES_MAX = 63;
const QUALIFIED_BYTES_MAX = DOMAIN_BYTES_MAX + 1 + ID_BYTES_MAX;
const JSON_BYTES_MAX = 10 * 1024;
const UUID_BYTES = 36;
const UUID = /^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/;

export const driverName: (path: string, name: string | undefined) => Iterable<FieldError> = csiDriverName;

/** Segments separated by slashes. */
export function* poolName(path: string, name: string | undefined): Iterable<FieldError> {
  if (!name) { yield required(path); return; }
  if (byteLength(name) > POOL_BYTES_MAX) yield tooLong(path, POOL_BYTES_MAX);
  for (const part of name.split("/")) yield* problems(path, part, dns1123Subdomain(part));
}

/** `model`, or `vendor.example.com/model`. */
export function* qualifiedDeviceName(path: string, name: string): Iterable<FieldError> {
  const parts = name.split("/");
  if (parts.length === 1) { yield* identifier(path, name); return; }
  if (parts.length > 2) return; // as upstream: nothing is said about more slashes
  const [domain, id] = parts as [string, string];
  if (domain === "") yield invalid(path, "", "the domain must not be empty");
  else yield* driverName(path, domain);
  if (id === "") yield invalid(path, "", "the name must not be empty");
  else yield* identifier(path, id);
}

export function* fullyQualifiedDeviceName(path: string, name: string): Iterable<FieldError> {
  yield* qualifiedDeviceName(path, name);
  if (!name.includes("/")) yield invalid(path, name, "a fully qualified name must be a domain and a name separated by a slash");
}

function* identifier(path: string, id: string): Iterable<FieldError> {
  if (byteLength(id) > ID_BYTES_MAX) yield tooLong(path, ID_BYTES_MAX);
  yield* problems(path, id, cIdentifier(id));
}

export function* shareId(path: string, id: string | undefined): Iterable<FieldError> {
  if (id === undefined) return;
  const problem = uuidProblem(id);
  if (problem !== undefined) yield invalid(path, id, `error validating uid: ${problem}`);
  else if (byteLength(id) !== UUID_BYTES || id !== id.toLowerCase()) yield invalid(path, id, "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters");
}

/** In Go's words, which knows four ways to write one. Source: github.com/google/uuid Validate */
function uuidProblem(id: string): string | undefined {
  const [prefix, malformed] = ["urn:uuid:", "invalid UUID format"];
  switch (byteLength(id)) {
    case UUID_BYTES: return UUID.test(id) ? undefined : malformed;
    case UUID_BYTES + prefix.length:
      if (id.slice(0, prefix.length).toLowerCase() !== prefix) return `invalid urn prefix: ${goQuote(id.slice(0, prefix.length))}`;
      return UUID.test(id.slice(prefix.length)) ? undefined : malformed;
    case UUID_BYTES + 2:
      if (!id.startsWith("{") || !id.endsWith("}")) return "invalid bracketed UUID format";
      return UUID.test(id.slice(1, -1)) ? undefined : malformed;
    case UUID_BYTES - 4: return /^[0-9a-fA-F]{32}$/.test(id) ? undefined : malformed;
    default: return `invalid UUID length: ${byteLength(id)}`;
  }
}

interface ListRules<T> {
  /** Undefined: as many as you like. */
  readonly max?: number | undefined;
  /** What may be there once. */
  readonly keyOf?: ((item: T) => string) | undefined;
  /** How a second one is shown; default: by its key. */
  readonly shown?: (item: T) => unknown;
  readonly check: (path: string, item: T) => Iterable<FieldError>;
}

/** Too many are not looked at one by one. */
export function* listOf<T>(path: string, list: readonly T[] | undefined | null, { max, keyOf, check, shown = keyOf }: ListRules<T>): Iterable<FieldError> {
  const items = list ?? [];
  if (max !== undefined && items.length > max) { yield tooMany(path, items.length, max); return; }
  for (const [i, item] of items.entries()) yield* check(index(path, i), item);
  if (!keyOf) return;
  const isRepeated = repeats<string>();
  for (const [i, item] of items.entries()) if (isRepeated(keyOf(item))) yield duplicate(index(path, i), shown!(item));
}

export function* counters(path: string, given: Readonly<Record<string, unknown>> | undefined, max: number): Iterable<FieldError> {
  const names = Object.keys(given ?? {});
  if (names.length === 0) yield required(path);
  else if (names.length > max) yield tooMany(path, names.length, max);
  else for (const name of names) yield* isDns1123Label(path, name);
}

/** The path of a value in a map; names that are far too long are shortened in the middle. */
export function keyPath(path: string, name: string): string {
  if (name.length <= QUALIFIED_BYTES_MAX) return key(path, name);
  const remaining = QUALIFIED_BYTES_MAX - 3;
  return key(path, `${name.slice(0, Math.floor((remaining + 1) / 2))}...${name.slice(name.length - Math.floor(remaining / 2))}`);
}

/** What only a driver understands: an object, and not too big. */
export function* opaqueObject(path: string, value: unknown): Iterable<FieldError> {
  if (value === undefined || value === null) yield required(path);
  else if (byteLength(stringify(value)) > JSON_BYTES_MAX) yield tooLong(path, JSON_BYTES_MAX);
  else if (typeof value !== "object" || Array.isArray(value)) yield invalid(path, "<value omitted>", "must be a valid JSON object");
}

export function* opaqueConfiguration(path: string, opaque: { readonly driver: string; readonly parameters: unknown } | undefined): Iterable<FieldError> {
  if (!opaque) { yield required(child(path, "opaque")); return; }
  yield* driverName(child(path, "opaque", "driver"), opaque.driver);
  yield* opaqueObject(child(path, "opaque", "parameters"), opaque.parameters);
}
