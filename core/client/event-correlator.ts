/**
 * What keeps events from flooding the store. Pure but for what it remembers: the caller says what time it is, by uptime: a clock that is set lets nobody flood, nor keeps what is over.
 *
 *   aggregate   ten events in ten minutes that differ only in their message become one, "(combined from similar events): …"
 *   repeat      an event told before is counted up instead of written anew
 *   spam        a source may tell 25 events about an object, then one in five minutes
 *
 * Source: kubernetes v1.36 client-go/tools/record/events_cache.go (rules and figures)
 */
import type { Event } from "../api/gen/core.v1.ts";
import type { NewObject } from "../api/meta/object-meta.ts";

export type EventDraft = NewObject<Event>;
export interface Correlated {
  readonly event: EventDraft;
  /** Set when the event is in the store under this name already: patch it. */
  readonly patch?: { readonly count: number; readonly lastTimestamp: string; readonly message: string } | undefined;
}

const ENTRIES_MAX = 4096;
const SIMILAR_MAX = 10;
const SIMILAR_MS = 600_000;
const SPAM_BURST = 25;
const SPAM_REFILL_MS = 300_000;
/** Events that are told again later than this have expired meanwhile. */
const TOLD_MS = 3_600_000;

interface Similar { messages: Set<string>; lastMs: number }
interface Told { readonly name: string; readonly count: number; readonly firstTimestamp: string }
interface Bucket { tokens: number; filledMs: number }

export class EventCorrelator {
  readonly #similar = new Recent<Similar>(SIMILAR_MS);
  readonly #told = new Recent<Told>(TOLD_MS);
  readonly #buckets = new Recent<Bucket>(SPAM_BURST * SPAM_REFILL_MS); // full again by then

  /** How much is remembered. */
  get size(): number { return this.#similar.size + this.#told.size + this.#buckets.size; }

  /** What to write for `draft`; undefined: nothing. `nowMs`: by uptime. `freshName` names an aggregate. */
  correlate(draft: EventDraft, nowMs: number, freshName: string): Correlated | undefined {
    const { event, key } = this.#aggregate(draft, nowMs, freshName);
    const told = this.#told.get(key);
    const count = (told?.count ?? 0) + 1;
    const observed: EventDraft = told === undefined ? event : { ...event, count, firstTimestamp: told.firstTimestamp, metadata: { ...event.metadata, name: told.name } };
    this.#told.set(key, { name: observed.metadata.name ?? "", count, firstTimestamp: observed.firstTimestamp ?? "" }, nowMs);
    if (!this.#spend(spamKey(draft), nowMs)) return undefined;
    if (told === undefined) return { event: observed };
    return { event: observed, patch: { count, lastTimestamp: observed.lastTimestamp ?? "", message: observed.message ?? "" } };
  }

  #aggregate(draft: EventDraft, nowMs: number, freshName: string): { event: EventDraft; key: string } {
    const aggregateKey = keyFrom(draft, [draft.type, draft.reason, draft.reportingComponent, draft.reportingInstance]);
    const before = this.#similar.get(aggregateKey);
    const similar = before !== undefined && nowMs - before.lastMs <= SIMILAR_MS ? before : { messages: new Set<string>(), lastMs: nowMs };
    similar.messages.add(draft.message ?? "");
    similar.lastMs = nowMs;
    this.#similar.set(aggregateKey, similar, nowMs);
    if (similar.messages.size < SIMILAR_MAX) {
      return { event: draft, key: keyFrom(draft, [draft.involvedObject.fieldPath, draft.type, draft.reason, draft.message]) };
    }
    const [oldest] = similar.messages;
    similar.messages.delete(oldest ?? "");
    const now = draft.lastTimestamp;
    const { reportingComponent: _, metadata: { annotations: _a, ...metadata }, ...rest } = draft; // upstream's own has neither
    return {
      event: { ...rest, reportingInstance: "", metadata: { ...metadata, name: freshName }, message: `(combined from similar events): ${draft.message ?? ""}`, firstTimestamp: now, lastTimestamp: now, count: 1 },
      key: aggregateKey,
    };
  }

  /** Takes a token from the bucket of `key`, if there is one. */
  #spend(key: string, nowMs: number): boolean {
    const bucket = this.#buckets.get(key) ?? { tokens: SPAM_BURST, filledMs: nowMs };
    bucket.tokens = Math.min(SPAM_BURST, bucket.tokens + Math.max(0, nowMs - bucket.filledMs) / SPAM_REFILL_MS);
    bucket.filledMs = nowMs;
    this.#buckets.set(key, bucket, nowMs);
    if (bucket.tokens < 1) return false;
    bucket.tokens -= 1;
    return true;
  }
}

function spamKey(event: EventDraft): string { return keyFrom(event, [event.type]); }

function keyFrom({ source, involvedObject }: EventDraft, more: readonly (string | undefined)[]): string {
  const { kind, namespace, name, uid, apiVersion } = involvedObject;
  return [source?.component, source?.host, kind, namespace, name, uid, apiVersion, ...more].join("\n");
}

/** A map that forgets what has not been set for so long, and beyond `ENTRIES_MAX` what has not been for the longest time. */
class Recent<V> {
  readonly #entries = new Map<string, { readonly value: V; readonly setMs: number }>(); // in the order in which they were set
  readonly #keptMs: number;

  constructor(keptMs: number) {
    this.#keptMs = keptMs;
  }

  get size(): number { return this.#entries.size; }

  get(key: string): V | undefined { return this.#entries.get(key)?.value; }

  set(key: string, value: V, nowMs: number): void {
    this.#entries.delete(key);
    this.#entries.set(key, { value, setMs: nowMs });
    for (const [oldest, { setMs }] of this.#entries) {
      if (this.#entries.size <= ENTRIES_MAX && nowMs - setMs <= this.#keptMs) return;
      this.#entries.delete(oldest);
    }
  }
}
