import { expect, test } from "vitest";
import { eventually } from "../../../test/fake-api.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import { JOBS } from "../../client/resources.ts";
import { systemClock } from "../../lifecycle/clock.ts";
import { ttlAfterFinishedController } from "./ttlafterfinished.ts";

test("a Job that has finished by a clock that was years ahead goes, too, some time after that is seen", async () => {
  let aheadMs = 0;
  const clock = { ...systemClock, uptimeMs: () => performance.now() + aheadMs, after: (ms: number, work: () => void) => systemClock.after(Math.min(ms, 10), work) };
  await withControllers((deps) => [ttlAfterFinishedController(deps)], async (api, call) => {
    for (const [name, ttlSecondsAfterFinished] of [["goes", 60], ["later", 3600], ["stays", undefined]] as const) {
      const lastTransitionTime = new Date(Date.now() + 4e11).toISOString();
      await api.client.resource(JOBS).create({ apiVersion: "batch/v1", kind: "Job", metadata: { name, namespace: "ns" }, spec: { ttlSecondsAfterFinished, template: {} }, status: { conditions: [{ type: "Complete", status: "True", lastTransitionTime }] } } as never, call);
    }
    const going = () => api.all(JOBS).filter(({ metadata }) => metadata.deletionTimestamp !== undefined).map(({ metadata }) => metadata.name).join();
    await Bun.sleep(50);
    expect(api.all(JOBS)).toHaveLength(3);
    expect(going()).toBe("");
    aheadMs = 61_000;
    await eventually(() => `${going()} of ${api.all(JOBS).length}`, (left) => left === "goes of 3" || left === " of 2");
  }, { clock });
});
