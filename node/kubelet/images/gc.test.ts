import { expect, test } from "vitest";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import { silentLog } from "../../../core/observe/log.ts";
import type { Cri } from "../../cri/client.ts";
import { imageGc } from "./gc.ts";
import { type KnownImage, observe, victims } from "./gc-plan.ts";

const image = (id: string, sizeBytes = 100, pinned = false): KnownImage => ({ id, sizeBytes, pinned });
const all = [image("pause", 1, true), image("old"), image("older"), image("in-use"), image("new")];

test("longest unused first, and only as many as needed", () => {
  let seen = observe(new Map(), all.slice(0, 4), new Set(["older", "old"]), 0);
  seen = observe(seen, all.slice(0, 4), new Set(["old"]), 10);
  seen = observe(seen, all, new Set(["in-use"]), 20);
  expect(victims(all, seen, 1, 15).map(({ id }) => id)).toEqual(["older"]);
  expect(victims(all, seen, 9999, 15).map(({ id }) => id)).toEqual(["older", "old"]);
});

test("a full disk is brought down to the low mark, on the third tick when images are old enough, also if one of them cannot be removed", async () => {
  const removed: (string | undefined)[] = [];
  const told: string[] = [];
  let nowMs = 0;
  const cri = { call: async (method: string, request: { image?: { image?: string } }) => {
    if (method === "ImageService/RemoveImage" && request.image?.image === "stuck") throw new Error("device or resource busy");
    if (method === "ImageService/RemoveImage") removed.push(request.image?.image);
    return method === "ImageService/ListImages" ? { images: [{ id: "stuck", size: 60 }, { id: "a", size: 60 }, { id: "b", size: 60 }] } : { containers: [{ image_id: "b" }] };
  } } as unknown as Cri;
  const gc = imageGc({
    cri, disk: async () => ({ usedBytes: 900, capacityBytes: 1000 }), log: silentLog, node: {}, events: { event: (_, __, reason) => void told.push(reason) },
    clock: { ...systemClock, nowMs: () => nowMs, async *every() { for (; nowMs < 180_000; nowMs += 60_000) yield; } },
  });
  await gc.run(new AbortController().signal, () => undefined);
  expect(removed).toEqual(["a"]);
  expect(new Set(told)).toEqual(new Set(["FreeDiskSpaceFailed"]));
});
