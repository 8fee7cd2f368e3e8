/**
 * SIGUSR2 says that the machine goes down, where no logind does: an init's shutdown script sends it, waits as long as the kubelet's shutdownGracePeriod, and goes on.
 *
 *   kill -USR2 "$(cat /run/coracle.pid)"
 */
import { aborted } from "../core/lifecycle/aborted.ts";
import type { ShutdownNotices } from "../node/kubelet/shutdown/shutdown.ts";

export function shutdownSignal(target: Pick<NodeJS.Process, "on" | "off">): ShutdownNotices {
  return {
    async run(on, _delayMs, signal) {
      const fail = Promise.withResolvers<void>();
      const listener = (): void => void on(true).catch(fail.reject);
      target.on("SIGUSR2", listener);
      try {
        await Promise.race([aborted(signal), fail.promise]);
      } finally {
        target.off("SIGUSR2", listener);
      }
    },
  };
}
