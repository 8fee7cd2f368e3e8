/**
 * What nobody has handled ends the process, since nobody knows what it left half done: with one line that says where it came from, and a code that has the supervisor start
 * it again. Containers go on meanwhile; what is asked of the cluster waits those seconds.
 */
import type { Log } from "../core/observe/log.ts";

export function lastWords(target: Pick<NodeJS.Process, "on" | "exit">, log: Log): void {
  const end = (origin: string, error: unknown): void => {
    log.error("fatal: an error that nothing handled ends the process", { origin, error });
    target.exit(1);
  };
  target.on("uncaughtException", (error) => end("exception", error));
  target.on("unhandledRejection", (error) => end("rejection", error));
}
