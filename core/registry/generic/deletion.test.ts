import { expect, test } from "vitest";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { planDelete } from "./deletion.ts";
import type { Resource } from "./resource.ts";

const NOW_MS = Date.UTC(2026, 0, 1, 12);
const graceful = { gracePeriodSeconds: (_: unknown, asked: number | undefined) => asked ?? 30 } as unknown as Resource;

/** What a delete with a grace of `asked` seconds leaves of the grace of an object that is being deleted already, and when it ends, in seconds from now. */
function again(before: number, asked: number | undefined, endsIn = before): unknown {
  const object = { apiVersion: "v1", kind: "Pod", metadata: { name: "a", deletionTimestamp: new Date(NOW_MS + endsIn * 1000).toISOString(), deletionGracePeriodSeconds: before } } as ApiObject;
  const plan = planDelete(object, graceful, { gracePeriodSeconds: asked }, NOW_MS);
  const next = plan.type === "mark" ? plan.next : plan.type === "remove" ? plan.last : undefined;
  return next ? [plan.type, next.metadata.deletionGracePeriodSeconds, (Date.parse(next.metadata.deletionTimestamp!) - NOW_MS) / 1000] : plan.type;
}

test.each<[before: number, asked: number | undefined, endsIn: number | undefined, plan: unknown]>([
  [-1, -1, undefined, "keep"], // less than none is a second, of both
  [-1, 0, undefined, ["remove", 0, 0]],
  [-1, 1, undefined, "keep"],
  [-1, 2, undefined, "keep"],
  [0, -1, undefined, "remove"],
  [0, 2, undefined, "remove"],
  [1, -1, undefined, "keep"],
  [1, 0, undefined, ["remove", 0, 0]],
  [1, 2, undefined, "keep"],
  [2, undefined, undefined, "keep"],
  [2, -1, undefined, ["mark", 1, 1]],
  [2, 0, undefined, ["remove", 0, 0]],
  [2, 1, undefined, ["mark", 1, 1]],
  [2, 2, undefined, "keep"],
  [60, 50, -60, ["mark", 1, 0]], // it is over already, and still for its node to end it
  [60, 0, -60, ["remove", 0, 0]],
])("a grace of %d s of an object that goes already, when %d s are asked for (it ends in %d s)", (before, asked, endsIn, plan) => {
  expect(again(before, asked, endsIn)).toEqual(plan);
});
