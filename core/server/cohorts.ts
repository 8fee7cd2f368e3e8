/**
 * Requests that come in one turn of the event loop go their way together: each waits for the end of the turn, then all of them take every step side by side, since what awaits
 * something that is there already goes on when the others have got as far. The code of a step is in the processor's caches then for all but the first: of a server's code, of which
 * a write runs some four thousand functions, that is most of what a request costs (test/bench/README.md).
 *
 * Source: Larus, Parkes: Using Cohort Scheduling to Enhance Server Performance, USENIX 2002.
 */
import type { Handler } from "./scope.ts";

export interface Cohorts {
  /** Runs it when this turn of the event loop is over: setImmediate. */
  readonly later: (work: () => void) => void;
  /** Whether each request is served by itself just now: what it takes is somebody's. */
  readonly isApart?: (() => boolean) | undefined;
}

export function inCohorts(handler: Handler, { later, isApart }: Cohorts): Handler {
  let next: Promise<void> | undefined;
  function together(): Promise<void> {
    return (next ??= new Promise((resolve) => later(() => {
      next = undefined;
      resolve();
    })));
  }
  return async (request) => {
    if (!isApart?.()) await together();
    request.signal.throwIfAborted(); // reset in the packet that asked: whoever sends thousands of those has no work done for them
    return await handler(request);
  };
}
