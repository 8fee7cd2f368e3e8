/**
 * The options of a write, from its query or, for a delete, its body. Wrong ones are refused as upstream does: 422 for a kind of options that no object has.
 *
 * Source: kubernetes v1.36 apimachinery/pkg/apis/meta/v1/validation/validation.go
 */
import { decodeOptions, type FieldValidation } from "../../api/codec/body.ts";
import { negotiateInput } from "../../api/codec/negotiate.ts";
import { type FieldError, forbidden, invalid as invalidField, notSupported, required } from "../../api/meta/field-error.ts";
import { fieldManagerErrors } from "../../api/meta/field-manager.ts";
import type { GroupVersionKind } from "../../api/meta/gvk.ts";
import { invalid } from "../../api/meta/status-error.ts";
import { isTrue } from "../../api/request/query.ts";
import type { DeleteOptions } from "../../registry/generic/deletion.ts";
import { keepsFieldsOf } from "../../registry/generic/switched-on.ts";
import { UNSAFE_DELETION } from "../../registry/generic/unreadable.ts";
import { bodyOf, type Scope } from "../scope.ts";
import { integer } from "./options.ts";

export interface WriteQuery {
  readonly dryRun: boolean;
  /** "" if the client did not name one. */
  readonly fieldManager: string;
  readonly fieldValidation: FieldValidation;
  /** Of an apply: take fields from others. */
  readonly force: boolean;
}

export type WriteKind = "CreateOptions" | "UpdateOptions" | "PatchOptions" | "ApplyOptions";

/** Throws 422. */
export function writeQueryOf({ request: { query } }: Scope, kind: WriteKind): WriteQuery {
  const fieldManager = query.get("fieldManager") ?? "";
  const dryRun = query.getAll("dryRun");
  const fieldValidation = query.get("fieldValidation") ?? "";
  const errors = [
    ...(kind === "ApplyOptions" && fieldManager === "" ? [required("fieldManager", "is required for apply patch")] : []),
    ...(kind === "PatchOptions" && query.has("force") ? [forbidden("force", "may not be specified for non-apply patch")] : []),
    ...fieldManagerErrors(fieldManager, "fieldManager"),
    ...dryRunErrors(dryRun),
    ...(isFieldValidation(fieldValidation) ? [] : [notSupported("fieldValidation", fieldValidation, ["", "Ignore", "Strict", "Warn"])]),
  ];
  refuse(kind === "ApplyOptions" ? "PatchOptions" : kind, errors);
  return { dryRun: dryRun.length > 0, fieldManager, fieldValidation: (fieldValidation || "Warn") as FieldValidation, force: isTrue(query.get("force")) };
}

function isFieldValidation(value: string): boolean {
  return ["", "Ignore", "Strict", "Warn"].includes(value);
}

function dryRunErrors(values: readonly string[]): FieldError[] {
  return values.every((value) => value === "All") ? [] : [notSupported("dryRun", values, ["All"])];
}

function refuse(kind: string, errors: readonly FieldError[]): void {
  if (errors.length > 0) throw invalid({ group: "meta.k8s.io", kind }, "", errors);
}

export const IGNORE = "ignoreStoreReadErrorWithClusterBreakingPotential";

export interface DeleteQuery extends DeleteOptions {
  readonly dryRun: boolean;
}

export interface RawDeleteOptions extends DeleteOptions {
  readonly dryRun?: readonly string[] | null | undefined;
  readonly [IGNORE]?: boolean | null | undefined;
}

/** Of the body if there is one, else of the query. Throws 400, 415, 422. */
export async function deleteQueryOf(scope: Scope): Promise<DeleteQuery> {
  const { query, ignoresReadErrors } = await deleteRequestOf(scope);
  if (ignoresReadErrors && keepsFieldsOf(UNSAFE_DELETION)) refuse("DeleteOptions", [invalidField(IGNORE, true, "is not allowed with DELETECOLLECTION, try again after removing the option")]);
  return query;
}

/** `ignoresReadErrors`: what nobody can read is to go as it is. */
export interface DeleteRequest { readonly query: DeleteQuery; readonly ignoresReadErrors: boolean }

/** Throws as deleteQueryOf does. */
export async function deleteRequestOf(scope: Scope): Promise<DeleteRequest> {
  const asked = (await deleteBody(scope)) ?? deleteQuery(scope);
  return { query: checkedDelete(asked), ignoresReadErrors: asked[IGNORE] ?? false };
}

/** Throws 422. */
export function checkedDelete(asked: RawDeleteOptions): DeleteQuery {
  const { gracePeriodSeconds, propagationPolicy, orphanDependents, preconditions, dryRun } = asked;
  const errors = [
    ...(orphanDependents !== undefined && propagationPolicy !== undefined
      ? [invalidField("propagationPolicy", propagationPolicy, "orphanDependents and deletionPropagation cannot be both set")] : []),
    ...(propagationPolicy !== undefined && !["Foreground", "Background", "Orphan"].includes(propagationPolicy)
      ? [notSupported("propagationPolicy", propagationPolicy, ["Foreground", "Background", "Orphan", "nil"])] : []),
    ...dryRunErrors(dryRun ?? []),
    ...(asked[IGNORE] && keepsFieldsOf(UNSAFE_DELETION) ? besideIgnoring(asked) : []),
  ];
  refuse("DeleteOptions", errors);
  return { gracePeriodSeconds, preconditions, orphanDependents, propagationPolicy, dryRun: (dryRun ?? []).length > 0 }; // in the order Go has the fields in
}

/** What goes as it is goes at once and whatever it is. */
function besideIgnoring({ dryRun, ...asked }: RawDeleteOptions): FieldError[] {
  const given = [...(dryRun?.length ? ["dryRun"] : []), ...(["propagationPolicy", "orphanDependents", "gracePeriodSeconds", "preconditions"] as const).filter((name) => asked[name] !== undefined)];
  return given.map((name) => invalidField(IGNORE, true, `cannot be set together with .${name}`));
}

function deleteQuery({ request: { query } }: Scope): RawDeleteOptions {
  return {
    gracePeriodSeconds: integer(query, "gracePeriodSeconds"),
    propagationPolicy: (query.get("propagationPolicy") as DeleteOptions["propagationPolicy"] | null) ?? undefined,
    orphanDependents: query.has("orphanDependents") ? isTrue(query.get("orphanDependents")) : undefined,
    preconditions: preconditionsIn(query),
    dryRun: query.getAll("dryRun"),
    [IGNORE]: isTrue(query.get(IGNORE)),
  };
}

/** Upstream reads them from there, too. */
function preconditionsIn(query: URLSearchParams): DeleteOptions["preconditions"] {
  const uid = query.get("uid"), resourceVersion = query.get("resourceVersion");
  return uid || resourceVersion ? { ...(uid && { uid }), ...(resourceVersion && { resourceVersion }) } : undefined;
}

const DELETE_OPTIONS: GroupVersionKind = { group: "", version: "v1", kind: "DeleteOptions" };

async function deleteBody(scope: Scope): Promise<RawDeleteOptions | undefined> {
  const { audit, span } = scope;
  const body = await bodyOf(scope);
  if (body.type === "value") return (body.value ?? undefined) as RawDeleteOptions | undefined;
  if (body.bytes.length === 0) return undefined;
  const encoding = negotiateInput(body.contentType, scope.request);
  const options = decodeOptions({ bytes: body.bytes, encoding, expected: DELETE_OPTIONS });
  span?.event("Decoded delete options");
  audit?.requestObject({ ...options, kind: DELETE_OPTIONS.kind, apiVersion: "meta.k8s.io/__internal" }); // as upstream's decoder calls what it has read
  span?.event("Recorded the audit event");
  return options as RawDeleteOptions;
}
