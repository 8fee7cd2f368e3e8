/**
 * Keeps the bootstrap roles and bindings as they should be: what is missing is created, missing rules and subjects are added. What
 * administrators added stays, and an object annotated rbac.authorization.kubernetes.io/autoupdate=false is left alone.
 * A binding that refers to another role is made anew, because the reference cannot be changed.
 *
 * `reconcileRole` and `reconcileBinding` decide, `ensureBootstrapPolicy` acts.
 * Source: kubernetes v1.36 staging/src/k8s.io/component-helpers/auth/rbac/reconciliation, pkg/registry/rbac/rest/storage_rbac.go
 */
import type { ClusterRole, ClusterRoleBinding, Role, RoleBinding, Subject } from "../api/gen/rbac.v1.ts";
import { type ApiObject, keyOf, type NewObject } from "../api/meta/object-meta.ts";
import { isAlreadyExists, isConflict, isNotFound } from "../api/meta/status-error.ts";
import type { Client, ResourceClient, ResourceRef } from "../client/client.ts";
import { CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, NAMESPACES, ROLE_BINDINGS, ROLES } from "../client/resources.ts";
import { settleAll } from "../lifecycle/settle-all.ts";
import type { Log } from "../observe/log.ts";
import { AUTO_UPDATE_ANNOTATION, type BootstrapPolicy } from "./bootstrap-policy.ts";
import { uncoveredRules } from "./rules.ts";

export type Reconciled<T> = { readonly action: "none" } | { readonly action: "update" | "recreate"; readonly object: T };
type AnyRole = ClusterRole | Role;
type AnyBinding = ClusterRoleBinding | RoleBinding;

export function reconcileRole<T extends AnyRole>(existing: Readonly<T>, expected: NewObject<T>): Reconciled<T> {
  if (isProtected(existing)) return { action: "none" };
  const wanted = expected as unknown as ClusterRole;
  const found = existing as unknown as ClusterRole;
  const missing = uncoveredRules(found.rules ?? [], wanted.rules ?? []);
  const selectors = wanted.aggregationRule?.clusterRoleSelectors ?? [];
  const present = found.aggregationRule?.clusterRoleSelectors ?? [];
  const missingSelectors = selectors.filter((selector) => !present.some((one) => JSON.stringify(one) === JSON.stringify(selector)));
  const unexpected = !wanted.aggregationRule && found.aggregationRule;
  const metadata = mergedMetadata(existing, expected);
  if (missing.length === 0 && missingSelectors.length === 0 && !unexpected && !metadata) return { action: "none" };
  const { aggregationRule: _, ...rest } = found;
  const aggregationRule = unexpected || (present.length === 0 && missingSelectors.length === 0) ? {} : { aggregationRule: { clusterRoleSelectors: [...present, ...missingSelectors] } };
  return { action: "update", object: { ...rest, ...aggregationRule, metadata: metadata ?? existing.metadata, rules: [...(found.rules ?? []), ...missing] } as unknown as T };
}

export function reconcileBinding<T extends AnyBinding>(existing: Readonly<T>, expected: NewObject<T>): Reconciled<T | NewObject<T>> {
  if (isProtected(existing)) return { action: "none" };
  const wanted = expected as unknown as ClusterRoleBinding;
  if (wanted.roleRef.kind !== existing.roleRef.kind || wanted.roleRef.name !== existing.roleRef.name) return { action: "recreate", object: expected };
  const subjects = existing.subjects ?? [];
  const same = (a: Subject, b: Subject): boolean => a.kind === b.kind && a.name === b.name && (a.namespace ?? "") === (b.namespace ?? "") && (a.apiGroup ?? "") === (b.apiGroup ?? "");
  const missing = (wanted.subjects ?? []).filter((subject) => !subjects.some((one) => same(one, subject)));
  const metadata = mergedMetadata(existing, expected);
  if (missing.length === 0 && !metadata) return { action: "none" };
  return { action: "update", object: { ...existing, metadata: metadata ?? existing.metadata, subjects: [...subjects, ...missing] } };
}

function isProtected({ metadata }: Readonly<ApiObject>): boolean { return metadata.annotations?.[AUTO_UPDATE_ANNOTATION] === "false"; }

/** With what is expected added; what is there wins. Undefined: nothing to add. */
function mergedMetadata({ metadata }: Readonly<ApiObject>, expected: { readonly metadata: { readonly labels?: Record<string, string> | undefined; readonly annotations?: Record<string, string> | undefined } }): ApiObject["metadata"] | undefined {
  const { labels = {}, annotations = {} } = expected.metadata;
  const lacks = (wanted: Record<string, string>, present: Record<string, string> = {}): boolean => Object.keys(wanted).some((name) => !(name in present));
  if (!lacks(labels, metadata.labels) && !lacks(annotations, metadata.annotations)) return undefined;
  return { ...metadata, labels: { ...labels, ...metadata.labels }, annotations: { ...annotations, ...metadata.annotations } };
}

/** Conflicts mean that somebody else writes too: tried again this often. */
const ATTEMPTS_MAX = 5;

/** Call at every start. Makes the namespaces its roles are in, if it is the first to need them. */
export async function ensureBootstrapPolicy(client: Client, { signal, log, policy }: { readonly signal: AbortSignal; readonly log: Log; readonly policy: BootstrapPolicy }): Promise<void> {
  await ensureNamespaces(client, policy, signal);
  await splitBinding(client, policy, signal);
  const counts = [
    await ensureAll(client, CLUSTER_ROLES, policy.clusterRoles, reconcileRole<ClusterRole>, signal), await ensureAll(client, CLUSTER_ROLE_BINDINGS, policy.clusterRoleBindings, reconcileBinding<ClusterRoleBinding>, signal),
    await ensureAll(client, ROLES, policy.roles, reconcileRole<Role>, signal), await ensureAll(client, ROLE_BINDINGS, policy.roleBindings, reconcileBinding<RoleBinding>, signal),
  ];
  const written = counts.reduce((sum, count) => sum + count, 0);
  if (written > 0) log.info("bootstrap policy written", { objects: written });
}

/** What anybody may see was once part of another binding: who made that one narrower finds the new one as narrow. Source: storage_rbac.go primeSplitClusterRoleBindings */
const SPLIT = { from: "system:discovery", to: "system:public-info-viewer" };

async function splitBinding(client: Client, { clusterRoleBindings }: BootstrapPolicy, signal: AbortSignal): Promise<void> {
  const bindings = client.resource(CLUSTER_ROLE_BINDINGS);
  const { items } = await bindings.list({}, { signal });
  const from = items.find(({ metadata }) => metadata.name === SPLIT.from);
  const expected = clusterRoleBindings.find(({ metadata }) => metadata.name === SPLIT.to);
  if (!from || !expected || items.some(({ metadata }) => metadata.name === SPLIT.to)) return;
  const { labels, annotations } = from.metadata;
  const metadata = { name: SPLIT.to, ...(labels && { labels }), ...(annotations && { annotations }) };
  await bindings.create({ ...expected, metadata, subjects: from.subjects ?? [] }, { signal }).catch((problem: unknown) => {
    if (!isAlreadyExists(problem)) throw problem; // another server was first
  });
}

async function ensureNamespaces(client: Client, { roles, roleBindings }: BootstrapPolicy, signal: AbortSignal): Promise<void> {
  const namespaces = client.resource(NAMESPACES);
  for (const name of new Set([...roles, ...roleBindings].map(({ metadata }) => metadata.namespace!))) {
    try {
      await namespaces.get({ metadata: { name } }, { signal });
    } catch (error) {
      if (!isNotFound(error)) throw error;
      await namespaces.create({ apiVersion: "v1", kind: "Namespace", metadata: { name }, spec: {} }, { signal }).catch((problem: unknown) => {
        if (!isAlreadyExists(problem)) throw problem; // another server was first
      });
    }
  }
}

type Reconcile<T extends ApiObject> = (existing: Readonly<T>, expected: NewObject<T>) => Reconciled<T | NewObject<T>>;

async function ensureAll<T extends ApiObject>(client: Client, ref: ResourceRef<T>, expected: readonly NewObject<T>[], reconcile: Reconcile<T>, signal: AbortSignal): Promise<number> {
  const resource = client.resource(ref);
  const { items } = await resource.list({}, { signal });
  const existing = new Map(items.map((item) => [keyOf(item), item]));
  const written = await settleAll(expected.map((one) => ensureOne(resource, existing.get(keyOf(one)), one, reconcile, signal)));
  return written.filter(Boolean).length;
}

async function ensureOne<T extends ApiObject>(resource: ResourceClient<T>, first: Readonly<T> | undefined, expected: NewObject<T>, reconcile: Reconcile<T>, signal: AbortSignal): Promise<boolean> {
  const name = { metadata: { name: expected.metadata.name!, namespace: expected.metadata.namespace } };
  let existing = first;
  for (let attempt = 1; ; attempt++) {
    try {
      return await write(resource, existing, expected, reconcile, signal);
    } catch (error) {
      if (attempt === ATTEMPTS_MAX || !(isConflict(error) || isAlreadyExists(error) || isNotFound(error))) throw error;
      existing = await resource.get(name, { signal }).catch((problem: unknown) => {
        if (isNotFound(problem)) return undefined;
        throw problem;
      });
    }
  }
}

async function write<T extends ApiObject>(resource: ResourceClient<T>, existing: Readonly<T> | undefined, expected: NewObject<T>, reconcile: Reconcile<T>, signal: AbortSignal): Promise<boolean> {
  if (!existing) {
    await resource.create(expected, { signal });
    return true;
  }
  const reconciled = reconcile(existing, expected);
  if (reconciled.action === "none") return false;
  if (reconciled.action === "update") {
    await resource.update(reconciled.object as T, { signal });
    return true;
  }
  await resource.delete(existing, { preconditions: { uid: existing.metadata.uid } }, { signal });
  await resource.create(expected, { signal });
  return true;
}
