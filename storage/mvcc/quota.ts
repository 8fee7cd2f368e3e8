/**
 * How much all rows together may take. They are in memory, from when the store opens: rows that somebody goes on making would end the process, and each one that is started after it.
 *
 * As etcd with its quota: what would take more is refused, in its words, until enough is deleted. Unlike there, rows that are there can be overwritten, and grow a little: nodes stay ready, pods come up and go.
 * Where that has been used up, too, what is urgent has as much again: a pod or a namespace that is to go is marked so before it goes.
 */
import { StoreError } from "../store.ts";
import type { FrozenJson } from "./freeze-json.ts";
import type { Weight } from "./rows.ts";

/** A byte of JSON takes so many of memory, if it is of what most objects are like. */
const MEMORY_PER_BYTE = 3;

/** What takes more memory than its JSON would make one think takes as much more of the room: whoever writes brackets, or names that nothing else has, gets as far as others. */
export function weightOf({ size, memory }: FrozenJson): Weight { return { size, room: Math.max(size, Math.ceil(memory / MEMORY_PER_BYTE)) }; }

/** Its words. Source: etcd v3.6 api/v3rpc/rpctypes/error.go ErrGRPCNoSpace */
export const NO_SPACE = "etcdserver: mvcc: database space exceeded";

/** Of what all may take, so much more is left for rows that are overwritten, and so much again for those of them that are urgent. */
const OVERWRITE_SHARE = 1 / 8;
/** Of it, so much must have gone until there is room again. */
const ROOM_SHARE = 1 / 16;

export class Quota {
  readonly #bytesMax: number;
  readonly #most: Readonly<Record<"create" | "overwrite" | "urgent", number>>;
  #exceeded: StoreError | undefined;

  /** `bytes`: what was there when the store was opened, which may be more than all may take, as where memory was more or was counted otherwise: it goes on, and has the same to grow. */
  constructor(bytesMax: number, bytes: number) {
    const more = bytesMax * OVERWRITE_SHARE, overwrite = Math.max(bytesMax, bytes) + more;
    this.#bytesMax = bytesMax;
    this.#most = { create: bytesMax, overwrite, urgent: overwrite + more };
  }

  /** Why a row cannot be `growth` larger, where all of them have `bytes`. */
  refusal({ kind, growth, bytes, isUrgent }: { readonly kind: "create" | "overwrite"; readonly growth: number; readonly bytes: number; readonly isUrgent: () => boolean }): StoreError | undefined {
    const after = bytes + growth;
    if (growth <= 0 || after <= this.#most[kind] || (after <= this.#most.urgent && isUrgent())) return undefined;
    return (this.#exceeded = new StoreError("full", { reason: NO_SPACE, bytes, bytesMax: this.#bytesMax, remedy: "delete objects that nobody needs; a ResourceQuota keeps a namespace from making more" }));
  }

  /** What was refused last, until there is room again. */
  exceeded(bytes: number): StoreError | undefined {
    if (bytes < this.#bytesMax * (1 - ROOM_SHARE)) this.#exceeded = undefined;
    return this.#exceeded;
  }
}
