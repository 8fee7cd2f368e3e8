/**
 * How long an answer is waited for: as long as the client says (?timeout=10s), and a minute at the most if no other time is set, to a write 34 s. Requests that last (watches, logs,
 * connections) have their own ways to end, and callers in this process, and what is asked for that is no resource, too.
 *
 * Source: kubernetes v1.36 apiserver/pkg/endpoints/filters/request_deadline.go, apiserver/pkg/server/filters/timeout.go, apiserver/pkg/endpoints/handlers/rest.go
 */
import { parseDurationMs } from "../api/meta/duration.ts";
import { badRequest, timeout } from "../api/meta/status-error.ts";
import type { Clock } from "../lifecycle/clock.ts";
import type { Answer, RawAnswer } from "./answer.ts";
import { isLasting } from "./lasting.ts";
import type { ServerRequest } from "./request.ts";
import type { RequestInfo, ResourceRequestInfo } from "./request-info.ts";

/** Whoever asks for more gets this, if nothing else is set. Source: --request-timeout */
export const REQUEST_MS = 60_000;
/** Source: requestTimeoutUpperBound */
const WRITE_MS_MAX = 34_000;
const WRITES: ReadonlySet<string> = new Set(["create", "update", "patch", "delete"]);

export interface Timed {
  readonly request: ServerRequest;
  /** What `work` comes to, or what the client is told instead of an answer that comes too late. The work is not waited for then. */
  inTime(work: Promise<Answer>): Promise<Answer>;
  done(): void;
}

const TOO_LATE = timeout("request did not complete within the allotted timeout");
/** Nobody has said what it is: what answers in time would have, and clients in Go have words of their own for it. */
export const OVERDUE: RawAnswer = { type: "raw", status: 504, headers: { "content-type": "text/plain; charset=utf-8" }, body: `${JSON.stringify({ ...TOO_LATE.status, kind: undefined, apiVersion: undefined })}\n` };

const LATE_WRITE = timeout("request did not complete within requested timeout - context deadline exceeded");

export class Deadlines {
  readonly #clock: Clock;
  readonly #isOurs: (info: ResourceRequestInfo) => boolean;
  readonly #requestMs: number;
  readonly #reads: Patience;
  readonly #writes: Patience;

  /** `isOurs`: no server behind this one answers it, which has its own patience. */
  constructor(clock: Clock, isOurs: (info: ResourceRequestInfo) => boolean, requestMs: number = REQUEST_MS) {
    this.#clock = clock;
    this.#isOurs = isOurs;
    this.#requestMs = requestMs;
    this.#reads = new Patience(clock, requestMs);
    this.#writes = new Patience(clock, WRITE_MS_MAX);
  }

  /** The request, whose signal aborts when its client waits no longer. Throws 400. */
  timed(request: ServerRequest, info: RequestInfo): Timed {
    const text = request.query.get("timeout");
    const lasts = info.verb === "watch" || isLasting(info);
    const askedMs = text && !lasts ? durationOf(text) : 0;
    const writes = info.isResource && WRITES.has(info.verb) && this.#isOurs(info);
    if (askedMs > 0 && askedMs < (writes ? Math.min(WRITE_MS_MAX, this.#requestMs) : this.#requestMs)) return this.#asked(request, askedMs);
    if (lasts || request.user || !info.isResource) return { request, inTime: (work) => work, done: () => undefined };
    if (writes && this.#requestMs < WRITE_MS_MAX) return this.#asked(request, this.#requestMs);
    if (!writes) return { request, ...this.#reads.wait((resolve) => resolve(OVERDUE)) };
    return { request: { ...request, deadlineMs: this.#clock.uptimeMs() + WRITE_MS_MAX }, ...this.#writes.wait((_, reject) => reject(LATE_WRITE)) };
  }

  #asked(request: ServerRequest, askedMs: number): Timed {
    const late = new AbortController();
    const timer = this.#clock.after(askedMs, () => late.abort(TOO_LATE));
    return {
      request: { ...request, signal: AbortSignal.any([request.signal, late.signal]), deadlineMs: this.#clock.uptimeMs() + askedMs },
      inTime: (work) => new Promise((resolve, reject) => {
        late.signal.addEventListener("abort", () => resolve(OVERDUE), { once: true });
        work.then(resolve, reject);
      }),
      done: () => timer.cancel(),
    };
  }
}

type End = (resolve: (answer: Answer) => void, reject: (error: Error) => void) => void;
interface Waiting { readonly endMs: number; late(): void }

/** Of all that wait equally long: a timer and a signal for each would cost more than many of them. */
class Patience {
  readonly #clock: Clock;
  readonly #ms: number;
  readonly #waiting = new Set<Waiting>(); // in the order of their ends
  #alarm: { cancel(): void } | undefined; // Invariant: set while anybody waits

  constructor(clock: Clock, ms: number) {
    this.#clock = clock;
    this.#ms = ms;
  }

  wait(end: End): Omit<Timed, "request"> {
    const waiting: Waiting = { endMs: this.#clock.uptimeMs() + this.#ms, late: () => undefined };
    this.#waiting.add(waiting);
    this.#alarm ??= this.#clock.after(this.#ms, () => this.#ring());
    return {
      inTime: (work) => new Promise((resolve, reject) => {
        waiting.late = () => end(resolve, reject);
        work.then(resolve, reject);
      }),
      done: () => {
        this.#waiting.delete(waiting);
        if (this.#waiting.size > 0) return;
        this.#alarm?.cancel();
        this.#alarm = undefined;
      },
    };
  }

  #ring(): void {
    this.#alarm = undefined;
    const nowMs = this.#clock.uptimeMs();
    for (const waiting of this.#waiting) {
      if (waiting.endMs > nowMs) {
        this.#alarm = this.#clock.after(waiting.endMs - nowMs, () => this.#ring());
        return;
      }
      this.#waiting.delete(waiting);
      waiting.late();
    }
  }
}

function durationOf(text: string): number {
  try {
    return parseDurationMs(text);
  } catch (error) {
    throw badRequest(`invalid timeout specified in the request URL - ${(error as Error).message}`, error);
  }
}
