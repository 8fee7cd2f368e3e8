/**
 * ResourceQuota: refuses what would take a namespace beyond one of its quotas, and notes in the quota's status what it lets through.
 *
 *   write ─▶ what it adds (core/api/quota) ─▶ fits into every quota that covers it? ─▶ status.used written ─▶ the write goes on
 *
 * The status is written before the object, by compare and swap, one request of a namespace at a time: two servers cannot give the last
 * place away twice. What is noted and then not written is found by the controller (core/controllers/resourcequota), which counts anew.
 *
 * Source: kubernetes v1.36 apiserver/pkg/admission/plugin/resourcequota/controller.go
 */
import type { ResourceList, ResourceQuota } from "../api/gen/core.v1.ts";
import { type ApiObject, namespaceOf } from "../api/meta/object-meta.ts";
import { isConflict, isNotFound, statusError } from "../api/meta/status-error.ts";
import { add, type Amounts, amountsOf, equal, exceeding, format, growth, listOf, only, withoutZeros } from "../api/quota/amounts.ts";
import type { Surroundings } from "../api/quota/claim-usage.ts";
import { type Evaluator, evaluatorOf, scopesOf } from "../api/quota/evaluators.ts";
import type { ResourceClient } from "../client/client.ts";
import type { Informer } from "../client/informer.ts";
import type { Clock } from "../lifecycle/clock.ts";
import type { AdmissionPlugin, AdmissionRequest } from "./plugin.ts";
import { type LimitedResource, uncovered } from "./quota-limits.ts";
import { refusal } from "./refuse.ts";

type Quota = Readonly<ResourceQuota>;

/** Source: checkQuotas(…, 3) */
const TRIES_MAX = 4;

interface Deps {
  readonly quotas: Informer<ResourceQuota>;
  readonly client: ResourceClient<ResourceQuota>;
  readonly clock: Clock;
  /** Absent: claims are counted by what they say alone. */
  readonly around?: Surroundings;
  /** What may not be used without a quota. */
  readonly limited?: readonly LimitedResource[];
}

export function resourceQuotaAdmission({ quotas, client, clock, around, limited = [] }: Deps): AdmissionPlugin {
  const turns = new Map<string, Promise<void>>(); // by namespace: the last in line

  async function inTurn(namespace: string, work: () => Promise<void>): Promise<void> {
    const before = turns.get(namespace) ?? Promise.resolve();
    const mine = before.then(work);
    const settled = mine.catch(() => undefined); // the next one does not care how this one ended
    turns.set(namespace, settled);
    try {
      await mine;
    } finally {
      if (turns.get(namespace) === settled) turns.delete(namespace);
    }
  }

  async function spend(request: AdmissionRequest, evaluator: Evaluator): Promise<void> {
    const { namespace, signal, dryRun } = request;
    const written = new Set<string>(); // quotas that have it noted already
    for (let tries = 1; ; tries++) {
      const { items } = await client.list({ namespace }, { signal }); // our copy may miss what the last request noted
      const changed = charge(items.filter(({ metadata: { uid } }) => !written.has(uid)), { request, evaluator, nowMs: clock.nowMs(), limited });
      if (dryRun) return;
      try {
        for (const quota of changed) {
          await client.updateStatus(quota as ResourceQuota, { signal });
          written.add(quota.metadata.uid);
        }
        return;
      } catch (error) {
        if (!(isConflict(error) || isNotFound(error)) || tries === TRIES_MAX) throw error; // somebody else wrote it: what it says now may refuse
      }
    }
  }

  return {
    name: "ResourceQuota",
    handles: ({ namespace, resource, group, operation }) => namespace !== "" && (operation === "CREATE" || operation === "UPDATE") && !(group === "" && resource === "namespaces"),
    async validate(request) {
      const { namespace, signal, operation, subresource, object, oldObject: old } = request;
      const evaluator = evaluatorOf(request, around);
      if (!evaluator?.handles({ operation, subresource, object, old })) return;
      const always = limited.length > 0; // also without a quota
      if (!always && quotas.synced && [...quotas.inNamespace(namespace)].length === 0) return;
      if (!always && !quotas.synced && (await client.list({ namespace }, { signal })).items.length === 0) return;
      await inTurn(namespace, () => spend(request, evaluator));
    },
  };
}

interface Charge { readonly request: AdmissionRequest; readonly evaluator: Evaluator; readonly nowMs: number; readonly limited?: readonly LimitedResource[] }

/** The quotas whose status the write changes, as it is to be. Throws 403 when one of them does not allow it. */
export function charge(quotas: readonly Quota[], { request, evaluator, nowMs, limited = [] }: Charge): Quota[] {
  const object = request.object!;
  const limits = quotas.flatMap((quota) => {
    const { hard = {}, used = {} } = quota.status ?? {};
    const limited = limitedNames(hard, evaluator);
    if (limited.length === 0 || !isInScopes(quota, evaluator, object)) return [];
    const problem = evaluator.problem(object, limited);
    if (problem !== undefined) throw refusal(request, `failed quota: ${quota.metadata.name}: ${problem}`);
    if (limited.some((name) => used[name] === undefined)) throw refusal(request, `status unknown for quota: ${quota.metadata.name}, resources: ${limited.toSorted().join(",")}`);
    return [{ quota, hard, used }];
  });
  if (limits.length === 0 && limited.length === 0) return [];
  const usage = usageOf(request, evaluator, object, nowMs);
  const negative = [...usage].filter(([, quantity]) => quantity.sign < 0).map(([name]) => name);
  if (negative.length > 0) throw refusal(request, `quota usage is negative for resource(s): ${negative.toSorted().join(",")}`);
  const old = request.operation === "UPDATE" ? request.oldObject : undefined;
  const grown = (before: Readonly<ApiObject> | undefined): Amounts => withoutZeros(before ? growth(usage, usageOf(request, evaluator, before, nowMs)) : usage);
  const spent = limits.map((limit) => ({ ...limit, requested: grown(old && isInScopes(limit.quota, evaluator, old) ? old : undefined) }));
  if (spent.length > 0 ? spent.every(({ requested }) => requested.size === 0) : grown(old).size === 0) return [];
  const { group, resource } = request;
  const open = uncovered({ limited, group, resource, object, evaluator, usage, quotas, isLimited: (name) => limits.some(({ hard }) => Object.hasOwn(hard, name)) });
  if (open.names.length > 0) throw refusal(request, `insufficient quota to consume: ${open.names.join(",")}`);
  if (open.scopes !== "") throw statusError({ code: 500, reason: "", message: `insufficient quota to match these scopes: ${open.scopes}` }); // upstream's is no 403, either
  return spent.flatMap(({ quota, hard: allHard, used: allUsed, requested: all }) => {
    const names = [...all.keys()].filter((name) => Object.hasOwn(allHard, name)); // a quota may have twenty thousand, of which the write touches one
    const requested = only(all, names), hard = amountsOf(pick(allHard, names)), used = amountsOf(pick(allUsed, names));
    const next = add(used, requested);
    const over = request.subresource === "status" ? [] : exceeding(next, hard);
    if (over.length > 0) throw refusal(request, `exceeded quota: ${quota.metadata.name}, requested: ${format(only(requested, over))}, used: ${format(only(used, over))}, limited: ${format(only(hard, over))}`);
    return equal(used, next) ? [] : [{ ...quota, status: { ...quota.status, used: { ...allUsed, ...listOf(next) } } }];
  });
}

/** What a quota limits of this resource. */
function limitedNames(hard: ResourceList, evaluator: Evaluator): readonly string[] {
  return evaluator.names ? evaluator.names.filter((name) => Object.hasOwn(hard, name)) : Object.keys(hard).filter((name) => evaluator.covers(name));
}

function isInScopes(quota: Quota, evaluator: Evaluator, object: Readonly<ApiObject>): boolean {
  return scopesOf(quota).every((scope) => evaluator.isInScope(object, scope));
}

function pick(list: ResourceList, names: readonly string[]): ResourceList {
  return Object.fromEntries(names.flatMap((name) => (Object.hasOwn(list, name) ? [[name, list[name]!]] : [])));
}

function usageOf({ namespace }: AdmissionRequest, evaluator: Evaluator, object: Readonly<ApiObject>, nowMs: number): Amounts {
  return evaluator.usage(namespaceOf(object) === "" ? { ...object, metadata: { ...object.metadata, namespace } } : object, nowMs);
}
