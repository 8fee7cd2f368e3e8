/**
 * How long an answer is waited for: as long as the client says (?timeout=10s), and a minute at the most. Requests that last (watches, logs, connections) have
 * their own ways to end, and callers in this process, and what is asked for that is no resource, too.
 *
 * Source: kubernetes v1.36 apiserver/pkg/endpoints/filters/request_deadline.go, apiserver/pkg/server/filters/timeout.go
 */
import { parseDurationMs } from "../api/meta/duration.ts";
import { badRequest, timeout } from "../api/meta/status-error.ts";
import type { Clock } from "../lifecycle/clock.ts";
import type { Answer, RawAnswer } from "./answer.ts";
import { isLasting } from "./lasting.ts";
import type { ServerRequest } from "./request.ts";
import type { RequestInfo } from "./request-info.ts";

/** Whoever asks for more gets this. Source: --request-timeout */
const TIMEOUT_MS_MAX = 60_000;

export interface Timed {
  readonly request: ServerRequest;
  /** What `work` comes to, or what the client is told instead of an answer that comes too late. The work is not waited for then. */
  inTime(work: Promise<Answer>): Promise<Answer>;
  done(): void;
}

const TOO_LATE = timeout("request did not complete within the allotted timeout");
/** Nobody has said what it is: what answers in time would have, and clients in Go have words of their own for it. */
const OVERDUE: RawAnswer = { type: "raw", status: 504, headers: { "content-type": "text/plain; charset=utf-8" }, body: `${JSON.stringify({ ...TOO_LATE.status, kind: undefined, apiVersion: undefined })}\n` };

export class Deadlines {
  readonly #clock: Clock;
  readonly #waiting = new Set<Waiting>(); // in the order of their ends: all wait equally long
  #alarm: { cancel(): void } | undefined; // Invariant: set while anybody waits

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The request, whose signal aborts when its client waits no longer. Throws 400. */
  timed(request: ServerRequest, info: RequestInfo): Timed {
    const text = request.query.get("timeout");
    const lasts = info.verb === "watch" || isLasting(info);
    const askedMs = text && !lasts ? durationOf(text) : 0;
    if (askedMs > 0 && askedMs < TIMEOUT_MS_MAX) return this.#asked(request, askedMs);
    return lasts || request.user || !info.isResource ? { request, inTime: (work) => work, done: () => undefined } : this.#usual(request);
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

  /** Of most requests: a timer and a signal for each would cost more than many of them. */
  #usual(request: ServerRequest): Timed {
    const waiting: Waiting = { endMs: this.#clock.uptimeMs() + TIMEOUT_MS_MAX, late: () => undefined };
    this.#waiting.add(waiting);
    this.#alarm ??= this.#clock.after(TIMEOUT_MS_MAX, () => this.#ring());
    return {
      request,
      inTime: (work) => new Promise((resolve, reject) => {
        waiting.late = () => resolve(OVERDUE);
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

interface Waiting { readonly endMs: number; late(): void }

function durationOf(text: string): number {
  try {
    return parseDurationMs(text);
  } catch (error) {
    throw badRequest(`invalid timeout specified in the request URL - ${(error as Error).message}`, error);
  }
}
