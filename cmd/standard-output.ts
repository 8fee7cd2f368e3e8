/** Lines on standard output. What it does not take (a disk that is full, a reader that has gone) is lost, as it is for upstream, and ends nothing. */
import type { LineWriter } from "../core/server/audit/log-sink.ts";

export function standardOutput(stdout: NodeJS.WriteStream): LineWriter {
  stdout.on("error", () => undefined);
  return { write: (line) => new Promise((resolve) => void stdout.write(`${line}\n`, (error) => resolve(!error))), close: () => Promise.resolve() };
}
