/**
 * JSON Patch (RFC 6902), with the liberties clients of the API rely on: negative indices count from the end, `replace` of a key that is
 * not there adds it, `test` for null passes where nothing is.
 *
 * The document is not changed; what no operation touches is shared with the result. Maps on the way of an operation have their keys in alphabetical order, which arbitrary JSON in an
 * object is stored in.
 * Throws a StatusError: 400 for what is no patch, 413 for too many operations, 422 if it does not apply (the `cause` says why, the answer does not).
 *
 * Source: kubernetes v1.36 apiserver/pkg/endpoints/handlers/patch.go, gopkg.in/evanphx/json-patch.v4
 */
import { jsonNodeOf, type JsonNode } from "../codec/json-document.ts";
import { jsonText } from "../codec/json.ts";
import { goQuote } from "../meta/go-quote.ts";
import { badRequest, requestEntityTooLarge, statusError } from "../meta/status-error.ts";
import { isMap, type JsonMap, jsonKindOf, put, valueAt } from "./json-value.ts";

/** kubernetes v1.36 apiserver/pkg/endpoints/handlers/patch.go maxJSONPatchOperations */
export const JSON_PATCH_OPERATIONS_MAX = 10_000;

/** kubernetes v1.36 apiserver/pkg/server/config.go JSONPatchMaxCopyBytes */
const COPIED_BYTES_MAX = 3 * 1024 * 1024;

/** What Go prints for an error that is none. */
const GO_NO_ERROR = "%!w(<nil>)";

type Container = JsonMap | readonly unknown[];

/**
 * `lax`: nobody has looked at the patch before, who wants to be told of nothing. `written`: the patch as it was sent, of which tests take the very words. `computed`: nobody has written it,
 * and of what is computed a null is the word "null", which no value is: a test for one never passes.
 */
export function applyJsonPatch(document: JsonMap, patch: unknown, { lax = false, written, computed = false }: { readonly lax?: boolean; readonly written?: JsonNode | undefined; readonly computed?: boolean } = {}): JsonMap {
  const operations = decodeOperations(patch, lax);
  if (operations.length > JSON_PATCH_OPERATIONS_MAX) {
    throw requestEntityTooLarge(`The allowed maximum operations in a JSON patch is ${JSON_PATCH_OPERATIONS_MAX}, got ${operations.length}`);
  }
  try {
    const draft = new Draft(document, computed);
    operations.forEach((operation, at) => draft.apply(operation, written?.kind === "array" ? valueIn(written.items[at]!) : undefined));
    return draft.finish() as JsonMap;
  } catch (cause) {
    if (!(cause instanceof PatchError)) throw cause;
    throw statusError({ code: 422, reason: "Invalid", message: "the server rejected our request due to an error in our request", details: {}, cause });
  }
}

function decodeOperations(patch: unknown, lax: boolean): readonly JsonMap[] {
  const refusal = (value: unknown, strict: string, own: string): Error => badRequest(`${lax ? "" : "error decoding patch: "}json: cannot unmarshal ${jsonKindOf(value)} into Go value of type ${lax ? own : strict}`);
  if (patch === null) return [];
  if (!Array.isArray(patch)) throw refusal(patch, "[]handlers.jsonPatchOp", "jsonpatch.Patch");
  return patch.map((operation: unknown) => {
    if (operation === null) return {};
    if (!isMap(operation)) throw refusal(operation, "handlers.jsonPatchOp", "jsonpatch.Operation");
    return operation;
  });
}

class PatchError extends Error { override readonly name = "PatchError"; }

/** The document under the patch. Containers are copied the first time an operation changes them. */
class Draft {
  document: Container;
  readonly #computed: boolean;
  /** Containers that are ours to change. */
  readonly #own = new Set<Container>();
  /** Copies of those that were looked into. */
  readonly #opened = new Set<Container>();
  #copiedBytes = 0;

  constructor(document: Container, computed: boolean) {
    this.document = document;
    this.#computed = computed;
  }

  apply(operation: JsonMap, written: JsonNode | undefined): void {
    const kind = operation["op"];
    switch (kind) {
      case "add": this.#add(pathOf(operation, "path"), valueAt(operation, "value") ?? null); break;
      case "remove": this.#remove(pathOf(operation, "path")); break;
      case "replace": this.#replace(pathOf(operation, "path"), valueAt(operation, "value") ?? null); break;
      case "move": this.#move(pathOf(operation, "from"), operation); break;
      case "copy": this.#copy(pathOf(operation, "from"), operation); break;
      case "test": this.#test(pathOf(operation, "path"), this.#computed && operation["value"] === null ? undefined : written ?? jsonNodeOf(valueAt(operation, "value") ?? null)); break;
      default: throw new PatchError(`Unexpected kind: ${typeof kind === "string" ? kind : "unknown"}`);
    }
  }

  /** The document, when there are no more operations. */
  finish(): Container {
    for (const container of this.#opened) if (!Array.isArray(container)) sortKeys(container as Record<string, unknown>);
    return this.document;
  }

  #move(from: string, operation: JsonMap): void {
    const value = this.#get(from, "move operation does not apply: doc is missing from path", `error in move for path: '${lastOf(from)}'`);
    this.#remove(from, "move");
    this.#put(pathOf(operation, "path"), value, "move");
  }

  #copy(from: string, operation: JsonMap): void {
    const value = this.#get(from, "copy operation does not apply: doc is missing from path", `error in copy for from: '${from}'`);
    this.#share(value);
    this.#put(pathOf(operation, "path"), value, "copy");
  }

  /** `refusal`: what is said where the way there is missing; `where`: with what is said of an index. */
  #get(path: string, refusal: string, where: string): unknown {
    const found = this.#find(path);
    if (!found) throw new PatchError(`${refusal}: ${path}: missing value`);
    const { container, key } = found;
    return Array.isArray(container) ? container[indexIn(container, key, where)] : valueAt(container as JsonMap, key) ?? null;
  }

  #add(path: string, value: unknown): void { this.#put(path, value, "add"); }

  #put(path: string, value: unknown, verb: "add" | "move" | "copy"): void {
    const found = this.#find(path);
    if (!found) throw new PatchError(`${verb} operation does not apply: doc is missing ${verb === "add" ? `path: "${path}"` : `destination path: ${path}`}: missing value`);
    const { container, key } = found;
    if (Array.isArray(container)) container.splice(key === "-" ? container.length : indexIn(container, key, verb === "copy" ? "error while adding value during copy" : `error in ${verb} for path: '${path}'`, 1), 0, value);
    else put(container as Record<string, unknown>, key, value);
  }

  #remove(path: string, verb: "remove" | "move" = "remove"): void {
    const found = this.#find(path);
    if (!found) throw new PatchError(`remove operation does not apply: doc is missing path: "${path}": missing value`);
    const { container, key } = found;
    const where = `error in ${verb} for path: '${verb === "move" ? key : path}'`;
    if (Array.isArray(container)) { container.splice(indexIn(container, key, where), 1); return; }
    if (!Object.hasOwn(container, key)) throw new PatchError(`${where}: Unable to remove nonexistent key: ${key}: missing value`);
    delete (container as Record<string, unknown>)[key];
  }

  #replace(path: string, value: unknown): void {
    if (path === "") {
      if (typeof value !== "object" || value === null) throw new PatchError(`replace operation value must be object or array: ${GO_NO_ERROR}`);
      this.document = value as Container;
      return;
    }
    const found = this.#find(path);
    if (!found) throw new PatchError(`replace operation does not apply: doc is missing path: ${path}: missing value`);
    const { container, key } = found;
    if (!Array.isArray(container)) { put(container as Record<string, unknown>, key, value); return; }
    const index = arrayIndex(container, key);
    if (index === undefined) throw new PatchError(`replace operation does not apply: doc is missing key: ${path}: missing value`);
    container[index] = value;
  }

  /** `expected` is missing: nothing is as expected. */
  #test(path: string, expected: JsonNode | undefined): void {
    const actual = path === "" ? this.document : this.#get(path, "test operation does not apply: is missing path", `error in test for path: '${path}'`);
    if (!expected || !readsAs(actual, expected)) throw new PatchError(`testing value ${path} failed: test failed`);
  }

  /** The container a path ends in and the key within, undefined if the way there is missing. Makes all of the way ours. */
  #find(path: string): { readonly container: Container; readonly key: string } | undefined {
    const parts = path.split("/").map(decodePart);
    if (parts.length < 2) return undefined;
    this.document = this.#owned(this.document);
    let container = this.document;
    for (const part of parts.slice(1, -1)) {
      const next = Array.isArray(container) ? container[arrayIndex(container, part) ?? -1] : valueAt(container as JsonMap, part);
      if (typeof next !== "object" || next === null) return undefined;
      const child = this.#owned(next as Container);
      if (child !== next) {
        if (Array.isArray(container)) container[arrayIndex(container, part)!] = child;
        else put(container as Record<string, unknown>, part, child);
      }
      container = child;
    }
    return { container, key: parts.at(-1)! };
  }

  #owned(container: Container): Container {
    if (this.#own.has(container)) return container;
    const copy: Container = Array.isArray(container) ? [...container] : { ...container };
    this.#own.add(copy);
    this.#opened.add(copy);
    return copy;
  }

  /** A value that will stand in two places must be copied before either is changed. Copies of copies grow fast: counts what they add to the document. */
  #share(value: unknown): void {
    if (typeof value !== "object" || value === null) { this.#copiedBytes += typeof value === "string" ? value.length + 2 : String(value).length; return; }
    this.#own.delete(value as Container);
    this.#copiedBytes += 2;
    for (const key of Object.keys(value)) {
      this.#copiedBytes += Array.isArray(value) ? 1 : key.length + 4;
      if (this.#copiedBytes > COPIED_BYTES_MAX) {
        throw new PatchError(`Unable to complete the copy, the accumulated size increase of copy is ${this.#copiedBytes}, exceeding the limit ${COPIED_BYTES_MAX}`);
      }
      this.#share((value as JsonMap)[key]);
    }
  }
}

function valueIn(operation: JsonNode): JsonNode | undefined { return operation.kind === "object" ? lastEntries(operation.entries).get("value") : undefined; }

function lastEntries(entries: readonly (readonly [string, JsonNode])[]): ReadonlyMap<string, JsonNode> { return new Map(entries); }

/** Whether a value's JSON is what was written, but for spaces and the order of keys: 1.0 is not 1, and what the server escapes is to be escaped in the same way. */
function readsAs(value: unknown, written: JsonNode): boolean {
  switch (written.kind) {
    case "object": {
      if (!isMap(value)) return false;
      const entries = lastEntries(written.entries);
      const keys = Object.keys(value).filter((key) => value[key] !== undefined);
      return keys.length === entries.size && keys.every((key) => entries.has(key) && readsAs(value[key], entries.get(key)!));
    }
    case "array": return Array.isArray(value) && value.length === written.items.length && written.items.every((item, at) => readsAs(value[at], item));
    case "string": return typeof value === "string" && jsonText(value) === `"${written.written ?? written.value}"`;
    case "number": return (typeof value === "number" || typeof value === "bigint") && jsonText(value) === written.text;
    case "bool": return value === written.value;
    case "null": return value === null;
  }
}

function sortKeys(map: Record<string, unknown>): void {
  const sorted = Object.entries(map).sort(([a], [b]) => (a < b ? -1 : 1));
  for (const [key] of sorted) delete map[key];
  for (const [key, value] of sorted) put(map, key, value);
}

function pathOf(operation: JsonMap, field: "path" | "from"): string {
  const path = operation[field];
  if (typeof path === "string") return path;
  const op = String(operation["op"]), isLost = op === "add" || op === "remove" || (op === "copy" && field === "path"); // of the others it is told what was wrong
  const why = isLost ? "" : path === undefined || path === null ? `operation${field === "from" ? "," : ""} missing ${field} field: ` : `json: cannot unmarshal ${jsonKindOf(path)} into Go value of type string`;
  throw new PatchError(`${op} operation failed to decode ${field}: ${why}${why.startsWith("json") ? "" : "missing value"}`);
}

function decodePart(part: string): string { return part.includes("~") ? part.replace(/~[01]/g, (escape) => (escape === "~1" ? "/" : "~")) : part; }

function lastOf(path: string): string { return decodePart(path.slice(path.lastIndexOf("/") + 1)); }

/** `extra`: places after the last item that are allowed. */
function indexIn(array: readonly unknown[], key: string, where: string, extra = 0): number {
  const index = arrayIndex(array, key, extra);
  if (index !== undefined) return index;
  if (/^[+-]?\d+$/.test(key)) throw new PatchError(`${where}: Unable to access invalid index: ${Number(key)}: invalid index referenced`);
  throw new PatchError(`${where}: ${extra > 0 ? `value was not a proper array index: '${key}': ` : ""}strconv.Atoi: parsing ${goQuote(key)}: invalid syntax`);
}

function arrayIndex(array: readonly unknown[], key: string, extra = 0): number | undefined {
  if (!/^[+-]?\d+$/.test(key)) return undefined;
  const length = array.length + extra;
  const index = Number(key) < 0 ? Number(key) + length : Number(key);
  return index >= 0 && index < length ? index : undefined;
}
