/** The object in a request's body: decoded, checked as `fieldValidation` asks, in the version it is stored in, and defaulted. */
import { decodeBody, decodeUntypedBody, enforceFieldValidation, type FieldValidation } from "../../api/codec/body.ts";
import { jsonNodeOf } from "../../api/codec/json-document.ts";
import { ENCODINGS, ENCODINGS_CUSTOM, negotiateInput } from "../../api/codec/negotiate.ts";
import { formatApiVersion, type GroupVersionKind } from "../../api/meta/gvk.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { badRequest } from "../../api/meta/status-error.ts";
import { canonical } from "../../api/schema/canonical.ts";
import { diagnose } from "../../api/schema/diagnose.ts";
import { builtInFacts } from "../../api/schema/facts.ts";
import type { DeleteOptions } from "../../registry/generic/deletion.ts";
import type { Scope } from "../handler.ts";
import type { RequestBody } from "../request.ts";
import { integer } from "./options.ts";

/** The body as an object of the request's resource or subresource, in the storage version, defaulted. Throws 400, 415. */
export async function decodeObject(scope: Scope): Promise<ApiObject> {
  return finishObject(scope, readObject(scope, await scope.request.body()));
}

/** A value made by us (a patched object) checked and defaulted like a body; `strict` are the findings of fieldValidation so far. */
export function objectOf(scope: Scope, value: unknown, strict: readonly string[] = []): ApiObject {
  const gvk = expectedKind(scope);
  const found = readValue(gvk, value);
  warn(scope, gvk, [...strict, ...found.strict]);
  return finishObject(scope, found.object);
}

export function expectedKind({ served, info }: Scope): GroupVersionKind {
  const { group, version, kind } = served.row;
  const sub = info.subresource === "" ? undefined : served.row.subresources.find(({ name }) => name === info.subresource);
  return sub?.kind ?? { group, version, kind };
}

function readObject(scope: Scope, body: RequestBody): ApiObject {
  const expected = expectedKind(scope);
  const typed = builtInFacts.typeOf(expected) !== undefined;
  if (body.type === "value") return readValue(expected, body.value).object;
  const encoding = negotiateInput(body.contentType, typed ? ENCODINGS : ENCODINGS_CUSTOM);
  if (!typed) {
    const { object, strict } = decodeUntypedBody({ bytes: body.bytes, encoding, expected });
    warn(scope, expected, strict);
    return object as unknown as ApiObject;
  }
  const { object, warnings } = decodeBody({ bytes: body.bytes, encoding, expected, fieldValidation: fieldValidationOf(scope) });
  scope.warnings.push(...warnings);
  return object as unknown as ApiObject;
}

function readValue(gvk: GroupVersionKind, value: unknown): { object: ApiObject; strict: readonly string[] } {
  const type = builtInFacts.typeOf(gvk);
  if (!type) return { object: structuredClone(value) as ApiObject, strict: [] };
  const { object, clean } = canonical(type, { ...(value as object), apiVersion: formatApiVersion(gvk), kind: gvk.kind });
  if (clean) return { object: object as unknown as ApiObject, strict: [] };
  const { error, strict } = diagnose(type, jsonNodeOf(value));
  if (error !== undefined) throw badRequest(`${gvk.kind} in version ${JSON.stringify(gvk.version)} cannot be handled as a ${gvk.kind}: ${error}`);
  return { object: object as unknown as ApiObject, strict };
}

function finishObject({ served, info }: Scope, object: ApiObject): ApiObject {
  object.metadata ??= {} as ApiObject["metadata"];
  if (info.subresource !== "" && served.definition.subresources?.[info.subresource]?.type !== "part" && info.subresource !== "status") return object;
  const stored = served.toStorage(object);
  served.applyDefaults(stored);
  return stored;
}

export function fieldValidationOf({ request: { query } }: Scope): FieldValidation {
  const asked = query.get("fieldValidation") || "Warn";
  if (asked !== "Ignore" && asked !== "Warn" && asked !== "Strict")
    throw badRequest(`fieldValidation: Unsupported value: ${JSON.stringify(asked)}: supported values: "Ignore", "Strict", "Warn"`);
  return asked;
}

function warn(scope: Scope, gvk: GroupVersionKind, strict: readonly string[]): void {
  if (strict.length > 0) scope.warnings.push(...enforceFieldValidation({ strict, gvk, expected: gvk, fieldValidation: fieldValidationOf(scope) }));
}

/** From the body if there is one, else from the query. Throws 400. */
export async function decodeDeleteOptions({ request }: Scope): Promise<DeleteOptions> {
  const { query } = request;
  const given = await readDeleteOptions(request.body());
  const grace = given.gracePeriodSeconds ?? integer(query, "gracePeriodSeconds");
  const policy = given.propagationPolicy ?? (query.get("propagationPolicy") as DeleteOptions["propagationPolicy"] | null) ?? undefined;
  const orphan = given.orphanDependents ?? (query.has("orphanDependents") ? query.get("orphanDependents") === "true" : undefined);
  if (policy !== undefined && !["Orphan", "Background", "Foreground"].includes(policy))
    throw badRequest(`DeleteOptions is invalid: propagationPolicy: Unsupported value: ${JSON.stringify(policy)}: supported values: "Background", "Foreground", "Orphan"`);
  return { preconditions: given.preconditions, gracePeriodSeconds: grace, propagationPolicy: policy, orphanDependents: orphan };
}

const DELETE_OPTIONS: GroupVersionKind = { group: "", version: "v1", kind: "DeleteOptions" };

async function readDeleteOptions(reading: Promise<RequestBody>): Promise<DeleteOptions> {
  const body = await reading;
  if (body.type === "value") return (body.value ?? {}) as DeleteOptions;
  if (body.bytes.length === 0) return {};
  const encoding = negotiateInput(body.contentType);
  const { object } = decodeBody({ bytes: body.bytes, encoding, expected: DELETE_OPTIONS, fieldValidation: "Ignore", accepts: () => true });
  return object as DeleteOptions;
}
