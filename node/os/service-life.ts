/**
 * What the service manager has asked of a service, looked at again and again: the C in service.windows.ts notes it on threads where no JavaScript can run.
 *
 *   stop      the service ends
 *   shutdown  the machine goes down, and waits for the service as long as it was told: whoever listens to `notices` has that time, then the service ends
 */
import { aborted } from "../../core/lifecycle/aborted.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Log } from "../../core/observe/log.ts";

export type Asked = "stop" | "shutdown" | undefined;

export interface ServiceLife {
  /** Aborts when the service is to end. */
  readonly signal: AbortSignal;
  /** As node/kubelet/shutdown has them. */
  readonly notices: { run(on: (down: boolean) => Promise<void>, delayMs: number, signal: AbortSignal): Promise<void> };
}

interface Manager {
  asked(): Asked;
  /** How long a shutdown is to wait. Throws if the manager will not hear of it. */
  waitFor(ms: number): void;
  /** That it is still at it: else the manager believes it dead. */
  stillEnding(): void;
}

const LOOK_MS = 250;
/** After the pods there is the process itself to end. */
const OWN_MS = 10_000;

export function serviceLife(manager: Manager, { clock, log }: { readonly clock: Pick<Clock, "after">; readonly log: Log }): ServiceLife {
  const stop = new AbortController();
  let listener: ((down: boolean) => Promise<void>) | undefined;
  let ending = false;

  function look(): void {
    const asked = manager.asked();
    if (asked === "stop" || (asked === "shutdown" && !listener)) stop.abort(new Error("service stopped"));
    if (stop.signal.aborted) return;
    if (asked === "shutdown") manager.stillEnding();
    if (asked === "shutdown" && !ending) {
      ending = true;
      listener!(true).catch(() => undefined).finally(() => stop.abort(new Error("the machine shuts down"))); // who listens says what went wrong
    }
    clock.after(LOOK_MS, look);
  }
  look();

  return {
    signal: stop.signal,
    notices: {
      async run(on, delayMs, signal) {
        try {
          manager.waitFor(delayMs + OWN_MS);
        } catch (error) {
          log.error("when this machine shuts down it may not wait for its pods", { error });
        }
        listener = on;
        await aborted(signal);
        listener = undefined;
      },
    },
  };
}
