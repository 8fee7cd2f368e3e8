/** Who else writes to a pod's status, and what the kubelet does about it. */
import { expect, test } from "vitest";
import type { Pod, PodCondition, PodStatus } from "../../../core/api/gen/core.v1.ts";
import { conflict, statusError } from "../../../core/api/meta/status-error.ts";
import type { Client } from "../../../core/client/client.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import { silentLog } from "../../../core/observe/log.ts";
import { statusPatch } from "./status-patch.ts";
import { statusWriter } from "./status-writer.ts";

const ready = (status: "True" | "False"): PodCondition => ({ type: "Ready", status });
const disruption = (status: "True" | "False"): PodCondition => ({ type: "DisruptionTarget", status, reason: "TerminationByKubelet" });

function podWith(revision: number, status: PodStatus): Pod {
  return { apiVersion: "v1", kind: "Pod", metadata: { name: "p", namespace: "default", uid: "u", resourceVersion: String(revision), creationTimestamp: "" }, spec: { containers: [] }, status };
}

/** What is to come later is kept, and comes when it is told to. */
function heldClock(): Clock & { readonly held: { readonly ms: number; readonly work: () => void }[] } {
  const held: { readonly ms: number; readonly work: () => void }[] = [];
  return {
    held, nowMs: () => 0, uptimeMs: () => 0, sleep: () => new Promise(() => {}), every: () => { throw new Error("unused"); },
    after(ms, work) {
      const timer = { ms, work };
      held.push(timer);
      return { cancel: () => void held.splice(held.indexOf(timer), 1) };
    },
  };
}

test("what another has written over is said again after ten seconds, once, and not at all if it agrees by then", async () => {
  let api = podWith(1, {});
  let writes = 0;
  const patch = async (_: Pod, __: string, { status }: { status: PodStatus }) => {
    writes++;
    return (api = podWith(Number(api.metadata.resourceVersion) + 1, { ...api.status, ...status }));
  };
  const clock = heldClock();
  const writer = statusWriter({ client: { resource: () => ({ patch }) } as unknown as Client, clock, log: silentLog, signal: new AbortController().signal, objectOf: () => api });
  writer.reconcile(api); // nothing has been said yet
  writer.set(api, { conditions: [ready("True")] });
  await writer.written("u");
  writer.reconcile(api);
  expect([writes, clock.held.length]).toEqual([1, 0]);

  for (const revision of [10, 11, 12]) writer.reconcile((api = podWith(revision, { conditions: [ready("False")] })));
  expect([writes, clock.held.map(({ ms }) => ms)]).toEqual([1, [10_000]]);
  clock.held.shift()!.work();
  await writer.written("u");
  expect([writes, api.status?.conditions]).toEqual([2, [{ type: "Ready", status: "True" }]]);

  writer.reconcile((api = podWith(20, { conditions: [ready("False")] })));
  writer.reconcile((api = podWith(21, { conditions: [ready("True")] })));
  clock.held.shift()!.work();
  await writer.written("u");
  expect(writes).toBe(2);
  writer.reconcile((api = podWith(30, { conditions: [ready("False")] })));
  writer.forget("u");
  expect(clock.held).toEqual([]);
});

test("a pod whose status is refused as a conflict is no other's: it is written again", async () => {
  let api = podWith(1, {});
  const refusals = [conflict({ group: "", resource: "pods" }, "p"), statusError({ code: 409, reason: "Conflict", message: "admission webhook \"w\" denied the request" })];
  const patch = async (_: Pod, __: string, { status }: { status: PodStatus }) => {
    const refusal = refusals.shift();
    if (refusal) throw refusal;
    return (api = podWith(2, status));
  };
  const writer = statusWriter({ client: { resource: () => ({ patch }) } as unknown as Client, clock: { ...heldClock(), sleep: async () => undefined }, log: silentLog, signal: new AbortController().signal, objectOf: () => api });
  writer.set(api, { phase: "Running" });
  await writer.written("u");
  expect(api.status).toEqual({ phase: "Running" });
});

test("a disruption is announced as the pod ends, and never again: the disruption controller may take it back", () => {
  const told = { phase: "Running" as const, conditions: [disruption("True")] };
  expect(statusPatch("u", { phase: "Running", conditions: [disruption("False")] }, told)).toBeUndefined();
  expect(statusPatch("u", { phase: "Running" }, told)).toBeUndefined();
  expect(statusPatch("u", { phase: "Running" }, { ...told, phase: "Failed" })).toEqual({ metadata: { uid: "u" }, status: { phase: "Failed", conditions: [disruption("True")] } });
  expect(statusPatch("u", { phase: "Failed", conditions: [disruption("False")] }, { ...told, phase: "Failed" })).toBeUndefined();
});
