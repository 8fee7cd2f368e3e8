/**
 * Tells in the status of DeviceTaintRules how far they are: how many pods they make go, have made go, or would if their effect was NoExecute.
 *
 *   rule made or changed ─▶ at once; pods go because of it ─▶ ten seconds later, all that happened meanwhile together
 *
 * Source: kubernetes v1.36 pkg/controller/devicetainteviction/device_taint_eviction.go maybeUpdateRuleStatus
 */
import type { DeviceRequestAllocationResult, ResourceClaim } from "../../api/gen/resource.v1.ts";
import type { DeviceTaintRule } from "../../api/gen/resource.v1alpha3.ts";
import type { Condition } from "../../api/gen/meta.v1.ts";
import { keyOf, type ObjectKey } from "../../api/meta/object-meta.ts";
import { DEVICE_TAINT_RULES, RESOURCE_CLAIMS, RESOURCE_SLICES } from "../../client/resources.ts";
import { timestamp } from "../../lifecycle/clock.ts";
import { type AddKey, type Controller, mapped, type Next } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";

type Rule = Readonly<DeviceTaintRule>;

const MANAGER = "device-taint-eviction-controller";
const IN_PROGRESS = "EvictionInProgress";
export interface Pending { readonly pods: number; readonly namespaces: number }

export interface RuleStatus {
  readonly controller: Controller;
  /** Pods are to go because of them. */
  expect(rules: readonly Rule[]): void;
  /** One has gone because of them. */
  evicted(rules: readonly Rule[]): void;
}

interface Options extends Pick<ControllerDeps, "client" | "informers" | "clock"> {
  /** Between two updates of one rule; by default ten seconds. */
  readonly periodMs?: number | undefined;
  readonly pendingBy: (rule: Rule) => Pending;
}

export function resultsOf({ status }: Readonly<ResourceClaim>): readonly DeviceRequestAllocationResult[] { return status?.allocation?.devices?.results ?? []; }

/** Whether a rule is about the device. One without a selector makes nobody go. */
export function isOf({ spec: { deviceSelector: selector } }: Rule, { driver, pool, device }: Pick<DeviceRequestAllocationResult, "driver" | "pool" | "device">): boolean {
  return selector !== undefined && (selector.driver ?? driver) === driver && (selector.pool ?? pool) === pool && (selector.device ?? device) === device;
}

export function ruleStatusController({ client, informers, clock, periodMs = 10_000, pendingBy }: Options): RuleStatus {
  const rules = informers.of(DEVICE_TAINT_RULES);
  const [claims, slices] = [informers.of(RESOURCE_CLAIMS), informers.of(RESOURCE_SLICES)];
  const ruleClient = client.resource(DEVICE_TAINT_RULES);
  const gone = new Map<string, number>(); // pods that were made to go, by uid of the rule that made them, since the start
  let addKey: AddKey = () => undefined;
  const later = (some: readonly Rule[]): void => { for (const rule of some) addKey(keyOf(rule), periodMs); };

  const controller: Controller = {
    name: "device-taint-rule-status",
    workers: 1,
    watches: [
      mapped(rules, ({ object, old, deleted }): ObjectKey[] => {
        if (deleted) gone.delete(object.metadata.uid);
        return deleted || (old?.metadata.uid === object.metadata.uid && Bun.deepEquals(old.spec, object.spec)) ? [] : [keyOf(object)];
      }),
      { whenSynced: () => Promise.resolve(), subscribe(add) { addKey = add; return () => { addKey = () => undefined; }; } },
    ],
    reads: [claims, slices],
    async reconcile(key, { signal }): Promise<Next> {
      const rule = rules.get(key);
      if (!rule) return;
      const before = rule.status?.conditions?.find(({ type }) => type === IN_PROGRESS);
      const nowMs = clock.nowMs();
      const sinceMs = before ? nowMs - Date.parse(before.lastTransitionTime) : periodMs;
      if (before?.observedGeneration === rule.metadata.generation && sinceMs >= 0 && sinceMs < periodMs) return { againInMs: periodMs - sinceMs };
      const { status, reason, message } = progress(rule, { evicted: gone.get(rule.metadata.uid) ?? 0, pending: () => pendingBy(rule), devices: () => devicesOf(rule) });
      const next: Condition = { type: IN_PROGRESS, status, reason, message, observedGeneration: rule.metadata.generation ?? 0, lastTransitionTime: before?.lastTransitionTime ?? "" };
      if (Bun.deepEquals({ message: "", ...before }, next)) return;
      const { name, uid } = rule.metadata;
      const conditions = [{ ...next, lastTransitionTime: timestamp(nowMs) }];
      await rules.caughtUp(
        [await ruleClient.apply({ apiVersion: "resource.k8s.io/v1beta2", kind: "DeviceTaintRule", metadata: { name, uid }, status: { conditions } } as never, { signal, fieldManager: MANAGER, force: true, subresource: "status" })],
        signal,
      );
    },
  };
  return {
    controller, expect: later,
    evicted(some) {
      for (const { metadata: { uid } } of some) gone.set(uid, (gone.get(uid) ?? 0) + 1);
      later(some);
    },
  };

  /** How many the rule is about: of those that drivers publish, and of those that claims have. */
  function devicesOf(rule: Rule): { readonly published: number; readonly allocated: number } {
    const pools = Map.groupBy(slices.list(), ({ spec }) => `${spec.driver}/${spec.pool.name}`);
    let published = 0;
    for (const pool of pools.values()) {
      const newest = pool.reduce((most, { spec }) => (spec.pool.generation > most ? spec.pool.generation : most), pool[0]!.spec.pool.generation);
      for (const { spec } of pool) if (spec.pool.generation === newest) published += (spec.devices ?? []).filter(({ name }) => isOf(rule, { driver: spec.driver, pool: spec.pool.name, device: name })).length;
    }
    return { published, allocated: [...claims.list()].flatMap(resultsOf).filter((result) => isOf(rule, result)).length };
  }
}

export interface RuleFacts {
  /** Pods that have gone because of it. */
  readonly evicted: number;
  pending(): Pending;
  devices(): { readonly published: number; readonly allocated: number };
}

/** The condition of a rule, in upstream's words. */
export function progress({ spec: { taint } }: Rule, facts: RuleFacts): Pick<Condition, "status" | "reason" | "message"> {
  const { evicted } = facts;
  const history = evicted > 0 ? [`${count(evicted, "pod")} evicted since starting the controller.`] : [];
  const told = (status: Condition["status"], reason: string, ...message: string[]): Pick<Condition, "status" | "reason" | "message"> => ({ status, reason, message: [...message, ...history].join(" ") });
  if (taint?.effect === "NoExecute") {
    const { pods, namespaces } = facts.pending();
    if (pods > 0) return told("True", "PodsPendingEviction", `${count(pods, "pod")} ${pods === 1 ? "needs" : "need"} to be evicted in ${different(namespaces)}.`);
    return told("False", evicted > 0 ? "Completed" : "NotStarted");
  }
  if (taint?.effect !== "None") return told("False", "OtherEffect", "Eviction only happens for the NoExecute effect.");
  const { pods, namespaces } = facts.pending(), { published, allocated } = facts.devices();
  return told(
    "False", "NoEffect", `${count(published, "published device")} selected.`, `${count(allocated, "allocated device")} selected.`, `${count(pods, "pod")} would be evicted in ${different(namespaces)} if the effect was NoExecute.`,
    "This information will not be updated again. Recreate the DeviceTaintRule to trigger an update.",
  );
}

function count(many: number, what: string): string { return `${many} ${what}${many === 1 ? "" : "s"}`; }

function different(namespaces: number): string { return count(namespaces, namespaces === 1 ? "namespace" : "different namespace"); }
