/**
 * The objects a binding gives to its policy: one by name, or all with certain labels. The policy is asked once for each of them.
 *
 * Source: kubernetes v1.36 apiserver/pkg/admission/plugin/policy/generic/policy_dispatcher.go CollectParams
 */
import type { ParamKind, ParamRef } from "../../api/gen/admissionregistration.v1.ts";
import { formatGvk, gvkOf, type GroupVersionKind } from "../../api/meta/gvk.ts";
import { labelSelector } from "../../api/meta/label-selector.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { isNotFound } from "../../api/meta/status-error.ts";
import type { Client, ResourceRef } from "../../client/client.ts";
import type { AdmissionRequest } from "../plugin.ts";

/** Null: there is none, and none is asked for. */
export type Param = Readonly<ApiObject> | null;

export interface ParamDeps {
  readonly client: Client;
  /** Where objects of a kind are. */
  resourceOf(kind: GroupVersionKind): ResourceRef | undefined;
}

/** What serves a kind; kinds are known by their small letters, too. Source: kubernetes v1.36 client-go/restmapper/discovery.go */
export function rowOfKind<R extends GroupVersionKind>(rows: readonly R[], { group, version, kind }: GroupVersionKind): R | undefined {
  const inVersion = rows.filter((row) => row.group === group && row.version === version);
  return inVersion.find((row) => row.kind === kind) ?? inVersion.find((row) => row.kind.toLowerCase() === kind);
}

function paramGvk({ apiVersion = "", kind = "" }: ParamKind): GroupVersionKind { return gvkOf({ apiVersion, kind }); }

/** Throws an Error: the policy cannot be asked at all. */
export function checkParamKind(paramKind: ParamKind | undefined, { resourceOf }: ParamDeps): void {
  if (paramKind && !resourceOf(paramGvk(paramKind))) throw new Error(`failed to find resource referenced by paramKind: '${formatGvk(paramGvk(paramKind))}'`);
}

/** Throws an Error: the binding is not right. */
export async function paramsOf(paramKind: ParamKind | undefined, paramRef: ParamRef | undefined, { namespace, signal }: Pick<AdmissionRequest, "namespace" | "signal">, deps: ParamDeps): Promise<readonly Param[]> {
  const kind = paramKind && paramGvk(paramKind);
  const ref = kind && deps.resourceOf(kind);
  if (!paramKind || !ref || !paramRef) return [null];
  const found = await find(ref, paramRef, { namespace: namespaceOf(ref, paramRef, namespace), deps, signal });
  if (found.length === 0 && paramRef.parameterNotFoundAction === "Deny") throw new Error("no params found for policy binding with `Deny` parameterNotFoundAction");
  return found.map((object) => ({ ...object, apiVersion: paramKind.apiVersion ?? "", kind: paramKind.kind ?? "" }));
}

function namespaceOf({ namespaced }: ResourceRef, { namespace: wanted = "" }: ParamRef, requested: string): string | undefined {
  if (!namespaced) {
    if (wanted !== "") throw new Error("paramRef.namespace must not be provided for a cluster-scoped `paramKind`");
    return undefined;
  }
  const namespace = wanted || requested;
  if (namespace === "") throw new Error("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources");
  return namespace;
}

async function find(ref: ResourceRef, { name = "", selector }: ParamRef, { namespace, deps: { client }, signal }: {
  readonly namespace: string | undefined;
  readonly deps: ParamDeps;
  readonly signal: AbortSignal;
}): Promise<readonly Readonly<ApiObject>[]> {
  if (name !== "") {
    if (selector) throw new Error("paramRef.name and paramRef.selector are mutually exclusive");
    try {
      return [await client.resource(ref).get({ metadata: { name, namespace } }, { signal })];
    } catch (error) {
      if (isNotFound(error)) return [];
      throw error;
    }
  }
  if (!selector) throw new Error("one of name or selector must be provided");
  return (await client.resource(ref).list({ namespace, labelSelector: labelSelector(selector).toString() }, { signal })).items;
}
