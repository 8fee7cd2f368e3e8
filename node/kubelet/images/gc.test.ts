import { expect, test } from "vitest";
import { silentEvents } from "../../../core/client/events.ts";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import { silentLog } from "../../../core/observe/log.ts";
import type { Cri } from "../../cri/client.ts";
import { imageGc } from "./gc.ts";
import { type KnownImage, observe, victims } from "./gc-plan.ts";

const image = (id: string, sizeBytes = 100, pinned = false): KnownImage => ({ id, sizeBytes, pinned });
const all = [image("pause", 1, true), image("old"), image("older"), image("in-use"), image("new")];
const idle = all.filter(({ id }) => id !== "in-use");

test("longest unused first, and only as many as needed", () => {
  let seen = observe(new Map(), all.slice(0, 4), new Set(["older", "old"]), 0);
  seen = observe(seen, all.slice(0, 4), new Set(["old"]), 10);
  seen = observe(seen, all, new Set(["in-use"]), 20);
  expect(victims(idle, seen, 1, 15).map(({ id }) => id)).toEqual(["older"]);
  expect(victims(idle, seen, 9999, 15).map(({ id }) => id)).toEqual(["older", "old"]);
  expect(victims(idle, seen, 9999, 5).map(({ id }) => id)).toEqual(["older", "old"]); // when it was used does not spare it, when it came does
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
    cri, disk: async () => ({ availableBytes: 100, capacityBytes: 1000 }), log: silentLog, node: {}, events: { event: (_, __, reason, message) => void told.push(`${reason}: ${message}`) },
    clock: { ...systemClock, nowMs: () => nowMs, async *every() { for (; nowMs < 180_000; nowMs += 60_000) yield; } },
  });
  await gc.run(new AbortController().signal, () => undefined);
  expect(removed).toEqual(["a"]);
  const short = (freed: number): string => `Insufficient free disk space on the node's image filesystem (90% of 1000 B used). Failed to free sufficient space by deleting unused images (freed ${freed} bytes). Investigate disk usage, as it could be used by active images, logs, volumes, or other data.`;
  expect(told).toEqual([`FreeDiskSpaceFailed: ${short(0)}`, `FreeDiskSpaceFailed: ${short(0)}`, `ImageGCFailed: ${short(0)}`, `FreeDiskSpaceFailed: ${short(60)}`, `ImageGCFailed: ${short(60)}`]);
});

test("a disk that is about to be full costs no image that has just come, nor one that a container has mounted", async () => {
  const removed: (string | undefined)[] = [];
  const images = [{ id: "there", size: 1 }, { id: "mounted", size: 1 }];
  let nowMs = 0;
  const cri = { call: async (method: string, request: { image?: { image?: string } }) => {
    if (method === "ImageService/RemoveImage") removed.push(request.image?.image);
    if (method === "RuntimeService/ContainerStatus") return { status: { mounts: [{ host_path: "/v" }, { image: { image: "mounted" } }] } };
    return method === "ImageService/ListImages" ? { images } : { containers: [{ id: "c", image_id: "other" }] };
  } } as unknown as Cri;
  const gc = imageGc({ cri, disk: async () => ({ availableBytes: 1, capacityBytes: 1 }), log: silentLog, node: {}, events: silentEvents.from({ component: "kubelet" }), clock: { ...systemClock, nowMs: () => nowMs } });
  const { signal } = new AbortController();
  const removedAt = async (atMs: number, arrived?: string): Promise<number> => {
    nowMs = atMs;
    if (arrived) images.push({ id: arrived, size: 1 });
    removed.length = 0;
    return await gc.removeUnused(signal);
  };
  expect([await removedAt(60_000), removed]).toEqual([1, ["there"]]);
  images.shift();
  expect([await removedAt(70_000, "new"), removed]).toEqual([0, []]);
  expect([await removedAt(190_000, "newer"), removed]).toEqual([1, ["new"]]);
});

test("an image disk of which nothing is known is told of", async () => {
  const told: string[] = [];
  const cri = { call: async () => ({}) } as unknown as Cri;
  const gc = imageGc({ cri, disk: async () => ({ availableBytes: 0, capacityBytes: 0 }), log: silentLog, node: {}, events: { event: (_, type, reason, message) => void told.push(`${type} ${reason}: ${message}`) }, clock: { ...systemClock, async *every() { yield; } } });
  await gc.run(new AbortController().signal, () => undefined);
  expect(told).toEqual(["Warning InvalidDiskCapacity: invalid capacity 0 on image filesystem"]);
});
