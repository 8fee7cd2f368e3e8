import { expect, test } from "vitest";
import type { Pod, PodSpec, PodStatus } from "../gen/core.v1.ts";
import { podUsage } from "./pod-usage.ts";

const requirements = (cpu: string): object => ({ requests: { cpu }, limits: { cpu } });

function cpu(status: unknown, spec: Partial<PodSpec> = {}): readonly (string | undefined)[] {
  const pod = { metadata: { name: "p" }, spec: { containers: [{ name: "c", image: "i", resources: requirements("500m") }], ...spec }, status: status as PodStatus } as Pod;
  const usage = podUsage(pod, 0);
  return ["requests.cpu", "limits.cpu"].map((name) => usage.get(name)?.toString());
}

const held = (amount: string): object => ({ name: "c", allocatedResources: { cpu: amount }, resources: requirements(amount) });
const infeasible = { conditions: [{ type: "PodResizePending", status: "True", reason: "Infeasible" }] };

test("while a container is resized the most of what it has and wants counts, unless it cannot be had", () => {
  expect(cpu({})).toEqual(["500m", "500m"]);
  expect(cpu({ containerStatuses: [held("200m")] })).toEqual(["500m", "500m"]);
  expect(cpu({ containerStatuses: [held("900m")] })).toEqual(["900m", "900m"]);
  expect(cpu({ containerStatuses: [held("200m")], ...infeasible })).toEqual(["200m", "200m"]);
  expect(cpu({ containerStatuses: [{ name: "c", resources: {} }], ...infeasible })).toEqual([undefined, undefined]);
});

test("what was promised counts beside what is had, not alone", () => {
  expect(cpu({ containerStatuses: [{ name: "c", allocatedResources: { cpu: "900m" } }] })).toEqual(["500m", "500m"]);
  expect(cpu({ containerStatuses: [{ name: "c", allocatedResources: { cpu: "900m" }, resources: {} }] })).toEqual(["900m", "500m"]);
});

test("sidecars are resized, init containers that end are not", () => {
  const init = (more: object): Partial<PodSpec> => ({ initContainers: [{ name: "i", image: "i", resources: requirements("600m"), ...more }] });
  const status = { initContainerStatuses: [{ ...held("900m"), name: "i" }] };
  expect(cpu(status, init({}))).toEqual(["600m", "600m"]);
  expect(cpu(status, init({ restartPolicy: "Always" }))).toEqual(["1400m", "1400m"]);
});

test("beside sidecars an amount is written as the container's own", () => {
  const init = (requests: object, more: object = {}): object => ({ name: "i", image: "i", resources: { requests }, ...more });
  const initContainers = [init({ cpu: "3k" }, { restartPolicy: "Always" }), init({ cpu: "500Mi" })] as NonNullable<PodSpec["initContainers"]>;
  expect(cpu({}, { initContainers })[0]).toBe("524291000");
});

test("a pod as a whole counts by what it wants", () => {
  expect(cpu({ resources: requirements("900m"), allocatedResources: { cpu: "900m" } }, { resources: requirements("700m") as NonNullable<PodSpec["resources"]> })).toEqual(["700m", "700m"]);
});

test("a pod counts until its grace is over, however long that is", () => {
  const going = (seconds: number | bigint) => ({ metadata: { name: "p", deletionTimestamp: "2026-01-01T00:00:00Z", deletionGracePeriodSeconds: seconds }, spec: { containers: [{ name: "c", image: "i", resources: requirements("500m") }] } }) as unknown as Pod;
  const counts = (pod: Pod): boolean => podUsage(pod, Date.parse("2026-01-01T00:00:31Z")).has("requests.cpu");
  expect([going(30), going(31), going(2n ** 63n - 1n)].map(counts)).toEqual([false, true, true]);
});

test("what many sidecars ask for, each something else, is added up in time that grows with how many there are", { timeout: 5_000 }, () => {
  const initContainers = Array.from({ length: 15_000 }, (_, i) => ({ name: `c${i}`, image: "i", restartPolicy: "Always", resources: { requests: { [`a.b/${i}`]: "2" } } })) as NonNullable<PodSpec["initContainers"]>;
  const pod = { metadata: { name: "p" }, spec: { containers: [{ name: "c", image: "i" }], initContainers } } as Pod;
  expect(["requests.a.b/0", "requests.a.b/14999"].map((name) => podUsage(pod, 0).get(name)?.toString())).toEqual(["2", "2"]);
});
