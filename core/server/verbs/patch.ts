/**
 * The four kinds of patch, as functions from an object to the patched one.
 *
 * Source: kubernetes v1.36 apiserver/pkg/endpoints/handlers/patch.go
 */
import { parseJson, decodeText } from "../../api/codec/json.ts";
import { parseYaml } from "../../api/codec/yaml.ts";
import { jsonNodeOf } from "../../api/codec/json-document.ts";
import { formatApiVersion } from "../../api/meta/gvk.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { badRequest, notFound, unsupportedMediaType } from "../../api/meta/status-error.ts";
import { serverSideApply } from "../../api/patch/apply/apply.ts";
import { builtInSchemas } from "../../api/patch/facts-schema.ts";
import { applyJsonPatch } from "../../api/patch/json-patch.ts";
import { applyMergePatch } from "../../api/patch/merge-patch.ts";
import { applyStrategicMerge } from "../../api/patch/strategic-merge.ts";
import { diagnose } from "../../api/schema/diagnose.ts";
import { builtInFacts } from "../../api/schema/facts.ts";
import type { Scope } from "../handler.ts";
import { isTrue } from "../request-info.ts";
import { expectedKind, objectOf } from "./body.ts";
import { ownableFields } from "./managed-fields.ts";

export interface Patcher {
  /** The patched object, of the storage version and defaulted; `old` is absent if there is none yet. */
  patch(old: Readonly<ApiObject> | undefined): ApiObject;
  /** Whether managedFields are in what it makes. */
  readonly ownsFields: boolean;
  /** Whether it may create the object. */
  readonly creates: boolean;
}

const JSON_PATCH = "application/json-patch+json";
const MERGE_PATCH = "application/merge-patch+json";
const STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json";
const APPLY_YAML = "application/apply-patch+yaml";

type Json = Record<string, never>;

export async function patcherOf(scope: Scope): Promise<Patcher> {
  const body = await scope.request.body();
  const type = body.contentType.split(";")[0]!.trim().toLowerCase();
  const schema = builtInSchemas.schemaOf(expectedKind(scope));
  const accepted = schema ? [JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY_YAML] : [JSON_PATCH, MERGE_PATCH, APPLY_YAML];
  if (!accepted.includes(type)) throw unsupportedMediaType(accepted);
  if (type === APPLY_YAML) return applier(scope, body.type === "value" ? body.value : attempt(() => parseYaml(decodeText(body.bytes))));
  const patch = body.type === "value" ? body.value : attempt(() => parseJson(decodeText(body.bytes)).value);
  const change = (old: Readonly<ApiObject>): unknown => {
    const document = old as unknown as Json;
    switch (type) {
      case JSON_PATCH: return applyJsonPatch(document, patch);
      case MERGE_PATCH: return applyMergePatch(document, patch);
      default: return applyStrategicMerge(document, patch, schema!);
    }
  };
  return {
    ownsFields: false,
    creates: false,
    patch(old) {
      if (!old) throw missing(scope);
      const next = change(old) as ApiObject;
      // a patch that does not speak of the version is not about one
      const named = versionNamed(patch, type);
      const object = objectOf(scope, next);
      if (!named) object.metadata.resourceVersion = "";
      return object;
    },
  };
}

/** Whether the patch itself says which resourceVersion it is for. */
function versionNamed(patch: unknown, type: string): boolean {
  if (type === JSON_PATCH) return Array.isArray(patch) && patch.some((operation) => (operation as { path?: unknown })?.path === "/metadata/resourceVersion" && (operation as { op?: unknown }).op !== "test");
  return Boolean((patch as { metadata?: { resourceVersion?: unknown } } | null)?.metadata?.resourceVersion);
}

/** Server-side apply. */
function applier(scope: Scope, applied: unknown): Patcher {
  const { request, info, server } = scope;
  const gvk = expectedKind(scope);
  const manager = request.query.get("fieldManager");
  if (!manager) throw badRequest(`PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch`);
  if (typeof applied !== "object" || applied === null || Array.isArray(applied)) throw badRequest("error decoding YAML: an apply patch must be an object");
  const type = builtInFacts.typeOf(gvk);
  const found = type ? diagnose(type, jsonNodeOf(applied)) : undefined;
  if (found?.error) throw badRequest(`failed to create typed patch object (${info.namespace}/${info.name}; ${formatApiVersion(gvk)}, Kind=${gvk.kind}): ${found.error}`);
  const schema = builtInSchemas.schemaOf(gvk);
  return {
    ownsFields: true,
    creates: true,
    patch(old) {
      const { object } = serverSideApply({
        live: old as never,
        applied: applied as never,
        manager,
        force: isTrue(request.query.get("force") ?? "false"),
        schema: schema!,
        subresource: info.subresource,
        apiVersion: formatApiVersion(gvk),
        kind: gvk.kind,
        filter: ownableFields(scope.served, info.subresource),
        nowMs: server.clock.nowMs(),
      });
      const next = objectOf(scope, object, found?.strict);
      if (!(applied as { metadata?: { resourceVersion?: string } }).metadata?.resourceVersion) next.metadata.resourceVersion = "";
      return next;
    },
  };
}

function attempt<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw badRequest(`error decoding patch: ${error instanceof Error ? error.message : String(error)}`, error);
  }
}

function missing({ info, served }: Scope): Error {
  return notFound({ group: served.row.group, resource: served.row.plural }, info.name);
}
