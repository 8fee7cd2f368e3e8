/**
 * The four kinds of patch, as functions from an object to the patched one.
 *
 * Source: kubernetes v1.36 apiserver/pkg/endpoints/handlers/patch.go
 */
import { strictWarnings } from "../../api/codec/body.ts";
import { readCbor } from "../../api/codec/cbor/items.ts";
import { cborObject } from "../../api/codec/cbor/values.ts";
import { endlessNumber, inKeyOrder, jsonNodeOf, type JsonNode, parseJsonDocument } from "../../api/codec/json-document.ts";
import { decodeText, jsonText, parseJson } from "../../api/codec/json.ts";
import { readYaml } from "../../api/codec/yaml.ts";
import { yamlTextOf } from "../../api/codec/yaml-octets.ts";
import { errorText } from "../../api/meta/error-text.ts";
import { formatApiVersion } from "../../api/meta/gvk.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { badRequest, notFound, routerUnsupported, StatusError, statusError, unsupportedMediaType } from "../../api/meta/status-error.ts";
import { serverSideApply } from "../../api/patch/apply/apply.ts";
import { builtInSchemas } from "../../api/patch/facts-schema.ts";
import { applyJsonPatch } from "../../api/patch/json-patch.ts";
import { formatGo, withoutNulls } from "../../api/patch/json-value.ts";
import { applyMergePatch, BAD_MERGE_PATCH } from "../../api/patch/merge-patch.ts";
import { strategicPatchLeft } from "../../api/patch/strategic-left.ts";
import { applyStrategicMerge } from "../../api/patch/strategic-merge.ts";
import { diagnose, diagnoseUntyped } from "../../api/schema/diagnose.ts";
import { builtInFacts, Facts, type Type } from "../../api/schema/facts.ts";
import { deprecation } from "../deprecation.ts";
import type { RequestBody } from "../request.ts";
import { bodyOf, type Scope } from "../scope.ts";
import { expectedKind, appliedObject, patchedObject, unfitPatch } from "./body.ts";
import { requireName } from "./incoming.ts";
import { ownableFields, schemaOf, withVersions } from "./managed-fields.ts";
import { unfitNumber } from "./patch-numbers.ts";
import { type WriteQuery, writeQueryOf } from "./write-options.ts";

export interface Patcher {
  readonly query: WriteQuery;
  /** The patched object, of the storage version and defaulted; `old` is absent if there is none yet. */
  patch(old: Readonly<ApiObject> | undefined): ApiObject | Promise<ApiObject>;
  /** Whether managedFields are in what it makes. */
  readonly ownsFields: boolean;
  /** Whether it may create the object. */
  readonly creates: boolean;
}

const JSON_PATCH = "application/json-patch+json";
const MERGE_PATCH = "application/merge-patch+json";
const STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json";
const APPLY_YAML = "application/apply-patch+yaml", APPLY_CBOR = "application/apply-patch+cbor";

/** A JSON patch as it is decoded to tell what is strange in it. */
const OPERATIONS: Type = { kind: "list", named: undefined, items: new Facts(["P apiserver/handlers\nT jsonPatchOp\n op - s\n path - s\n from - s\n value - any"]).structNamed("io.k8s.apiserver.handlers.jsonPatchOp")! };

/** Kinds with arbitrary JSON in them: a strategic merge patch leaves all of it in the order of its keys, as upstream makes maps of it meanwhile. */
const WITH_RAW: ReadonlySet<string> = new Set(["ControllerRevision", "DeviceClass", "ResourceClaim", "ResourceClaimTemplate"]);

type Json = Record<string, never>;

export async function patcherOf(scope: Scope): Promise<Patcher> {
  const schema = builtInSchemas.schemaOf(expectedKind(scope));
  const accepted = [JSON_PATCH, MERGE_PATCH, ...(schema?.strategic && !scope.served.custom ? [STRATEGIC_MERGE_PATCH] : []), APPLY_YAML, ...(scope.request.cbor ? [APPLY_CBOR] : [])];
  const body = await bodyOf(scope);
  const type = body.contentType.split(";")[0]!.trim();
  if (!accepted.includes(type)) {
    if (scope.served.custom) throw unsupportedMediaType(accepted);
    withdraw(scope.warnings, deprecation(scope.served.row)); // the router refuses it, see checkAcceptable
    throw routerUnsupported();
  }
  requireName(scope);
  const isApply = type === APPLY_YAML || type === APPLY_CBOR;
  const query = writeQueryOf(scope, isApply ? "ApplyOptions" : "PatchOptions");
  if (isApply) {
    const { value: applied, duplicates: repeated } = readApplied(body, type);
    scope.audit?.requestObject(applied);
    return applier(scope, query, { applied, repeated });
  }
  try {
    return changer(scope, query, { body, type });
  } catch (error) {
    return { query, ownsFields: false, creates: false, patch: (old) => { throw old ? error : missing(scope); } }; // nobody looks at the patch before there is something to be changed
  }
}

/** Upstream says of CBOR that it is YAML. */
function readApplied(body: RequestBody, type: string): { readonly value: unknown; readonly duplicates: readonly string[] } {
  if (body.type === "value") return { value: body.value, duplicates: [] };
  if (type === APPLY_CBOR) return { value: attempt("error decoding YAML: ", () => cborObject(readCbor(body.bytes))), duplicates: [] };
  return attempt("error decoding YAML: error converting YAML to JSON: ", () => readYaml(yamlTextOf(body.bytes)));
}

function withdraw(warnings: string[], text: string | undefined): void {
  if (text !== undefined && warnings.includes(text)) warnings.splice(warnings.indexOf(text), 1);
}

/** All but server-side apply. Throws 400 for a patch that cannot be read. */
function changer(scope: Scope, query: WriteQuery, { body, type }: { readonly body: RequestBody; readonly type: string }): Patcher {
  const schema = builtInSchemas.schemaOf(expectedKind(scope));
  const lax = query.fieldValidation === "Ignore";
  const { value: patch, document, numbers }: ReadPatch = body.type === "value" ? { value: body.value, document: undefined, numbers: undefined }
    : attempt(type === STRATEGIC_MERGE_PATCH || lax ? "" : "error decoding patch: ", () => readPatch(decodeText(body.bytes), type === JSON_PATCH && !lax ? "struct field jsonPatchOp.value" : "value"), type === MERGE_PATCH && lax ? BAD_MERGE_PATCH : undefined);
  scope.audit?.requestObject(patch);
  const written = type === JSON_PATCH && body.type !== "value" && hasTest(patch) ? document ?? numbers ?? parseJsonDocument(decodeText(body.bytes)) : undefined;
  const repeated = type === JSON_PATCH ? strangeOperations(document ?? jsonNodeOf(patch), query) : document ? diagnoseUntyped(document) : [];
  const change = (old: Readonly<ApiObject>): unknown => {
    const document = old as unknown as Json;
    switch (type) {
      case JSON_PATCH: return applyJsonPatch(document, patch, { lax, written });
      case MERGE_PATCH: return lax && Array.isArray(patch) ? withoutNulls(patch) : applyMergePatch(document, patch, { lax }); // a list takes the place of all there is
      default: {
        const merged = strategicallyMerged(() => applyStrategicMerge(document, patch ?? {}, schema!));
        return WITH_RAW.has(scope.served.row.kind) ? inKeyOrder(merged) : merged;
      }
    }
  };
  return {
    query,
    ownsFields: false,
    creates: false,
    patch(old) {
      if (!old) throw missing(scope);
      const next = change(old) as ApiObject;
      const shown = (): string => (type === STRATEGIC_MERGE_PATCH ? formatGo(strategicPatchLeft(old as unknown as Json, (patch ?? {}) as Json, schema!)) : jsonText(next));
      const typed = numbers && type !== STRATEGIC_MERGE_PATCH ? builtInFacts.typeOf(expectedKind(scope)) : undefined;
      const unfit = typed && unfitNumber(typed, numbers!, old);
      if (unfit !== undefined) throw unfitPatch(shown(), unfit);
      // a patch that does not speak of the version is not about one
      const named = versionNamed(patch, type);
      const object = patchedObject(scope, next, { shown, repeated, old, namesKind: type !== STRATEGIC_MERGE_PATCH });
      if (!named && object.metadata.resourceVersion === old.metadata.resourceVersion) object.metadata.resourceVersion = "";
      else object.metadata.resourceVersion ||= "0"; // a patch that takes the version away asks for none
      return object;
    },
  };
}

function hasTest(patch: unknown): boolean { return Array.isArray(patch) && patch.some((operation) => (operation as { op?: unknown } | null)?.op === "test"); }

/** `numbers`: as they are written, where that matters. */
interface ReadPatch { readonly value: unknown; readonly document: JsonNode | undefined; readonly numbers: JsonNode | undefined }

/** `place`: where Go would put a number. */
function readPatch(text: string, place: string): ReadPatch {
  const { value, document, hasFractions } = parseJson(text);
  const numbers = hasFractions ? parseJsonDocument(text) : undefined;
  const endless = numbers && endlessNumber(numbers, place);
  if (endless !== undefined) throw new Error(endless);
  return { value, document, numbers };
}

/** What the operations of a JSON patch have that is not known, or twice. Throws 400 for what are none; who is not to be told has it from the patch itself. */
function strangeOperations(patch: JsonNode, { fieldValidation }: WriteQuery): readonly string[] {
  const { error, strict } = diagnose(OPERATIONS, patch);
  if (error !== undefined && fieldValidation !== "Ignore") throw badRequest(`error decoding patch: ${error}`);
  return strict.map((text) => `json patch ${text}`);
}

/** Whether the patch itself says which resourceVersion it is for. */
function versionNamed(patch: unknown, type: string): boolean {
  if (type === JSON_PATCH) return Array.isArray(patch) && patch.some((operation) => (operation as { path?: unknown })?.path === "/metadata/resourceVersion" && (operation as { op?: unknown }).op !== "test");
  return Boolean((patch as { metadata?: { resourceVersion?: unknown } } | null)?.metadata?.resourceVersion);
}

/** Server-side apply. */
function applier(scope: Scope, query: WriteQuery, { applied, repeated }: { readonly applied: unknown; readonly repeated: readonly string[] }): Patcher {
  const { info, server } = scope;
  const gvk = expectedKind(scope);
  const schema = schemaOf(scope, gvk);
  return {
    query,
    ownsFields: true,
    creates: true,
    async patch(old) {
      const nowMs = server.clock.nowMs();
      const { object } = await withVersions(scope, (versions) => serverSideApply({
        live: old as never,
        applied: applied as never,
        manager: query.fieldManager,
        force: query.force,
        schema: schema!,
        subresource: info.subresource,
        apiVersion: formatApiVersion(gvk),
        kind: gvk.kind,
        filter: ownableFields(scope.served, info.subresource),
        versions,
        nowMs,
      }));
      if (repeated.length > 0 && query.fieldValidation === "Strict") throw badRequest(`error strict decoding YAML: error converting YAML to JSON: ${repeated.join(", ")}`);
      if (query.fieldValidation === "Warn") scope.warnings.push(...repeated.flatMap(strictWarnings));
      const next = appliedObject(scope, object, applied as Partial<ApiObject>);
      if (!(applied as { metadata?: { resourceVersion?: string } }).metadata?.resourceVersion) next.metadata.resourceVersion = "";
      return next;
    },
  };
}

/** What upstream's library says of a patch it cannot follow goes to the client as it is. */
function strategicallyMerged<T>(merge: () => T): T {
  try {
    return merge();
  } catch (error) {
    throw error instanceof StatusError ? error : statusError({ code: 500, reason: "", message: (error as Error).message });
  }
}

/** `instead`: what is told of whatever is wrong. */
function attempt<T>(what: string, parse: () => T, instead?: string): T {
  try {
    return parse();
  } catch (error) {
    throw badRequest(instead ?? what + errorText(error), error);
  }
}

function missing({ info, served }: Scope): Error {
  return notFound({ group: served.row.group, resource: served.row.plural }, info.name);
}
