/** SIGPWR, as an init without logind sends it when the power fails: the machine goes down. */
import { aborted } from "../core/lifecycle/aborted.ts";
import type { ShutdownNotices } from "../node/kubelet/shutdown/shutdown.ts";

export function powerSignal(target: Pick<NodeJS.Process, "on" | "off">): ShutdownNotices {
  return {
    async run(on, _delayMs, signal) {
      const fail = Promise.withResolvers<void>();
      const listener = (): void => void on(true).catch(fail.reject);
      target.on("SIGPWR", listener);
      try {
        await Promise.race([aborted(signal), fail.promise]);
      } finally {
        target.off("SIGPWR", listener);
      }
    },
  };
}
