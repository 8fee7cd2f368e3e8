/**
 * metadata.managedFields: who owns which fields, decoded to work with and encoded to store.
 *
 * A manager is known by name, operation and subresource; by Update also by the version it wrote in. Sets stay in their wire form
 * (field-set.ts), so what does not change is passed through as it is.
 *
 * Source: kubernetes v1.36 apimachinery/pkg/util/managedfields/internal/{managedfields,capmanagers,buildmanagerinfo}.go,
 *         apiserver/pkg/endpoints/handlers/create.go managerOrUserAgent
 */
import { byteLength } from "../../meta/byte-length.ts";
import { compareText } from "../../meta/compare-text.ts";
import { goQuote } from "../../meta/go-quote.ts";
import type { ManagedFieldsEntry } from "../../meta/object-meta.ts";
import { parseTime } from "../../meta/time.ts";
import { equalJson } from "../json-value.ts";
import { EMPTY_SET, type FieldSet, isEmptySet, parseFieldSet, unionAll } from "./field-set.ts";

export interface Manager {
  readonly name: string;
  readonly operation: "Apply" | "Update";
  readonly apiVersion: string;
  readonly subresource: string;
  readonly set: FieldSet;
  /** RFC 3339; undefined if the manager never changed the object. */
  readonly time: string | undefined;
  /** As it was stored, if nothing changed since. */
  readonly entry: ManagedFieldsEntry | undefined;
}

/** By identifier. */
export type Managers = ReadonlyMap<string, Manager>;

/** Update managers kept apart on one object; older ones are put together. kubernetes v1.36 internal/fieldmanager.go DefaultMaxUpdateManagers */
const UPDATE_MANAGERS_MAX = 10;
const ANCIENT_CHANGES = "ancient-changes";
export const BEFORE_FIRST_APPLY = "before-first-apply";
/** kubernetes v1.36 apimachinery/pkg/apis/meta/v1/validation FieldManagerMaxLength */
const NAME_BYTES_MAX = 128;

/** Printable, and as many bytes as characters. */
const PLAIN = /^[\x20-\x7e]*$/;

type Identity = Pick<Manager, "name" | "operation" | "apiVersion" | "subresource">;

/** In upstream's form: managers of one name are sorted by it, in errors and when the oldest are put together. */
export function identifierOf({ name, operation, apiVersion, subresource }: Identity): string {
  return JSON.stringify({ manager: name || undefined, operation, apiVersion: operation === "Apply" ? undefined : apiVersion || undefined, subresource: subresource || undefined });
}

/** Who a write is by: what the client says, or the program in its User-Agent. Empty for neither. */
export function managerName(fieldManager: string | undefined, userAgent: string | undefined): string {
  if (fieldManager !== undefined && fieldManager !== "") return fieldManager;
  const program = (userAgent ?? "").split("/", 1)[0]!;
  if (program.length <= NAME_BYTES_MAX && PLAIN.test(program)) return program;
  let name = "";
  for (const rune of program) {
    if (!/^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u.test(rune)) continue;
    if (byteLength(name + rune) > NAME_BYTES_MAX) break;
    name += rune;
  }
  return name;
}

/** Entries we stored ourselves: valid, and their sets canonical. */
export function managersStored(entries: readonly ManagedFieldsEntry[] | undefined): Managers {
  const managers = new Map<string, Manager>();
  for (const entry of entries ?? []) {
    const manager: Manager = {
      name: entry.manager ?? "", operation: entry.operation ?? "Update", apiVersion: entry.apiVersion ?? "", subresource: entry.subresource ?? "",
      set: entry.fieldsV1 ?? EMPTY_SET, time: entry.time, entry,
    };
    managers.set(identifierOf(manager), manager);
  }
  return managers;
}

/** Entries a client sent. Throws an Error in upstream's words. */
export function managersSent(entries: readonly ManagedFieldsEntry[]): Managers {
  const managers = new Map<string, Manager>();
  entries.forEach((entry, at) => {
    const { operation, fieldsType } = entry;
    if (operation !== "Apply" && operation !== "Update") throw new Error("operation must be `Apply` or `Update`");
    if (!entry.apiVersion) throw new Error("apiVersion must not be empty");
    if (!fieldsType) throw new Error(`missing fieldsType in managed fields entry ${at}`);
    if (fieldsType !== "FieldsV1") throw new Error(`invalid fieldsType ${goQuote(fieldsType)} in managed fields entry ${at}`);
    const manager: Manager = {
      name: entry.manager ?? "", operation, apiVersion: entry.apiVersion, subresource: entry.subresource ?? "",
      set: entry.fieldsV1 ? parseFieldSet(entry.fieldsV1) : EMPTY_SET, time: entry.time, entry: undefined,
    };
    managers.set(identifierOf(manager), manager);
  });
  return managers;
}

/** An empty list, or one empty entry: how a client asks to forget. */
export function asksToForget(entries: readonly ManagedFieldsEntry[] | undefined): boolean {
  if (entries === undefined || entries === null) return false;
  return entries.length === 0 || (entries.length === 1 && Object.values(entries[0] ?? {}).every((value) => value === undefined || value === ""));
}

/** The list to store; undefined for none. `stored` itself, if nothing changed. */
export function encodeManagers(managers: Managers, stored: readonly ManagedFieldsEntry[] | undefined): ManagedFieldsEntry[] | undefined {
  if (managers.size === 0) return undefined;
  const entries = [...managers.values()].sort(compareManagers).map(encodeManager);
  const same = stored !== undefined && stored.length === entries.length && entries.every((entry, at) => entry === stored[at] || equalJson(entry, stored[at]));
  return same ? (stored as ManagedFieldsEntry[]) : entries;
}

function encodeManager({ name, operation, apiVersion, subresource, set, time, entry }: Manager): ManagedFieldsEntry {
  if (entry !== undefined) return entry;
  return {
    ...(name === "" ? {} : { manager: name }), operation, apiVersion, ...(time === undefined ? {} : { time }),
    fieldsType: "FieldsV1", fieldsV1: set, ...(subresource === "" ? {} : { subresource }),
  };
}

function compareManagers(a: Manager, b: Manager): number {
  return compareText(a.operation, b.operation) || seconds(a) - seconds(b) || compareText(a.name, b.name) || compareText(a.apiVersion, b.apiVersion) ||
    compareText(a.subresource, b.subresource);
}

function seconds({ time }: Manager): number { return time === undefined ? 0 : Math.floor((parseTime(time) ?? 0) / 1000); }

/** A manager with another set, or undefined when that is empty: then it owns nothing and is gone. */
export function withSet(manager: Manager, set: FieldSet): Manager | undefined {
  if (set === manager.set) return isEmptySet(set) ? undefined : manager;
  return isEmptySet(set) ? undefined : { ...manager, set, entry: undefined };
}

/** At most ten Update managers: the oldest of a version become one. */
export function capUpdateManagers(managers: Managers): Managers {
  const updaters = [...managers].filter(([, manager]) => manager.operation === "Update");
  if (updaters.length <= UPDATE_MANAGERS_MAX) return managers;
  updaters.sort(([idA, a], [idB, b]) => seconds(a) - seconds(b) || compareText(idA, idB));
  const capped = new Map(managers);
  const firsts = new Map<string, string>();
  const gathered = new Map<string, FieldSet[]>();
  let count = updaters.length;
  for (const [id, manager] of updaters) {
    if (count <= UPDATE_MANAGERS_MAX) break;
    const { apiVersion } = manager;
    const first = firsts.get(apiVersion);
    if (first === undefined) { firsts.set(apiVersion, id); continue; }
    const bucketed: Identity = { name: ANCIENT_CHANGES, operation: "Update", apiVersion, subresource: "" };
    const bucketId = identifierOf(bucketed);
    const bucket = capped.get(bucketId) ?? capped.get(first);
    if (!capped.has(bucketId)) capped.delete(first);
    const sets = gathered.get(bucketId) ?? [bucket?.set ?? EMPTY_SET];
    gathered.set(bucketId, sets);
    sets.push(manager.set);
    capped.set(bucketId, { ...bucketed, set: EMPTY_SET, time: manager.time, entry: undefined });
    if (id !== bucketId) capped.delete(id);
    count--;
  }
  for (const [id, sets] of gathered) capped.set(id, { ...capped.get(id)!, set: unionAll(sets) });
  return capped;
}
