/**
 * Decides what a group of writes comes to: which pass and with which revisions, which lose, which are refused. Pure.
 */
import type { StoreError, Revision, Row, StoreEvent, Value } from "../store.ts";
import type { Payload } from "./record.ts";
import type { Weight } from "./rows.ts";

/** A put, or without a value a delete, and who waits for it. */
export interface WriteRequest {
  readonly key: string;
  readonly value: Value | undefined;
  readonly weight: Weight;
  readonly expected: Revision;
  /** The value encoded in advance, while the disk was busy with the group before. */
  readonly payload: Payload | undefined;
  /** Is told of the row while the disk is at work. */
  readonly drafted?: ((row: Row) => void) | undefined;
  resolve(revision: Revision): void;
  reject(error: unknown): void;
}

export interface AcceptedWrite {
  readonly request: WriteRequest;
  readonly event: StoreEvent;
  /** Visible only once it is on disk. */
  readonly durable: boolean;
}

export interface Draft {
  /** In the order of their revisions. */
  readonly accepted: readonly AcceptedWrite[];
  /** Those whose row is not at the expected revision. `byGroup`: because of a write of this group, so the verdict depends on the group's. */
  readonly losers: readonly { readonly request: WriteRequest; readonly current: Row | undefined; readonly byGroup: boolean }[];
  readonly refused: readonly { readonly request: WriteRequest; readonly error: StoreError }[];
  /** What the durable writes leave: the last row of each key, or none. */
  readonly durable: ReadonlyMap<string, { readonly row: Row | undefined; readonly payload: Payload | undefined }>;
  /** The newest revision handed out. */
  readonly head: Revision;
}

export interface DraftContext {
  readonly rows: { get(key: string): Row | undefined };
  /** The newest revision handed out so far. */
  readonly head: Revision;
  isVolatile(key: string, value: Value | undefined, previous: Value | undefined): boolean;
  /** Why such a write cannot be tried now. */
  refusal(write: { readonly key: string; readonly value: Value | undefined; readonly room: number; readonly kind: "create" | "overwrite" | "delete"; readonly durable: boolean }): StoreError | undefined;
}

export function draftWrites(requests: readonly WriteRequest[], context: DraftContext): Draft {
  const accepted: AcceptedWrite[] = [];
  const losers: { request: WriteRequest; current: Row | undefined; byGroup: boolean }[] = [];
  const refused: { request: WriteRequest; error: StoreError }[] = [];
  const durable = new Map<string, { row: Row | undefined; payload: Payload | undefined }>();
  const touched = new Map<string, Row | undefined>(); // rows as the writes of this group leave them
  let head = context.head;

  for (const request of requests) {
    const { key, value } = request;
    const byGroup = touched.has(key);
    const previous = byGroup ? touched.get(key) : context.rows.get(key);
    if ((previous?.revision ?? 0) !== request.expected || (!value && !previous)) {
      losers.push({ request, current: previous, byGroup });
      continue;
    }
    // After a durable write of the same key in this group nothing may overtake it: what follows is durable with it.
    const isDurable = durable.has(key) || !context.isVolatile(key, value, previous?.value);
    const error = context.refusal({ key, value, room: request.weight.room, durable: isDurable, kind: !value ? "delete" : previous ? "overwrite" : "create" });
    if (error) {
      refused.push({ request, error });
      continue;
    }
    const row: Row = Object.freeze({ key, value: value ?? previous!.value, revision: ++head });
    const event: StoreEvent = Object.freeze({ type: value ? "put" : "delete", row, ...(previous && { previous }) });
    accepted.push({ request, event, durable: isDurable });
    touched.set(key, value && row);
    if (isDurable) durable.set(key, { row: value && row, payload: request.payload });
  }
  return { accepted, losers, refused, durable, head };
}

/** The same with revisions after `head`. */
export function renumbered(draft: Draft, head: Revision): Draft {
  const now = new Map<Row, Row>(); // by the row that it was
  const moved = (row: Row | undefined): Row | undefined => (row && now.get(row)) ?? row;
  const accepted = draft.accepted.map((write): AcceptedWrite => {
    const { row, previous, type } = write.event;
    const next: Row = Object.freeze({ ...row, revision: ++head });
    const event: StoreEvent = Object.freeze({ type, row: next, ...(previous && { previous: moved(previous)! }) });
    now.set(row, next);
    return { ...write, event };
  });
  const durable = new Map([...draft.durable].map(([key, { row, payload }]) => [key, { row: moved(row), payload }]));
  return { ...draft, accepted, durable, head, losers: draft.losers.map((loser) => ({ ...loser, current: moved(loser.current) })) };
}
