import { expect, test } from "vitest";
import { columnTexts } from "./column-texts.ts";

test("columns are described by the documentation of the fields they show, which is loaded once, when it is first asked for", async () => {
  let loads = 0;
  const texts = columnTexts(() => {
    loads++;
    return loads === 1 ? Promise.reject(new Error("no file")) : Promise.resolve({ "io.k8s.api.core.v1.PodStatus": { podIP: "Its address.\n\nPossible enum values:\n - `\"a\"`", phase: "No column's." } });
  });
  expect(loads).toBe(0);
  await expect(texts()).rejects.toThrow("no file");
  const describe = (await texts())!;
  expect([describe("api.core.v1.PodStatus.podIP"), describe("api.core.v1.PodStatus.phase")]).toEqual(["Its address.", undefined]);
  expect(await texts()).toBe(describe);
  expect(loads).toBe(2);
});
