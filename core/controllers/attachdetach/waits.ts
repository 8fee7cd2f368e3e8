/** Since when nobody wants what a node has, and since when attachers are waited for: by uptime, so that a clock that is put right changes nothing. */
import type { ObjectKey } from "../../api/meta/object-meta.ts";
import type { Clock } from "../../lifecycle/clock.ts";

/** Attachments go by their name, disks by their node and name. */
export interface Waits {
  /** For how long it has not been wanted; from now on, if it was until now. */
  idleMs(name: string): number;
  /** It is wanted, or gone. */
  notIdle(name: string): void;
  /** Of the node's disks only these are idle still. */
  idleDisks(node: ObjectKey, names: readonly string[]): void;
  /** For how long its attacher has been waited for. */
  pendingMs(attachment: string, node: ObjectKey): number;
  /** Of the node's attachments only these are waited for still. */
  pendingOnes(node: ObjectKey, attachments: readonly string[]): void;
  /** Whether pods have not been told of that attempt yet; they are told now. */
  isNewAttempt(attachment: string, attempt: string | undefined): boolean;
}

export function diskKey(node: ObjectKey, disk: string): string {
  return `${node} ${disk}`;
}

export function waits(clock: Pick<Clock, "uptimeMs">): Waits {
  const idleSince = new Map<string, number>();
  const pendingSince = new Map<string, { readonly node: ObjectKey; readonly sinceMs: number; attempt?: string | undefined }>(); // the last attempt that pods have been told of

  return {
    idleMs(name) {
      const sinceMs = idleSince.get(name) ?? clock.uptimeMs();
      idleSince.set(name, sinceMs);
      return clock.uptimeMs() - sinceMs;
    },
    notIdle: (name) => void idleSince.delete(name),
    idleDisks(node, names) {
      const still = new Set(names.map((name) => diskKey(node, name)));
      for (const key of idleSince.keys()) if (key.startsWith(diskKey(node, "")) && !still.has(key)) idleSince.delete(key);
    },
    pendingMs(attachment, node) {
      const { sinceMs } = pendingSince.get(attachment) ?? { sinceMs: clock.uptimeMs() };
      if (!pendingSince.has(attachment)) pendingSince.set(attachment, { node, sinceMs });
      return clock.uptimeMs() - sinceMs;
    },
    pendingOnes(node, attachments) {
      for (const [name, one] of pendingSince) if (one.node === node && !attachments.includes(name)) pendingSince.delete(name);
    },
    isNewAttempt(attachment, attempt) {
      const since = pendingSince.get(attachment);
      if (since?.attempt === attempt) return false;
      if (since) since.attempt = attempt;
      return true;
    },
  };
}
