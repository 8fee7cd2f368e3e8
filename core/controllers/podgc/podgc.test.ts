import { expect, test } from "vitest";
import { eventually, fakeApi } from "../../../test/fake-api.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import { statusError } from "../../api/meta/status-error.ts";
import { PODS } from "../../client/resources.ts";
import { metricsRegistry } from "../../observe/metrics.ts";
import { systemClock } from "../../lifecycle/clock.ts";
import { podGcController } from "./podgc.ts";

test("finished pods beyond the threshold go, the oldest first, and are counted", async () => {
  const metrics = metricsRegistry();
  const api = fakeApi({ clock: systemClock });
  const call = { signal: new AbortController().signal };
  for (const name of ["a", "b", "c"]) {
    const made = await api.client.resource(PODS).create({ apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "default" }, spec: { containers: [{ name: "c" }] } }, call);
    await api.client.resource(PODS).updateStatus({ ...made, status: { phase: name === "c" ? "Running" : "Succeeded" } }, call);
  }
  await withControllers((deps) => [podGcController({ ...deps, metrics, terminatedMax: 1 })], async () => {
    await eventually(() => api.all(PODS).map(({ metadata }) => metadata.name).join(), (names) => names === "b,c");
  }, { api });
  expect(metrics.render()).toContain('\npod_gc_collector_force_delete_pods_total{namespace="default",reason="terminated"} 1\n');
});

test("pods go though a node that others name cannot be asked for", async () => {
  let aheadMs = 0;
  const clock = { ...systemClock, uptimeMs: () => performance.now() + aheadMs, after: (ms: number, work: () => void) => systemClock.after(Math.min(ms, 10), work) };
  await withControllers((deps) => [podGcController({ ...deps, terminatedMax: 1 })], async (api, call) => {
    const pods = api.client.resource(PODS);
    const make = (name: string, spec: object, phase: string) => pods.create({ apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "default" }, spec: { containers: [{ name: "c" }], ...spec }, status: { phase } } as never, call);
    api.fail = ({ path }) => (path.endsWith("/nodes/gone") ? statusError({ code: 500, reason: "InternalError", message: "no" }) : undefined);
    await make("lost", { nodeName: "gone" }, "Running");
    await Bun.sleep(50);
    aheadMs += 41_000;
    for (const name of ["a", "b"]) await make(name, {}, "Succeeded");
    await eventually(() => api.all(PODS).map(({ metadata }) => metadata.name).sort().join(), (names) => names === "b,lost");
    api.fail = undefined;
    await eventually(() => api.all(PODS).map(({ metadata }) => metadata.name).join(), (names) => names === "b");
  }, { clock });
});
