/**
 * ?timeout=10s: how long a client is willing to wait for an answer. Requests that last (watches, logs, connections) have their own ways to end.
 *
 * Source: kubernetes v1.36 apiserver/pkg/endpoints/filters/request_deadline.go
 */
import { parseDurationMs } from "../api/meta/duration.ts";
import { badRequest, timeout } from "../api/meta/status-error.ts";
import type { Clock } from "../lifecycle/clock.ts";
import type { RawAnswer } from "./answer.ts";
import { isLasting } from "./lasting.ts";
import type { ServerRequest } from "./request.ts";
import type { RequestInfo } from "./request-info.ts";

/** Whoever asks for more gets this. Source: --request-timeout */
const TIMEOUT_MS_MAX = 60_000;

export interface Timed {
  readonly request: ServerRequest;
  /** What the client is told instead of an answer that comes too late. */
  overdue(): RawAnswer | undefined;
  done(): void;
}

const TOO_LATE = timeout("request did not complete within the allotted timeout");
/** Nobody has said what it is: what answers in time would have, and clients in Go have words of their own for it. */
const OVERDUE: RawAnswer = { type: "raw", status: 504, headers: { "content-type": "text/plain; charset=utf-8" }, body: `${JSON.stringify({ ...TOO_LATE.status, kind: undefined, apiVersion: undefined })}\n` };

/** The request, whose signal aborts when its time is up. Throws 400. */
export function timed(request: ServerRequest, info: RequestInfo, clock: Clock): Timed {
  const text = request.query.get("timeout");
  const untimed: Timed = { request, overdue: () => undefined, done: () => undefined };
  if (!text || info.verb === "watch" || isLasting(info)) return untimed;
  const askedMs = durationOf(text);
  if (askedMs <= 0 || askedMs >= TIMEOUT_MS_MAX) return untimed;
  const late = new AbortController();
  const timer = clock.after(askedMs, () => late.abort(TOO_LATE));
  return { request: { ...request, signal: AbortSignal.any([request.signal, late.signal]), deadlineMs: clock.uptimeMs() + askedMs }, overdue: () => (late.signal.aborted ? OVERDUE : undefined), done: () => timer.cancel() };
}

function durationOf(text: string): number {
  try {
    return parseDurationMs(text);
  } catch (error) {
    throw badRequest(`invalid timeout specified in the request URL - ${(error as Error).message}`, error);
  }
}
