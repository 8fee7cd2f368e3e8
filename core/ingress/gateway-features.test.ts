import { expect, test } from "vitest";
import { knowsFeatures, SUPPORTED_FEATURES } from "./gateway-features.ts";

test("what is served is said sorted, and to CRDs that know the field", () => {
  const names = SUPPORTED_FEATURES.map(({ name }) => name);
  expect(names).toEqual([...new Set(names)].toSorted());
  expect(names.length, "as many as the field takes").toBeLessThanOrEqual(64);
  expect(["v1.0.0", "v1.3.0", "v1.4.0", "v1.10.1", "v2.0.0", "v0.8.1", "v0.0.0-dev", "v1.4.0-rc.1", "", "latest", undefined].map(knowsFeatures)).toEqual([false, false, true, true, true, false, true, true, false, false, false]);
});
