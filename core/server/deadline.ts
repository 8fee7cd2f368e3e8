/**
 * ?timeout=10s: how long a client is willing to wait for an answer. Requests that last (watches, logs, connections) have their own ways to end.
 *
 * Source: kubernetes v1.36 apiserver/pkg/endpoints/filters/request_deadline.go
 */
import { parseDurationMs } from "../api/meta/duration.ts";
import { badRequest, timeout } from "../api/meta/status-error.ts";
import type { Clock } from "../lifecycle/clock.ts";
import { isLasting } from "./lasting.ts";
import type { ServerRequest } from "./request.ts";
import type { RequestInfo } from "./request-info.ts";

/** Whoever asks for more gets this. Source: --request-timeout */
const TIMEOUT_MS_MAX = 60_000;

export interface Timed {
  readonly request: ServerRequest;
  done(): void;
}

/** The request, whose signal aborts when its time is up. Throws 400. */
export function timed(request: ServerRequest, info: RequestInfo, clock: Clock): Timed {
  const text = request.query.get("timeout");
  if (!text || info.verb === "watch" || isLasting(info)) return { request, done: () => undefined };
  const askedMs = durationOf(text);
  if (askedMs <= 0 || askedMs >= TIMEOUT_MS_MAX) return { request, done: () => undefined };
  const late = new AbortController();
  const timer = clock.after(askedMs, () => late.abort(timeout("request did not complete within the allotted timeout")));
  return { request: { ...request, signal: AbortSignal.any([request.signal, late.signal]) }, done: () => timer.cancel() };
}

function durationOf(text: string): number {
  try {
    return parseDurationMs(text);
  } catch (error) {
    throw badRequest(`invalid timeout specified in the request URL - ${(error as Error).message}`, error);
  }
}
