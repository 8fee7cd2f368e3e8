/**
 * Telling users what happened to their objects: core/v1 Events, as `kubectl describe` shows them.
 *
 *   const events = eventWriter({ client, clock, log, random });   // a Runnable that writes them, many at a time
 *   const recorder = events.from({ component: "deployment-controller" });
 *   recorder.event(deployment, "Normal", "ScalingReplicaSet", "Scaled up replica set web-5d4 from 0 to 3");
 *
 * Recording never waits and never fails: what cannot be queued or written is dropped and logged. See event-correlator.ts for what is folded.
 *
 * Source: kubernetes v1.36 client-go/tools/record/event.go
 */
import type { ObjectReference } from "../api/gen/core.v1.ts";
import type { ApiObject } from "../api/meta/object-meta.ts";
import { hasCause, isAlreadyExists, isNotFound, reasonOf } from "../api/meta/status-error.ts";
import { type Clock, timestamp } from "../lifecycle/clock.ts";
import type { Random } from "../lifecycle/random.ts";
import type { Runnable } from "../lifecycle/run-all.ts";
import type { Log } from "../observe/log.ts";
import type { Client } from "./client.ts";
import { type Correlated, EventCorrelator, type EventDraft } from "./event-correlator.ts";
import { EVENTS } from "./resources.ts";

export type EventType = "Normal" | "Warning";

export interface EventRecorder {
  /** `about`: the object, or a reference to it or to a part of it (`fieldPath`: "spec.containers{app}"). */
  event(about: Readonly<ApiObject> | Readonly<ObjectReference>, type: EventType, reason: string, message: string, annotations?: Readonly<Record<string, string>>): void;
}

export interface Events {
  from(source: { readonly component: string; readonly host?: string | undefined }): EventRecorder;
}

interface Deps {
  readonly client: Client;
  readonly clock: Clock;
  readonly log: Log;
  readonly random: Random;
  /** So many are written at a time. */
  readonly writesMax?: number | undefined;
}

const QUEUE_MAX = 1000; // client-go watch.Broadcaster queueLength
/** Under way at once, from a node: each is a connection. */
const WRITES_MAX = 8;
const TRIES_MAX = 12;
const RETRY_MS = 10_000;

export function eventWriter({ client, clock, log, random, writesMax = WRITES_MAX }: Deps): Events & Runnable {
  const events = client.resource(EVENTS);
  const correlator = new EventCorrelator();
  const queue: EventDraft[] = [];
  /** The last write under way of each event, by its namespace and name: what counts it up comes after what creates it. */
  const writing = new Map<string, Promise<void>>();
  let underWay = 0;
  let wake: () => void = () => {};
  let sequence = 0;

  /** Upstream's form: the object's name and the time in nanoseconds; the sequence stands in for what the clock does not resolve. */
  const nameFor = (subject: string): string => `${subject}.${(BigInt(Math.trunc(clock.nowMs())) * 1_000_000n + BigInt(sequence++ % 1_000_000)).toString(16)}`;

  function enqueue(draft: EventDraft): void {
    if (queue.length >= QUEUE_MAX) {
      log.warn("too many queued events, dropped event", { reason: draft.reason, object: draft.involvedObject });
      return;
    }
    queue.push(draft);
    wake();
  }

  function begin(draft: EventDraft, signal: AbortSignal): void {
    const correlated = correlator.correlate(draft, clock.nowMs(), nameFor(draft.involvedObject.name ?? ""));
    if (correlated === undefined) return;
    const { name, namespace } = correlated.event.metadata;
    const key = `${namespace}/${name}`;
    underWay++;
    const before = writing.get(key) ?? Promise.resolve();
    const own = before.then(() => write(correlated, draft, signal)).finally(() => {
      underWay--;
      if (writing.get(key) === own) writing.delete(key);
      wake();
    });
    writing.set(key, own);
  }

  async function write(correlated: Correlated, draft: EventDraft, signal: AbortSignal): Promise<void> {
    for (let tries = 1; !signal.aborted; tries++) {
      try {
        await send(correlated, signal);
        return;
      } catch (error) {
        if (signal.aborted) return;
        if (reasonOf(error) !== "ServiceUnavailable") {
          const expected = isAlreadyExists(error) || hasCause(error, "NamespaceTerminating");
          log[expected ? "debug" : "warn"]("event was refused", { reason: draft.reason, object: draft.involvedObject, error });
          return;
        }
        if (tries >= TRIES_MAX) return log.warn("event could not be written", { reason: draft.reason, object: draft.involvedObject, error });
        await clock.sleep(tries === 1 ? RETRY_MS * random.next() : RETRY_MS, signal);
      }
    }
  }

  async function send({ event, patch }: Correlated, signal: AbortSignal): Promise<void> {
    if (patch !== undefined) {
      try {
        await events.patch({ metadata: { name: event.metadata.name ?? "", namespace: event.metadata.namespace } }, "application/strategic-merge-patch+json", patch, { signal });
        return;
      } catch (error) {
        if (!isNotFound(error)) throw error; // expired since: write it anew
      }
    }
    await events.create(event, { signal });
  }

  return {
    name: "events",
    from: (source) => ({
      event(about, type, reason, message, annotations) {
        const involvedObject = "metadata" in about ? referenceTo(about as ApiObject) : about;
        const now = timestamp(clock.nowMs());
        enqueue({
          apiVersion: "v1", kind: "Event",
          metadata: { name: nameFor(involvedObject.name ?? ""), namespace: involvedObject.namespace || "default", ...(annotations === undefined ? {} : { annotations: { ...annotations } }) },
          involvedObject, type, reason, message, firstTimestamp: now, lastTimestamp: now, count: 1,
          source: { component: source.component, ...(source.host === undefined ? {} : { host: source.host }) },
          reportingComponent: source.component, reportingInstance: source.host ?? "",
        } as EventDraft);
      },
    }),
    async run(signal, ready) {
      const stop = (): void => wake();
      signal.addEventListener("abort", stop, { once: true });
      ready();
      while (!signal.aborted) {
        const draft = underWay < writesMax ? queue.shift() : undefined;
        if (draft !== undefined) begin(draft, signal);
        else await new Promise<void>((resolve) => { wake = resolve; if (signal.aborted) resolve(); });
      }
      await Promise.all(writing.values());
      signal.removeEventListener("abort", stop);
    },
  };
}

function referenceTo({ apiVersion, kind, metadata }: Readonly<ApiObject>): ObjectReference {
  return {
    kind, apiVersion, name: metadata.name, uid: metadata.uid, resourceVersion: metadata.resourceVersion,
    ...(metadata.namespace ? { namespace: metadata.namespace } : {}),
  } as ObjectReference;
}

/** For those who have nobody to tell. */
export const silentEvents: Events = { from: () => ({ event() {} }) };
