/** What a write is refused for before it comes to storage: an object that is not valid, or not the one that was meant. */
import { dns1123Subdomain, pathSegmentName } from "../../api/meta/names.ts";
import { type FieldError, invalid as invalidField } from "../../api/meta/field-error.ts";
import { parseApiVersion } from "../../api/meta/gvk.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { conflict, invalid, statusError } from "../../api/meta/status-error.ts";
import { builtInFacts, type Type } from "../../api/schema/facts.ts";
import type { DeleteOptions } from "./deletion.ts";
import { etcdKey } from "./etcd-key.ts";
import { validateMeta } from "./object-meta.ts";
import type { WriteContext } from "./resource.ts";
import type { Target } from "./target.ts";

const UINT64_MAX = 2n ** 64n - 1n;
const UINT64_DIGITS_MAX = 20;

export type Refusing = Pick<Target, "resource" | "definition" | "groupResource">;

export function metaErrors({ resource, definition }: Refusing, object: Readonly<ApiObject>, context: WriteContext): Iterable<FieldError> {
  const { validateName = dns1123Subdomain, anyFinalizer, anyBase, anyMeta } = definition;
  if (anyMeta?.(context)) return validateMeta(object, resource.namespaced, pathSegmentName, { anyFinalizer: true });
  return validateMeta(object, resource.namespaced, validateName, { anyFinalizer, validateBase: anyBase ? pathSegmentName : undefined });
}

/** What upstream asks of all objects, before it comes to their kinds. */
export function metaErrorsOfAll({ resource }: Refusing, object: Readonly<ApiObject>): Iterable<FieldError> { return validateMeta(object, resource.namespaced, pathSegmentName, { anyFinalizer: true }); }

/** Errors found in one object. More than are ever told: some validations find one for each pair of what repeats. */
const ERRORS_MAX = 100_000;

/** No more of them are looked for than that. */
export function gathered(errors: Iterable<FieldError> | undefined): readonly FieldError[] {
  const found: FieldError[] = [];
  for (const error of errors ?? []) if (found.push(error) >= ERRORS_MAX) break;
  return found;
}

/** Throws 422 if anything is wrong: of the kind that the object says it is. `sent`: see WriteOptions. */
export function refuseInvalid<T extends ApiObject>({ resource: { group: own, kind, form } }: Refusing, object: T, check: (object: T) => readonly FieldError[], sent?: () => object | undefined): void {
  const errors = check(object);
  if (errors.length === 0) return;
  const group = form ? parseApiVersion(object.apiVersion).group : own, body = sent?.();
  throw invalid({ group, kind: object.kind || kind }, object.metadata.name ?? "" /* a body may have none */, body ? shownAsSent(errors, object, check, body) : errors);
}

/** The same errors, showing lists and maps that were sent empty as that, not as none: so they are in upstream's memory. */
function shownAsSent<T extends ApiObject>(errors: readonly FieldError[], object: T, check: (object: T) => readonly FieldError[], sent: object): readonly FieldError[] {
  const whole = withEmpty(builtInFacts.typeOf({ ...parseApiVersion(object.apiVersion), kind: object.kind }), object, sent) as T, again = whole === object ? errors : check(whole);
  const isSame = again.length === errors.length && again.every(({ type, field }, i) => type === errors[i]!.type && field === errors[i]!.field);
  return (isSame ? again : errors).map((error) => asSent(error, sent));
}

type Fields = Readonly<Record<string, unknown>>;

/** What upstream has no types of its own for is shown as JSON has it. */
const META = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/** `value` with the lists and maps that are empty in `sent` and not there in it; `value` itself if there are none. */
function withEmpty(type: Type | undefined, value: unknown, sent: unknown): unknown {
  if (typeof value !== "object" || value === null || typeof sent !== "object" || sent === null) return value;
  if (type?.kind === "list") {
    if (!Array.isArray(value) || !Array.isArray(sent) || sent.length !== value.length) return value;
    const items = value.map((item, i) => withEmpty(type.items, item, sent[i]));
    return items.some((item, i) => item !== value[i]) ? items : value;
  }
  if (type?.kind !== "map" && (type?.kind !== "struct" || type.name.startsWith(META))) return value;
  const changed = Object.entries(sent).flatMap(([name, part]: [string, unknown]): [string, unknown][] => {
    const below = type.kind === "map" ? type.values : type.field(name)?.type, own = (value as Fields)[name] ?? undefined;
    const full = own === undefined && isEmpty(part) && (below?.kind === "list" || below?.kind === "map") ? part : withEmpty(below, own, part);
    return full === own ? [] : [[name, full]];
  });
  return changed.length === 0 ? value : { ...value, ...Object.fromEntries(changed) };
}

function isEmpty(value: unknown): boolean { return typeof value === "object" && value !== null && Object.keys(value).length === 0; }

function asSent(error: FieldError, sent: object): FieldError {
  if (error.badValue !== undefined && error.badValue !== null) return error;
  let at: unknown = sent;
  for (const [, name, inner] of (error.shows ?? error.field).matchAll(/([^.[\]]+)|\[([^\]]*)\]/g)) {
    const step = name ?? inner!;
    at = typeof at === "object" && at !== null && Object.hasOwn(at, step) ? (at as Readonly<Record<string, unknown>>)[step] : undefined;
  }
  return isEmpty(at) ? { ...error, badValue: at } : error;
}

/** Whether the client named the version it replaces; refuses it when that is not the current one. */
export function namesVersion({ resource, definition, groupResource }: Refusing, next: Readonly<ApiObject>, old: Readonly<ApiObject>, { isReplacement = false }: { readonly isReplacement?: boolean }): boolean {
  const { resourceVersion } = next.metadata;
  if (!resourceVersion || resourceVersion === "0") {
    if ((isReplacement || resourceVersion === "0") && definition.unconditionalUpdate === false)
      throw invalid({ group: resource.group, kind: resource.plural }, old.metadata.name, [invalidField("metadata.resourceVersion", 0, "must be specified for an update")]);
    return false;
  }
  refuseUnread(resourceVersion);
  if (resourceVersion !== old.metadata.resourceVersion) throw conflict(groupResource, old.metadata.name);
  return true;
}

/** Throws 500 for the version of a replacement that is none. */
export function refuseUnread(resourceVersion: string | undefined): void {
  const why = resourceVersion ? versionProblem(resourceVersion) : undefined;
  if (why !== undefined) throw statusError({ code: 500, reason: "", message: `strconv.ParseUint: parsing ${JSON.stringify(resourceVersion)}: ${why}` });
}

/** In Go's words, why a text is no version. */
function versionProblem(text: string): string | undefined {
  if (!/^\d+$/.test(text)) return "invalid syntax";
  return BigInt(text.slice(0, UINT64_DIGITS_MAX + 1)) > UINT64_MAX ? "value out of range" : undefined;
}

/** Throws 500 for an object to be created that has a version already; a text that is none is let pass, as upstream does. */
export function refuseVersion(resourceVersion: string | undefined): void {
  if (!resourceVersion || versionProblem(resourceVersion) !== undefined || BigInt(resourceVersion) === 0n) return;
  throw statusError({ code: 500, reason: "", message: "resourceVersion should not be set on objects to be created" });
}

interface Meant {
  readonly object: { readonly metadata: Pick<ApiObject["metadata"], "namespace" | "name" | "uid" | "resourceVersion"> };
}

/** Throws 409 when the object is not the one that was meant. A dry run does not know where upstream's store begins. */
export function refuseOthers({ resource, groupResource }: Refusing, { object: { metadata } }: Meant, preconditions: DeleteOptions["preconditions"], { dryRun }: Pick<WriteContext, "dryRun">): void {
  for (const [name, field] of [["UID", "uid"], ["ResourceVersion", "resourceVersion"]] as const) {
    const wanted = preconditions?.[field];
    if (wanted === undefined || wanted === metadata[field]) continue;
    const why = `Precondition failed: ${name} in precondition: ${wanted}, ${name} in object meta: ${metadata[field]}`;
    const key = etcdKey(dryRun ? "" : "/registry", resource, metadata.namespace ? `${metadata.namespace}/${metadata.name}` : metadata.name);
    throw conflict(groupResource, metadata.name, `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0, AdditionalErrorMsg: ${why}`);
  }
}

/** A replacement of what is not there: of one object in particular it is refused. */
export function refuseAny(target: Refusing, { namespace, name }: { readonly namespace: string; readonly name: string }, preconditions: DeleteOptions["preconditions"], context: Pick<WriteContext, "dryRun">): void {
  refuseOthers(target, { object: { metadata: { namespace, name, uid: "", resourceVersion: "" } } }, preconditions, context);
}
