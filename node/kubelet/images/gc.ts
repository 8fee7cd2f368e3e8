/**
 * Image garbage collection: when the image disk is fuller than `highPercent`, remove images no container uses, longest unused first, until it
 * would be at `lowPercent`.
 *
 * Source: kubernetes v1.36 pkg/kubelet/images/image_gc_manager.go, pkg/kubelet/kubelet.go (ImageGCPeriod)
 */
import type { ObjectReference } from "../../../core/api/gen/core.v1.ts";
import { aggregate } from "../../../core/api/meta/aggregate.ts";
import { formatDurationMs } from "../../../core/api/meta/duration.ts";
import type { EventRecorder } from "../../../core/client/events.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Runnable } from "../../../core/lifecycle/run-all.ts";
import type { Log } from "../../../core/observe/log.ts";
import type { Cri } from "../../cri/client.ts";
import { aged, fullness, type KnownImage, observe, type Seen, shownSize, victims } from "./gc-plan.ts";

export const IMAGE_GC_DEFAULTS = { highPercent: 85, lowPercent: 80, ageMinMs: 2 * 60_000, ageMaxMs: 0, periodMs: 5 * 60_000 };

interface Deps {
  readonly cri: Pick<Cri, "call">;
  /** Of the file system images are on. */
  readonly disk: (signal: AbortSignal) => Promise<{ readonly availableBytes: number; readonly capacityBytes: number }>;
  /** The images that containers have as volumes, by id. */
  readonly mounted: () => Iterable<string>;
  readonly clock: Clock;
  readonly log: Log;
  readonly events: EventRecorder;
  readonly node: ObjectReference;
  /** Each time that images have been looked at. */
  readonly onLooked?: ((signal: AbortSignal) => Promise<void>) | undefined;
  readonly onRemoved?: ((id: string, reason: "age" | "space") => Promise<void>) | undefined;
}

export interface ImageGc extends Runnable {
  /** Removes every image nobody uses but the newest, now: the disk is about to be full. Returns how many bytes that were. */
  removeUnused(signal: AbortSignal): Promise<number>;
}

export function imageGc({ cri, disk, mounted, clock, log, events, node, onLooked, onRemoved }: Deps, options = IMAGE_GC_DEFAULTS): ImageGc {
  let seen: Seen = new Map(); // by uptime: a clock that is set makes no image old
  let firstLookMs: number | undefined; // what was there then nobody has just pulled

  async function look(signal: AbortSignal): Promise<readonly KnownImage[]> {
    const [{ images = [] }, { containers = [] }] = await Promise.all([cri.call("ImageService/ListImages", {}, { signal }), cri.call("RuntimeService/ListContainers", {}, { signal })]);
    const known = images.map(({ id = "", size = 0, pinned = false }) => ({ id, sizeBytes: size, pinned }));
    const inUse = new Set([...containers.flatMap(({ image_id, image_ref, image }) => [image_id ?? "", image_ref ?? "", image?.image ?? ""]), ...mounted()]);
    seen = observe(seen, known, inUse, clock.uptimeMs());
    firstLookMs ??= clock.uptimeMs();
    return known.filter(({ id }) => !inUse.has(id));
  }

  async function remove(chosen: readonly KnownImage[], { reason, enoughBytes }: { readonly reason: "age" | "space"; readonly enoughBytes: number }, signal: AbortSignal): Promise<{ readonly freedBytes: number; readonly errors: readonly string[] }> {
    let freedBytes = 0;
    const errors: string[] = [];
    for (const { id, sizeBytes } of chosen) {
      if (freedBytes >= enoughBytes) break;
      log.info("removing image", { id, sizeBytes });
      try {
        await cri.call("ImageService/RemoveImage", { image: { image: id } }, { signal });
        await onRemoved?.(id, reason);
        freedBytes += sizeBytes;
      } catch (error) {
        if (signal.aborted) throw error;
        log.warn("image could not be removed", { id, error }); // the next one may be
        errors.push((error as Error).message);
      }
    }
    return { freedBytes, errors };
  }

  async function removeOld(signal: AbortSignal): Promise<void> {
    const { errors } = await remove(aged(await look(signal), seen, clock.uptimeMs() - options.ageMaxMs), { reason: "age", enoughBytes: Number.POSITIVE_INFINITY }, signal);
    if (errors.length > 0) throw new Error(`wanted to free images older than ${formatDurationMs(options.ageMaxMs)}, encountered errors in image deletion: ${aggregate(errors)}`);
  }

  /** Where it is urgent, what was there when we looked first is old enough: nobody has just pulled it. */
  async function removeForSpace(enoughBytes: number, { isUrgent }: { readonly isUrgent: boolean }, signal: AbortSignal): Promise<{ readonly freedBytes: number; readonly errors: readonly string[] }> {
    const idle = await look(signal);
    const oldMs = clock.uptimeMs() - options.ageMinMs;
    return await remove(victims(idle, seen, isUrgent ? Math.max(firstLookMs ?? 0, oldMs) : oldMs), { reason: "space", enoughBytes }, signal);
  }

  function complain(reason: string, message: string): Error {
    events.event(node, "Warning", reason, message);
    return new Error(message);
  }

  async function collect(signal: AbortSignal): Promise<void> {
    if (options.ageMaxMs > 0) await removeOld(signal);
    else if (options.highPercent === 100) return;
    const [usage] = await Promise.all([disk(signal), look(signal)]);
    if (usage.capacityBytes === 0) throw complain("InvalidDiskCapacity", "invalid capacity 0 on image filesystem");
    const { usedPercent, excessBytes } = fullness(usage, options.lowPercent);
    if (usedPercent < options.highPercent) return;
    const { freedBytes, errors } = await removeForSpace(excessBytes, { isUrgent: false }, signal);
    if (errors.length > 0) throw new Error(`wanted to free ${excessBytes} bytes, but freed ${freedBytes} bytes space with errors in image deletion: ${aggregate(errors)}`);
    if (freedBytes < excessBytes)
      throw complain(
        "FreeDiskSpaceFailed",
        `Insufficient free disk space on the node's image filesystem (${usedPercent}% of ${shownSize(usage.capacityBytes)} used). Failed to free sufficient space by deleting unused images (freed ${freedBytes} bytes). Investigate disk usage, as it could be used by active images, logs, volumes, or other data.`,
      );
  }

  return {
    name: "image-gc",
    async removeUnused(signal) {
      return (await removeForSpace(Number.POSITIVE_INFINITY, { isUrgent: true }, signal)).freedBytes;
    },
    async run(signal, ready) {
      ready(); // nothing waits for a collection
      let hasFailed = false; // the first time the statistics may not be there yet
      for await (const _ of clock.every(options.periodMs, signal)) {
        try {
          await collect(signal);
          await onLooked?.(signal);
          hasFailed = false;
        } catch (error) {
          if (signal.aborted) return;
          log.warn("image gc failed, next try in one period", { error });
          if (hasFailed) events.event(node, "Warning", "ImageGCFailed", (error as Error).message);
          hasFailed = true;
        }
      }
    },
  };
}
