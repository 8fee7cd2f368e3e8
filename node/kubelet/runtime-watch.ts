/**
 * Tells which pods something happened to in the runtime: by its event stream, and by comparing lists when the stream cannot be trusted (at the
 * start, after it broke, and now and then). containerd before 1.7 has no such stream: there the lists are all there is.
 *
 * Source: kubernetes v1.36 pkg/kubelet/pleg/{evented,generic}.go (semantics)
 */
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Runnable } from "../../core/lifecycle/run-all.ts";
import { aborted } from "../../core/lifecycle/aborted.ts";
import type { Log } from "../../core/observe/log.ts";
import { type Cri, CriError } from "../cri/client.ts";
import { POD_UID } from "./containers/labels.ts";
import type { KubeletMetrics } from "./context.ts";
import { type RuntimeSummary, summarizeRuntime } from "./runtime-pod.ts";

export interface RuntimeWatchDeps {
  readonly cri: Cri;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<KubeletMetrics, "relisted">;
  readonly onChange: (podUid: string) => void;
  /** After each relist, with all pods the runtime has. */
  readonly onList: (pods: ReadonlyMap<string, RuntimeSummary>) => void;
}

export interface RuntimeWatch extends Runnable {
  /** When the runtime last answered, in uptime. */
  lastListMs(): number;
  /** When it was last known what happens in the runtime: now, while its events are followed. In uptime. */
  activeMs(): number;
}

const RELIST_MS = 300_000;
/** Without a stream. */
const RELIST_ALONE_MS = 1_000; // kubernetes v1.36 pkg/kubelet/kubelet.go genericPlegRelistPeriod
const RETRY_MS = 1_000;

export function runtimeWatch({ cri, clock, log, metrics, onChange, onList }: RuntimeWatchDeps): RuntimeWatch {
  let before: ReadonlyMap<string, RuntimeSummary> = new Map();
  let listedMs = clock.uptimeMs();
  let askedMs: number | undefined;
  let isFollowing = false;

  async function relist(signal: AbortSignal): Promise<void> {
    const beganMs = clock.uptimeMs();
    const now = await summarizeRuntime(cri, signal);
    for (const uid of new Set([...before.keys(), ...now.keys()])) if (before.get(uid)?.states !== now.get(uid)?.states) onChange(uid);
    before = now;
    listedMs = clock.uptimeMs();
    metrics.relisted((listedMs - beganMs) / 1000, askedMs === undefined ? undefined : (beganMs - askedMs) / 1000);
    askedMs = beganMs;
    onList(now);
  }

  /** Follows the stream until it breaks. What happened while it was being opened is caught by the list that comes after. */
  async function follow(signal: AbortSignal): Promise<void> {
    const over = new AbortController();
    const quit = AbortSignal.any([signal, over.signal]);
    const listing = (async () => {
      for await (const _ of clock.every(RELIST_MS, quit)) await relist(quit);
    })();
    const streaming = (async () => {
      for await (const { pod_sandbox_status } of cri.events(quit)) {
        const uid = pod_sandbox_status?.labels?.[POD_UID] ?? pod_sandbox_status?.metadata?.uid;
        if (uid !== undefined) onChange(uid);
      }
    })();
    isFollowing = true;
    try {
      await Promise.race([listing, streaming]);
    } finally {
      isFollowing = false;
      over.abort();
      await Promise.allSettled([listing, streaming]);
    }
  }

  /** Lists only. Ends after a while: by then the runtime may have been exchanged for one with a stream. */
  async function listAlone(signal: AbortSignal): Promise<void> {
    const endMs = clock.uptimeMs() + RELIST_MS;
    for await (const _ of clock.every(RELIST_ALONE_MS, signal)) {
      await relist(signal);
      if (clock.uptimeMs() >= endMs) return;
    }
  }

  return {
    name: "runtime-watch",
    lastListMs: () => listedMs,
    activeMs: () => (isFollowing ? clock.uptimeMs() : listedMs),
    async run(signal, ready) {
      ready();
      for (let failures = 0, alone = false, told = false; !signal.aborted; ) {
        const listedBeforeMs = listedMs;
        try {
          await (alone ? listAlone(signal) : follow(signal));
          alone = false;
        } catch (error) {
          alone = error instanceof CriError && error.code === "Unimplemented";
          if (alone) {
            if (!told) log.info("the runtime tells no events, asking it every second instead");
            told = true;
            continue;
          }
          failures = listedMs > listedBeforeMs ? 1 : failures + 1;
          if (!signal.aborted) log[failures === 1 ? "warn" : "debug"]("the runtime's events broke off, listing again", { error });
        }
        await clock.sleep(RETRY_MS, signal);
      }
      await aborted(signal);
    },
  };
}
