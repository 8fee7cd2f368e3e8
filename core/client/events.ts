/**
 * Telling users what happened to their objects: Events, as `kubectl describe` shows them.
 *
 *   const events = eventWriter({ client, clock, log, random });   // a Runnable that writes them, many at a time
 *   const recorder = events.from({ component: "deployment-controller" });
 *   recorder.event(deployment, "Normal", "ScalingReplicaSet", "Scaled up replica set web-5d4 from 0 to 3");
 *
 * Recording never waits and never fails: what cannot be queued or written is dropped and logged. See event-correlator.ts for what is folded.
 * The scheduler tells its own by events.k8s.io, with the action that was taken: `reporter`, and event-series.ts.
 *
 * Source: kubernetes v1.36 client-go/tools/{record/event,record/util/util,events/event_broadcaster,events/event_recorder}.go
 */
import type { ObjectReference } from "../api/gen/core.v1.ts";
import { dns1123Subdomain } from "../api/meta/names.ts";
import type { ApiObject } from "../api/meta/object-meta.ts";
import { hasCause, isAlreadyExists, isNotFound, reasonOf } from "../api/meta/status-error.ts";
import { type Clock, microTimestamp, timestamp } from "../lifecycle/clock.ts";
import type { Random } from "../lifecycle/random.ts";
import type { Runnable } from "../lifecycle/run-all.ts";
import type { Log } from "../observe/log.ts";
import type { Client } from "./client.ts";
import { type Correlated, EventCorrelator, type EventDraft } from "./event-correlator.ts";
import { EventSeries, FINISH_MS, REFRESH_MS, type Report, type Told } from "./event-series.ts";
import { EVENTS, REPORTED_EVENTS } from "./resources.ts";

export type EventType = "Normal" | "Warning";

export interface EventRecorder {
  /** `about`: the object, or a reference to it or to a part of it (`fieldPath`: "spec.containers{app}"). */
  event(about: Readonly<ApiObject> | Readonly<ObjectReference>, type: EventType, reason: string, message: string, annotations?: Readonly<Record<string, string>>): void;
}

export interface EventReporter {
  /** `action`: what was done, or failed to be. */
  report(regarding: Readonly<ApiObject>, what: { readonly type: EventType; readonly reason: string; readonly action: string; readonly note: string }): void;
}

export interface Events {
  from(source: { readonly component: string; readonly host?: string | undefined }): EventRecorder;
  /** `host`: the machine it runs on. */
  reporter(source: { readonly component: string; readonly host: string }): EventReporter;
}

/** Something to write, once those before it of the same name are. */
interface Letter { readonly key: string; readonly reason: string | undefined; readonly object: unknown; send(signal: AbortSignal): Promise<void> }

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
/** Why it may not have been read: the server could not be reached, or the way to it swallows packets. */
const UNANSWERED: ReadonlySet<string> = new Set(["ServiceUnavailable", "Timeout"]);

export function eventWriter({ client, clock, log, random, writesMax = WRITES_MAX }: Deps): Events & Runnable {
  const events = client.resource(EVENTS);
  const reported = client.resource(REPORTED_EVENTS);
  const correlator = new EventCorrelator();
  const series = new EventSeries();
  const queue: { readonly about: Pick<Letter, "reason" | "object">; letter(): Letter | undefined }[] = [];
  /** The last write under way of each event, by its namespace and name: what counts it up comes after what creates it. */
  const writing = new Map<string, Promise<void>>();
  let underWay = 0;
  let wake: () => void = () => {};
  let sequence = 0;

  /** Upstream's form: the object's name and the time in nanoseconds; the sequence stands in for what the clock does not resolve. Of an object that an event cannot be named after, any. */
  const nameFor = (subject: string): string => {
    const name = `${subject}.${(BigInt(Math.trunc(clock.nowMs())) * 1_000_000n + BigInt(sequence++ % 1_000_000)).toString(16)}`;
    return dns1123Subdomain(name).length === 0 ? name : random.uuid();
  };

  function enqueue(about: Pick<Letter, "reason" | "object">, letter: () => Letter | undefined): void {
    if (queue.length >= QUEUE_MAX) {
      log.warn("too many queued events, dropped event", { ...about });
      return;
    }
    queue.push({ about, letter });
    wake();
  }

  function begin(letter: Letter | undefined, signal: AbortSignal): void {
    if (letter === undefined) return;
    const { key } = letter;
    underWay++;
    const before = writing.get(key) ?? Promise.resolve();
    const own = before.then(() => write(letter, signal)).finally(() => {
      underWay--;
      if (writing.get(key) === own) writing.delete(key);
      wake();
    });
    writing.set(key, own);
  }

  async function write({ reason, object, send }: Letter, signal: AbortSignal): Promise<void> {
    for (let tries = 1; !signal.aborted; tries++) {
      try {
        await send(signal);
        return;
      } catch (error) {
        if (signal.aborted) return;
        if (!UNANSWERED.has(reasonOf(error))) {
          const expected = isAlreadyExists(error) || hasCause(error, "NamespaceTerminating");
          log[expected ? "debug" : "warn"]("event was refused", { reason, object, error });
          return;
        }
        if (tries >= TRIES_MAX) return log.warn("event could not be written", { reason, object, error });
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

  async function sendReport({ report, isSeries }: Told, signal: AbortSignal): Promise<void> {
    if (isSeries) {
      try {
        await reported.patch({ metadata: { name: report.metadata.name ?? "", namespace: report.metadata.namespace } }, "application/strategic-merge-patch+json", { series: report.series }, { signal });
        return;
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    }
    await reported.create(report, { signal });
  }

  function letterOf(told: Told): Letter {
    const { metadata: { namespace, name }, reason, regarding } = told.report;
    return { key: `${namespace}/${name}`, reason, object: regarding, send: (signal) => sendReport(told, signal) };
  }

  /** What became of series, now and then. */
  async function keepSeries(periodMs: number, due: () => readonly Told[], signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await clock.sleep(periodMs, signal);
      for (const told of signal.aborted ? [] : due()) begin(letterOf(told), signal);
    }
  }

  return {
    name: "events",
    from: (source) => ({
      event(about, type, reason, message, annotations) {
        const involvedObject = "metadata" in about ? referenceTo(about as ApiObject) : about;
        const now = timestamp(clock.nowMs());
        const draft = {
          apiVersion: "v1", kind: "Event",
          metadata: { name: nameFor(involvedObject.name ?? ""), namespace: involvedObject.namespace || "default", ...(annotations === undefined ? {} : { annotations: { ...annotations } }) },
          involvedObject, type, reason, message, firstTimestamp: now, lastTimestamp: now, count: 1,
          source: { component: source.component, ...(source.host === undefined ? {} : { host: source.host }) },
          reportingComponent: source.component, reportingInstance: source.host ?? "",
        } as EventDraft;
        enqueue({ reason, object: involvedObject }, () => {
          const correlated = correlator.correlate(draft, clock.uptimeMs(), nameFor(involvedObject.name ?? ""));
          if (correlated === undefined) return undefined;
          const { name, namespace } = correlated.event.metadata;
          return { key: `${namespace}/${name}`, reason, object: involvedObject, send: (signal) => send(correlated, signal) };
        });
      },
    }),
    reporter: ({ component, host }) => ({
      report(about, { type, reason, action, note }) {
        const regarding = referenceTo(about);
        const report = {
          apiVersion: "events.k8s.io/v1", kind: "Event", metadata: { name: nameFor(regarding.name ?? ""), namespace: regarding.namespace || "default" }, eventTime: microTimestamp(clock.nowMs()),
          reportingController: component, reportingInstance: `${component}-${host}`, action, reason, regarding, note, type,
        } as Report;
        enqueue({ reason, object: regarding }, () => {
          const told = series.tell(report, clock.uptimeMs());
          return told && letterOf(told);
        });
      },
    }),
    async run(signal, ready) {
      const stop = (): void => wake();
      signal.addEventListener("abort", stop, { once: true });
      const kept = [keepSeries(REFRESH_MS, () => series.refresh(), signal), keepSeries(FINISH_MS, () => series.finish(clock.uptimeMs()), signal)];
      ready();
      while (!signal.aborted) {
        const next = underWay < writesMax ? queue.shift() : undefined;
        if (next !== undefined) begin(next.letter(), signal);
        else await new Promise<void>((resolve) => { wake = resolve; if (signal.aborted) resolve(); });
      }
      await Promise.all([...writing.values(), ...kept]);
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
export const silentEvents: Events = { from: () => ({ event() {} }), reporter: () => ({ report() {} }) };
