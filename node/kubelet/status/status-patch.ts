/**
 * What changed between two statuses, as a strategic merge patch of …/pods/<name>/status. Conditions are sent one by one, so that those of
 * others stay; lists that are replaced say so; what is gone is null.
 */
import type { PodCondition, PodStatus } from "../../../core/api/gen/core.v1.ts";
import { isTerminalPhase } from "../pod-spec.ts";
import { KUBELET_CONDITIONS, PASSING_CONDITIONS } from "./conditions.ts";

type Patch = Record<string, unknown>;

/** Lists the server would merge by key and which are whole each time. */
const REPLACED = ["podIPs", "hostIPs"] as const;

/** Undefined when nothing changed. `uid` guards against a namesake. */
export function statusPatch(uid: string, before: PodStatus, after: PodStatus): object | undefined {
  const patch: Patch = {};
  function compare(key: keyof PodStatus): void {
    if (key === "conditions" || (same(before[key], after[key]) && !(key === "resources" && key in before !== key in after))) return;
    if (after[key] !== undefined || OURS.has(key)) patch[key] = MERGED.has(key) ? mergePatch(before[key], after[key]) : after[key] ?? null;
  }
  for (const key in before) compare(key as keyof PodStatus);
  for (const key in after) if (!(key in before)) compare(key as keyof PodStatus);
  for (const key of REPLACED) if (Array.isArray(patch[key]) && before[key]?.length) patch[key] = [...(patch[key] as object[]), { $patch: "replace" }];
  const gone = (before.conditions ?? []).filter(({ type }) => PASSING_CONDITIONS.includes(type) && !after.conditions?.some((condition) => condition.type === type));
  const ends = !isTerminalPhase(before.phase) && isTerminalPhase(after.phase);
  const conditions = [...changedConditions(before.conditions ?? [], after.conditions ?? [], ends ? [...KUBELET_CONDITIONS, DISRUPTION] : KUBELET_CONDITIONS), ...gone.map(({ type }) => ({ type, $patch: "delete" }))];
  if (conditions.length > 0) patch["conditions"] = conditions;
  return Object.keys(patch).length === 0 ? undefined : jsonCopy({ metadata: { uid }, status: patch });
}

/** Fields the kubelet may remove again. nominatedNodeName, resize … belong to others. */
const OURS: ReadonlySet<string> = new Set(["message", "reason", "podIP", "podIPs", "ephemeralContainerStatuses", "initContainerStatuses"]);

/** Those that the server puts into what is there, key by key. */
const MERGED: ReadonlySet<string> = new Set(["resources", "allocatedResources"] satisfies (keyof PodStatus)[]);

/** What has to be put into `before` to make it `after`: what is gone is null. */
export function mergePatch(before: unknown, after: unknown): unknown {
  if (after === undefined) return null;
  return isMap(before) && isMap(after) ? Object.fromEntries(Object.keys({ ...before, ...after }).map((key) => [key, mergePatch(before[key], after[key])])) : after;
}

function isMap(value: unknown): value is Patch { return typeof value === "object" && value !== null && !Array.isArray(value); }

/** Shared with others: ours to say only as the pod ends. Saying it again later would be a quarrel with who has taken it back. */
const DISRUPTION = "DisruptionTarget";

function changedConditions(before: readonly PodCondition[], after: readonly PodCondition[], ours: readonly string[]): PodCondition[] {
  return after.filter((condition) => ours.includes(condition.type) && !same(condition, before.find(({ type }) => type === condition.type)))
    .map((condition) => {
      const old = before.find(({ type }) => type === condition.type);
      const cleared = Object.keys(old ?? {}).filter((key) => condition[key as keyof PodCondition] === undefined && key !== "lastProbeTime");
      return Object.assign({}, condition, Object.fromEntries(cleared.map((key) => [key, null])));
    });
}

/** What may be handed over: nothing shared with anyone, nothing undefined. */
export function jsonCopy<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}

/** Equal as JSON objects: the order of keys does not count, undefined is absent. */
export function same(a: unknown, b: unknown): boolean {
  if (a === b || (a == null && b == null)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return isEmpty(a) && isEmpty(b);
  if (Array.isArray(a) || Array.isArray(b)) return Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((item, i) => same(item, b[i]));
  for (const key in a) if (!same((a as Patch)[key], (b as Patch)[key])) return false;
  for (const key in b) if (!Object.hasOwn(a, key) && !same(undefined, (b as Patch)[key])) return false;
  return true;
}

/** {}, [] and absent are the same thing to the API server (lastState, a node's images), but for a pod's `resources`. */
function isEmpty(value: unknown): boolean {
  return value == null || (typeof value === "object" && Object.keys(value).length === 0);
}
