export interface StopSignal { readonly signal: AbortSignal; reason(): string }

/** SIGINT and SIGTERM as an AbortSignal. The second one ends the process at once. */
export function stopSignal(target: Pick<NodeJS.Process, "on" | "exit">): StopSignal {
  const stop = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const) {
    target.on(name, () => {
      if (stop.signal.aborted) target.exit(1);
      stop.abort(new Error(name));
    });
  }
  return { signal: stop.signal, reason: () => (stop.signal.reason instanceof Error ? stop.signal.reason.message : "") };
}
