/**
 * How long a container that ended waits for its restart: 10 s, doubled at each further end, at most 5 minutes; from the start again when it had
 * run for 10 minutes since.
 *
 * Source: kubernetes v1.36 pkg/kubelet/kuberuntime/kuberuntime_manager.go (doBackOff), pkg/kubelet/kubelet.go (HasExpiredFunc), client-go util/flowcontrol/backoff.go
 */
import { formatDurationMs } from "../../core/api/meta/duration.ts";
import { backoffMs } from "../../core/lifecycle/backoff.ts";

const CRASH_BACKOFF = { minMs: 10_000, maxMs: 300_000 };
/** Where ReduceDefaultCrashLoopBackOffDecay is switched on. Source: pkg/kubelet/kubelet.go newCrashLoopBackOff */
const CRASH_BACKOFF_REDUCED = { minMs: 1000, maxMs: 60_000 };

/** `maxMs`: as the node's configuration has it, which has the last word unless it has none. */
export function crashLimits(gates: Readonly<Record<string, boolean>>, maxMs: number): { readonly minMs: number; readonly maxMs: number } {
  const limits = gates["ReduceDefaultCrashLoopBackOffDecay"] ? CRASH_BACKOFF_REDUCED : CRASH_BACKOFF;
  return gates["KubeletCrashLoopBackOffMax"] === false ? limits : { minMs: Math.min(limits.minMs, maxMs), maxMs };
}

/** However long it waits at most. */
const STABLE_MS = 600_000;

interface Entry { readonly failures: number; readonly updatedMs: number }

export class CrashBackoff {
  readonly #limits: { readonly minMs: number; readonly maxMs: number };
  readonly #entries = new Map<string, Entry>();

  constructor(limits: { readonly minMs: number; readonly maxMs: number } = CRASH_BACKOFF) {
    this.#limits = limits;
  }

  /** The delay `key` has to sit out after what happened at `eventMs`, if it is not over yet. */
  waiting(key: string, eventMs: number, nowMs: number): { readonly delayMs: number; readonly untilMs: number } | undefined {
    const entry = this.#entries.get(key);
    if (!entry || this.#expired(entry, eventMs)) return undefined;
    const delayMs = backoffMs(entry.failures, this.#limits);
    const isFuture = eventMs > nowMs; // the clock was set back since: nobody waits until it is there again
    return !isFuture && nowMs - eventMs < delayMs ? { delayMs, untilMs: eventMs + delayMs } : undefined;
  }

  /** `key` is tried again now: the next wait is longer. */
  retried(key: string, eventMs: number, nowMs: number): void {
    const entry = this.#entries.get(key);
    const failures = !entry || this.#expired(entry, eventMs) ? 1 : entry.failures + 1;
    this.#entries.set(key, { failures, updatedMs: nowMs });
  }

  #expired({ updatedMs }: Entry, eventMs: number): boolean {
    return eventMs - updatedMs > STABLE_MS;
  }
}

/** As Go prints a duration of whole seconds: 10s, 1m20s, 5m0s. */
export function formatSeconds(ms: number): string { return formatDurationMs(Math.round(ms / 1000) * 1000); }
