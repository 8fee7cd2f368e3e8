import { expect, test } from "vitest";
import { stored } from "../../test/static-informer.ts";
import type { Pod } from "../api/gen/core.v1.ts";
import { affinityTerms } from "./affinity-terms.ts";

test("the terms of a pod that stays as it is are read once, however often it is held against others", () => {
  const term = { topologyKey: "zone", labelSelector: { matchLabels: { app: "web" } } };
  const pod = stored<Pod>("v1", "Pod", "ns/a", { spec: { containers: [], affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } } } });
  const asStored = Object.freeze({ ...pod }), changing = { ...pod };
  expect(affinityTerms(asStored).antiAffinity).toMatchObject([{ topologyKey: "zone", namespaces: ["ns"] }]);
  expect(affinityTerms(asStored)).toBe(affinityTerms(asStored));
  expect(affinityTerms(changing)).not.toBe(affinityTerms(changing));
});
