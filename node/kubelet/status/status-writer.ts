/**
 * Brings the statuses of pods to the API server: the newest of each pod, one write at a time per pod, only what changed. What cannot be written
 * is tried again; nothing waits for it.
 *
 * Source: kubernetes v1.36 pkg/kubelet/status/status_manager.go (semantics)
 */
import type { Pod, PodStatus } from "../../../core/api/gen/core.v1.ts";
import { isAnotherUid, isNotFound, reasonOf } from "../../../core/api/meta/status-error.ts";
import type { Client } from "../../../core/client/client.ts";
import { revisionOf } from "../../../core/client/object-cache.ts";
import { PODS } from "../../../core/client/resources.ts";
import { backoffMs } from "../../../core/lifecycle/backoff.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Log } from "../../../core/observe/log.ts";
import { same, statusPatch } from "./status-patch.ts";

export interface StatusWriter {
  /** What we last said of the pod, written or not. */
  get(podUid: string): PodStatus | undefined;
  set(pod: Pod, status: PodStatus): void;
  /** Somebody may have written over what we said: it is said again, in a while. Two who will not agree must not keep the API server busy. */
  reconcile(pod: Pod): void;
  /** Resolves once the newest status is written, or the API server has no such pod. */
  written(podUid: string): Promise<void>;
  forget(podUid: string): void;
}

interface Entry {
  /** The object to write to, as new as we know it: from the informer, or from the answer to our last write. Undefined: a static pod without a mirror. */
  known: Pod | undefined;
  wanted: PodStatus;
  busy: boolean;
  gone: boolean;
  /** When what is wanted was said, in uptime; undefined: it is written. */
  saidMs: number | undefined;
  waiters: (() => void)[];
  /** Set while what others have written is to be put right. */
  reconciling: { cancel(): void } | undefined;
}

const RETRY = { minMs: 500, maxMs: 10_000 };
/** Source: kubernetes v1.36 pkg/kubelet/status/status_manager.go syncPeriod */
const RECONCILE_MS = 10_000;

interface Deps {
  readonly client: Client;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** The API server's object of a pod: itself, or a static pod's mirror. */
  readonly objectOf: (pod: Pod) => Pod | undefined;
  /** The newest of a pod is written, so long after it was said. */
  readonly onWritten?: ((ms: number) => void) | undefined;
}

export function statusWriter({ client, clock, log, signal, objectOf, onWritten }: Deps): StatusWriter {
  const entries = new Map<string, Entry>();
  const pods = client.resource(PODS);

  async function write(uid: string, entry: Entry): Promise<void> {
    entry.busy = true;
    let last: object | undefined; // what the server took but did not keep: saying it again would not help
    for (let failures = 0; !signal.aborted && entries.get(uid) === entry && entry.known && !entry.gone; ) {
      const patch = statusPatch(entry.known.metadata.uid, entry.known.status ?? {}, entry.wanted);
      if (!patch || (last && Bun.deepEquals(patch, last))) break;
      try {
        const answer = await pods.patch(entry.known, "application/strategic-merge-patch+json", patch, { subresource: "status", signal });
        learn(entry, answer);
        last = patch;
        if (entry.saidMs !== undefined) onWritten?.(clock.uptimeMs() - entry.saidMs);
        entry.saidMs = undefined;
        failures = 0;
      } catch (error) {
        if (signal.aborted) break;
        if (isNotFound(error) || isAnotherUid(error)) {
          entry.gone = true; // or another pod has its name
          break;
        }
        log.warn("pod status not written, next try soon", { pod: entry.known.metadata.name, namespace: entry.known.metadata.namespace, reason: reasonOf(error), error });
        await clock.sleep(backoffMs(++failures, RETRY), signal);
      }
    }
    if (entry.known) shareKnown(entry, entry.known);
    entry.busy = false;
    for (const done of entry.waiters.splice(0)) done();
  }

  function learn(entry: Entry, object: Pod | undefined): void {
    if (object?.metadata.uid !== entry.known?.metadata.uid) entry.gone = false; // another mirror
    else if (object && entry.known && revisionOf(object) < revisionOf(entry.known)) return;
    entry.known = object;
  }

  /** What the informer has meanwhile is held once: the answer to a write is the same object again, as large. */
  function shareKnown(entry: Entry, known: Pod): void {
    const held = objectOf(known);
    if (held?.metadata.uid === known.metadata.uid && revisionOf(held) >= revisionOf(known)) entry.known = held;
  }

  return {
    get: (uid) => entries.get(uid)?.wanted,
    set(pod, status) {
      const { uid } = pod.metadata;
      const entry = entries.get(uid) ?? { known: objectOf(pod), wanted: status, busy: false, gone: false, saidMs: undefined, waiters: [], reconciling: undefined };
      entries.set(uid, entry);
      learn(entry, objectOf(pod));
      if (entry.saidMs === undefined && !same(entry.wanted, status)) entry.saidMs = clock.uptimeMs();
      entry.wanted = status;
      if (!entry.busy) void write(uid, entry);
    },
    reconcile(pod) {
      const { uid } = pod.metadata;
      const entry = entries.get(uid);
      if (!entry || entry.busy || signal.aborted) return;
      learn(entry, objectOf(pod));
      if (entry.reconciling || !entry.known || !statusPatch(entry.known.metadata.uid, entry.known.status ?? {}, entry.wanted)) return;
      entry.reconciling = clock.after(RECONCILE_MS, () => {
        entry.reconciling = undefined;
        if (entries.get(uid) === entry && !entry.busy) void write(uid, entry);
      });
    },
    async written(uid) {
      const entry = entries.get(uid);
      if (entry?.busy) await new Promise<void>((resolve) => entry.waiters.push(resolve));
    },
    forget(uid) {
      entries.get(uid)?.reconciling?.cancel();
      entries.delete(uid);
    },
  };
}
