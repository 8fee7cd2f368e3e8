import { expect, test } from "vitest";
import { stored } from "../../../test/static-informer.ts";
import type { Pod } from "../../api/gen/core.v1.ts";
import { byAverage, byShare, byTotal, byUtilization, type PodMetric, type PodsState } from "./replicas.ts";

const NOW = Date.parse("2026-07-01T12:00:00Z");
interface Given { readonly use?: number; readonly phase?: string; readonly ready?: boolean; readonly ageSeconds?: number; readonly readySeconds?: number; readonly going?: boolean; readonly request?: string | null }
const at = (secondsAgo: number) => new Date(NOW - secondsAgo * 1000).toISOString();
const pod = (name: string, { phase = "Running", ready = true, ageSeconds = 3600, readySeconds = 3500, going = false, request = "1" }: Given) => stored<Pod>("v1", "Pod", `ns/${name}`, {
  metadata: going ? { deletionTimestamp: at(0) } : {}, spec: { containers: [{ name: "c", resources: request === null ? {} : { requests: { cpu: request } } }] },
  status: { phase, startTime: at(ageSeconds), conditions: [{ type: "Ready", status: ready ? "True" : "False", lastTransitionTime: at(readySeconds) }] },
});
const state = (given: readonly Given[], currentReplicas = given.length): PodsState => ({
  pods: given.map((one, i) => pod(`p${i}`, one)), currentReplicas, tolerances: { up: 0.1, down: 0.1 }, resource: "cpu", nowMs: NOW,
  metrics: new Map(given.flatMap(({ use }, i): [string, PodMetric][] => (use === undefined ? [] : [[`p${i}`, { value: use, timeMs: NOW - 5000, windowMs: 10_000 }]]))),
});

test.each([
  ["on target", [{ use: 500 }, { use: 500 }], 2, 50],
  ["a little above is within tolerance", [{ use: 540 }, { use: 550 }], 2, 54],
  ["twice the target", [{ use: 1000 }, { use: 1000 }], 4, 100],
  ["rounded up", [{ use: 900 }, { use: 400 }], 3, 65],
  ["half the target", [{ use: 200 }, { use: 300 }], 1, 25],
  ["a pod without metrics counts as idle on the way up", [{ use: 1000 }, {}], 2, 100],
  ["and as busy on the way down", [{ use: 100 }, { use: 100 }, {}], 3, 10],
  ["one that is not ready counts as idle on the way up", [{ use: 1000 }, { use: 900, ready: false, ageSeconds: 60, readySeconds: 60 }], 2, 100],
  ["and not at all on the way down", [{ use: 100 }, { use: 900, ready: false, ageSeconds: 60, readySeconds: 60 }], 1, 10],
  ["measured before it was ready", [{ use: 500 }, { use: 5000, ageSeconds: 60, readySeconds: 3 }], 2, 50],
  ["started by a clock that was years ahead", [{ use: 1000 }, { use: 1000, ageSeconds: -3e8, readySeconds: -3.1e8 }], 4, 100],
  ["one that is going or has failed is not there", [{ use: 1000 }, { use: 9000, going: true }, { use: 9000, phase: "Failed" }], 2, 100],
  ["more percent than the status has room for", [{ use: 50_000 * 2 ** 20, request: "64m" }], 42_949_673, 2 ** 31 - 1],
] as const)("utilization, 50 %% wanted: %s", (_, given, replicas, utilization) => {
  expect(byUtilization(state(given), { target: 50, container: "" })).toMatchObject({ replicas, utilization });
});

test.each([
  ["no pods returned by selector while calculating replica count", [], ""],
  ["did not receive metrics for targeted pods (pods might be unready)", [{}, {}], ""],
  ["missing request for cpu in container c of Pod p0", [{ use: 1, request: null }], ""],
  ["container sidecar not found in Pod p0", [{ use: 1 }], "sidecar"],
] as const)("%s", (message, given, container) => { expect(() => byUtilization(state(given), { target: 50, container })).toThrow(message); });

test("of a pod that asks for something as a whole, the rest is what its containers ask for, and overhead comes on top", () => {
  const asking = (resources: object, request: string | null = "200m") => {
    const [one] = state([{ use: 300, request }]).pods;
    return { ...state([{ use: 300 }]), pods: [{ ...one!, spec: { ...one!.spec, resources, overhead: { cpu: "100m" } } }] };
  };
  const wanted = { target: 50, container: "" };
  expect(byUtilization(asking({ requests: { memory: "1Gi" } }), wanted).utilization).toBe(100);
  expect(byUtilization(asking({ requests: { cpu: "400m" } }), wanted).utilization).toBe(60);
  expect(byUtilization(asking({}), wanted).utilization).toBe(150);
});

test("average values, totals and shares", () => {
  expect(byAverage({ ...state([{ use: 300 }, { use: 900 }]), resource: "" }, 200)).toMatchObject({ replicas: 6, average: 600 });
  const two = state([{}, { ready: false }], 2);
  expect(byTotal(two, 3000, 1000)).toBe(3); // of the pods that are ready
  expect(byTotal(two, 1050, 1000)).toBe(2);
  expect(byTotal({ ...two, currentReplicas: 0 }, 2500, 1000)).toBe(3);
  expect(byShare({ statusReplicas: 2, tolerances: two.tolerances }, 7000, 1000)).toEqual({ replicas: 7, average: 3500 });
  expect(byShare({ statusReplicas: 2, tolerances: two.tolerances }, 2100, 1000)).toMatchObject({ replicas: 2 });
});
