import { expect, test } from "vitest";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import { silentLog } from "../../../core/observe/log.ts";
import type { Cri } from "../../cri/client.ts";
import { IMAGE_GC_DEFAULTS, imageGc } from "./gc.ts";
import { fullness, type KnownImage, observe, shownSize, victims } from "./gc-plan.ts";

const image = (id: string, sizeBytes = 100, pinned = false): KnownImage => ({ id, sizeBytes, pinned });
const all = [image("pause", 1, true), image("old"), image("older"), image("in-use"), image("new")];

test("longest unused first, but none that was just seen for the first time", () => {
  let seen = observe(new Map(), all.slice(0, 4), new Set(["older", "old"]), 0);
  seen = observe(seen, all.slice(0, 4), new Set(["old"]), 10);
  seen = observe(seen, all, new Set(["in-use"]), 20);
  expect(victims(all.filter(({ id }) => id !== "in-use"), seen, 15).map(({ id }) => id)).toEqual(["older", "old"]);
  expect(victims(all.filter(({ id }) => id !== "in-use"), seen, 9).map(({ id }) => id), "used a moment ago").toEqual(["older", "old"]);
});

test("what only root may still write counts as used, and parts of a percent too", () => {
  expect(fullness({ capacityBytes: 1000, availableBytes: 159 }, 80)).toEqual({ usedPercent: 85, excessBytes: 41 });
  expect(fullness({ capacityBytes: 1000, availableBytes: 160 }, 80)).toEqual({ usedPercent: 84, excessBytes: 40 });
});

test.each([[1023, "1023 B"], [0, "0 B"], [1536, "1.5 KiB"], [100 * 1024 ** 3, "100.0 GiB"], [5000 * 1024 ** 4, "5000.0 TiB"]])("%d bytes are %s", (bytes, shown) => {
  expect(shownSize(bytes)).toBe(shown);
});

const MINUTE_MS = 60_000;

function collecting({ images, containers = [], mounted = [], availableBytes = 100, capacityBytes = 1000 }: { readonly images: readonly { readonly id: string; readonly size: number }[]; readonly containers?: readonly { readonly image_id: string }[]; readonly mounted?: readonly string[]; readonly availableBytes?: number; readonly capacityBytes?: number }, options = IMAGE_GC_DEFAULTS) {
  const removed: (string | undefined)[] = [];
  const told: string[] = [];
  let nowMs = 0, setMs = 0, looks = 0; // the clock was set by so much
  const cri = { call: async (method: string, request: { image?: { image?: string } }) => {
    if (method === "ImageService/RemoveImage" && request.image?.image === "stuck") throw new Error("device or resource busy");
    if (method === "ImageService/RemoveImage") removed.push(request.image?.image);
    return method === "ImageService/ListImages" ? { images: images.filter(({ id }) => !removed.includes(id)) } : { containers };
  } } as unknown as Cri;
  const gc = imageGc({
    cri, disk: async () => ({ availableBytes, capacityBytes }), mounted: () => mounted, log: silentLog, node: {}, onLooked: async () => void looks++, events: { event: (_, __, reason, text) => void told.push(`${reason}: ${text}`) },
    clock: { ...systemClock, nowMs: () => nowMs + setMs, uptimeMs: () => nowMs, async *every() { for (; nowMs < 3 * MINUTE_MS; nowMs += MINUTE_MS) yield; } },
  }, options);
  return { gc, removed, told, looks: () => looks, wait: (ms: number) => { nowMs += ms; }, set: (ms: number) => { setMs += ms; }, run: async () => await gc.run(new AbortController().signal, () => undefined) };
}

test("a full disk is brought down to the low mark, on the third tick when images are old enough; images of containers and of their volumes stay", async () => {
  const { run, removed, told, looks } = collecting({ images: [{ id: "a", size: 60 }, { id: "b", size: 60 }, { id: "volume", size: 60 }, { id: "c", size: 60 }], containers: [{ image_id: "b" }], mounted: ["volume"] });
  await run();
  expect(removed).toEqual(["a", "c"]);
  expect(looks()).toBeGreaterThan(0); // what is noted of images is tidied up
  const failed = "Insufficient free disk space on the node's image filesystem (90% of 1000 B used). Failed to free sufficient space by deleting unused images (freed 0 bytes). Investigate disk usage, as it could be used by active images, logs, volumes, or other data.";
  expect(told).toEqual([`FreeDiskSpaceFailed: ${failed}`, `FreeDiskSpaceFailed: ${failed}`, `ImageGCFailed: ${failed}`]);
});

test("an image that cannot be removed keeps no other; a second failure in a row is told", async () => {
  const { run, removed, told } = collecting({ images: [{ id: "stuck", size: 60 }, { id: "a", size: 60 }] }, { ...IMAGE_GC_DEFAULTS, ageMinMs: 0 });
  await run();
  expect(removed).toEqual(["a"]);
  expect(told).toContain("ImageGCFailed: wanted to free 100 bytes, but freed 0 bytes space with errors in image deletion: device or resource busy");
});

test("a disk of no size is told", async () => {
  const { run, told } = collecting({ images: [], capacityBytes: 0 });
  await run();
  expect(told[0]).toBe("InvalidDiskCapacity: invalid capacity 0 on image filesystem");
});

test("100 percent: images are not collected", async () => {
  const { run, removed } = collecting({ images: [{ id: "a", size: 60 }], availableBytes: 0 }, { ...IMAGE_GC_DEFAULTS, highPercent: 100, ageMinMs: 0 });
  await run();
  expect(removed).toEqual([]);
});

test("an eviction takes what was there from the beginning, and not what was just pulled", async () => {
  const images = [{ id: "there", size: 60 }];
  const { gc, removed, wait } = collecting({ images });
  const { signal } = new AbortController();
  expect(await gc.removeUnused(signal)).toBe(60);
  images.push({ id: "new", size: 60 });
  wait(10_000);
  expect(await gc.removeUnused(signal)).toBe(0);
  wait(2 * MINUTE_MS);
  expect([await gc.removeUnused(signal), removed]).toEqual([60, ["there", "new"]]);
});

test("a clock that is set makes no image old, nor keeps one from becoming so", async () => {
  const images = [{ id: "there", size: 60 }];
  const { gc, removed, wait, set } = collecting({ images });
  const { signal } = new AbortController();
  await gc.removeUnused(signal);
  images.push({ id: "new", size: 60 });
  wait(10_000);
  expect(await gc.removeUnused(signal)).toBe(0);
  set(50 * 366 * 24 * 60 * MINUTE_MS);
  expect(await gc.removeUnused(signal)).toBe(0);
  set(-100 * 366 * 24 * 60 * MINUTE_MS);
  wait(2 * MINUTE_MS);
  expect([await gc.removeUnused(signal), removed]).toEqual([60, ["there", "new"]]);
});
