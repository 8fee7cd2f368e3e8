/**
 * Running the long-lived parts of a process.
 *
 *   start  in the order given, each part once the one before it is ready
 *   stop   in reverse order, each part once the one after it has ended
 *   fail   the first part to fail stops all the others; every error is reported
 */
import { aborted } from "./aborted.ts";

/** A part of the process with a life of its own. One promise is its whole life. */
export interface Runnable {
  readonly name: string;
  /** Calls `ready` once usable. Resolves once `signal` has aborted and nothing is held any more. */
  run(signal: AbortSignal, ready: () => void): Promise<void>;
}

export async function runAll(parts: readonly Runnable[], signal: AbortSignal): Promise<void> {
  const errors: Error[] = [];
  const failed = new AbortController();
  const quit = AbortSignal.any([signal, failed.signal]);
  const running: { stop: AbortController; ended: Promise<void> }[] = [];

  function fail(error: Error): void {
    errors.push(error);
    failed.abort(error);
  }

  for (const part of parts) {
    if (quit.aborted) break;
    const stop = new AbortController();
    const ready = Promise.withResolvers<void>();
    const ended = part.run(stop.signal, ready.resolve).then(
      () => { if (!stop.signal.aborted) fail(new Error(`${part.name} ended on its own`)); },
      (cause) => fail(new Error(`${part.name} failed`, { cause })),
    );
    running.push({ stop, ended });
    await Promise.race([ready.promise, aborted(quit)]);
  }
  await aborted(quit);
  for (const { stop, ended } of running.toReversed()) {
    stop.abort(quit.reason);
    await ended;
  }
  if (errors.length > 0) throw errors.length === 1 ? errors[0] : new AggregateError(errors, errors[0]?.message);
}
