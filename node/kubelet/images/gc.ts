/**
 * Image garbage collection: when the image disk is fuller than `highPercent`, remove images no container uses, longest unused first, until it
 * would be at `lowPercent`.
 *
 * Source: kubernetes v1.36 pkg/kubelet/images/image_gc_manager.go, pkg/kubelet/kubelet.go (ImageGCPeriod, StartGarbageCollection)
 */
import type { ObjectReference } from "../../../core/api/gen/core.v1.ts";
import type { EventRecorder } from "../../../core/client/events.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Runnable } from "../../../core/lifecycle/run-all.ts";
import type { Log } from "../../../core/observe/log.ts";
import { type Cri, isCriNotFound } from "../../cri/client.ts";
import { aged, type KnownImage, observe, type Seen, victims } from "./gc-plan.ts";

export const IMAGE_GC_DEFAULTS = { highPercent: 85, lowPercent: 80, ageMinMs: 2 * 60_000, ageMaxMs: 0, periodMs: 5 * 60_000 };

interface Deps {
  readonly cri: Pick<Cri, "call">;
  /** Of the file system images are on. */
  readonly disk: (signal: AbortSignal) => Promise<{ readonly availableBytes: number; readonly capacityBytes: number }>;
  readonly clock: Clock;
  readonly log: Log;
  readonly events: EventRecorder;
  readonly node: ObjectReference;
  readonly onRemoved?: ((id: string, reason: "age" | "space") => Promise<void>) | undefined;
}

export interface ImageGc extends Runnable {
  /** Removes every image nobody uses, now, but those that have just come: the disk is about to be full. Returns how many bytes that were. */
  removeUnused(signal: AbortSignal): Promise<number>;
}

export function imageGc({ cri, disk, clock, log, events, node, onRemoved }: Deps, options = IMAGE_GC_DEFAULTS): ImageGc {
  let seen: Seen = new Map();
  let firstLookMs: number | undefined; // what was there then nobody has just pulled

  async function look(signal: AbortSignal): Promise<readonly KnownImage[]> {
    const [{ images = [] }, { containers = [] }] = await Promise.all([cri.call("ImageService/ListImages", {}, { signal }), cri.call("RuntimeService/ListContainers", {}, { signal })]);
    const known = images.map(({ id = "", size = 0, pinned = false }) => ({ id, sizeBytes: size, pinned }));
    const mounted = await Promise.all(containers.map(async ({ id = "" }) => await mountedImages(id, signal)));
    const inUse = new Set([...containers.flatMap(({ image_id, image_ref, image }) => [image_id ?? "", image_ref ?? "", image?.image ?? ""]), ...mounted.flat()]);
    seen = observe(seen, known, inUse, clock.nowMs());
    firstLookMs ??= clock.nowMs();
    return known.filter(({ id }) => !inUse.has(id));
  }

  /** By id. A container that is gone meanwhile uses none. */
  async function mountedImages(containerId: string, signal: AbortSignal): Promise<readonly string[]> {
    try {
      const { status } = await cri.call("RuntimeService/ContainerStatus", { container_id: containerId }, { signal });
      return (status?.mounts ?? []).flatMap(({ image }) => image?.image ?? []);
    } catch (error) {
      if (isCriNotFound(error)) return [];
      throw error;
    }
  }

  async function remove(chosen: readonly KnownImage[], reason: "age" | "space", signal: AbortSignal): Promise<number> {
    let freedBytes = 0;
    for (const { id, sizeBytes } of chosen) {
      log.info("removing image", { id, sizeBytes });
      try {
        await cri.call("ImageService/RemoveImage", { image: { image: id } }, { signal });
        await onRemoved?.(id, reason);
        freedBytes += sizeBytes;
      } catch (error) {
        if (signal.aborted) throw error;
        log.warn("image could not be removed", { id, error }); // the next one may be
      }
    }
    return freedBytes;
  }

  async function collect(signal: AbortSignal): Promise<void> {
    if (options.ageMaxMs > 0) await remove(aged(await look(signal), seen, clock.nowMs() - options.ageMaxMs), "age", signal);
    const [idle, { availableBytes, capacityBytes }] = await Promise.all([look(signal), disk(signal)]);
    if (capacityBytes === 0) {
      const message = "invalid capacity 0 on image filesystem";
      events.event(node, "Warning", "InvalidDiskCapacity", message);
      throw new Error(message);
    }
    const usedPercent = 100 - Math.floor((Math.min(availableBytes, capacityBytes) * 100) / capacityBytes);
    if (usedPercent < options.highPercent) return;
    const excessBytes = Math.floor((capacityBytes * (100 - options.lowPercent)) / 100) - availableBytes;
    const freedBytes = await remove(victims(idle, seen, excessBytes, clock.nowMs() - options.ageMinMs), "space", signal);
    if (freedBytes >= excessBytes) return;
    const message = `Insufficient free disk space on the node's image filesystem (${usedPercent}% of ${formatBytes(capacityBytes)} used). Failed to free sufficient space by deleting unused images (freed ${freedBytes} bytes). Investigate disk usage, as it could be used by active images, logs, volumes, or other data.`;
    events.event(node, "Warning", "FreeDiskSpaceFailed", message);
    throw new Error(message);
  }

  return {
    name: "image-gc",
    async removeUnused(signal) {
      const idle = await look(signal);
      return await remove(victims(idle, seen, Number.POSITIVE_INFINITY, Math.max(firstLookMs ?? 0, clock.nowMs() - options.ageMinMs)), "space", signal);
    },
    async run(signal, ready) {
      ready(); // nothing waits for a collection
      let hasFailed = false; // the last time
      for await (const _ of clock.every(options.periodMs, signal)) {
        hasFailed = await collect(signal).then(() => false, (error: unknown) => {
          if (signal.aborted) return false;
          log.warn("image gc failed, next try in one period", { error });
          if (hasFailed) events.event(node, "Warning", "ImageGCFailed", (error as Error).message);
          return true;
        });
      }
    },
  };
}

const UNITS = ["KiB", "MiB", "GiB", "TiB"] as const;

/** 512 B, 1.5 KiB, 20.0 GiB. */
function formatBytes(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  const power = Math.min(UNITS.length, Math.floor(Math.log2(bytes) / 10));
  return `${(bytes / 1024 ** power).toFixed(1)} ${UNITS[power - 1]}`;
}
