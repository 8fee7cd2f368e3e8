/** A controller of which is told how long each reconcile took, and what went wrong with it. */
import type { Clock } from "../lifecycle/clock.ts";
import type { Controller } from "./controller.ts";

export function measured(controller: Controller, clock: Pick<Clock, "uptimeMs">, ended: (seconds: number, error: unknown) => void): Controller {
  return {
    ...controller,
    async reconcile(key, call) {
      const startMs = clock.uptimeMs();
      let wrong: unknown;
      try {
        return await controller.reconcile(key, call);
      } catch (error) {
        wrong = error;
        throw error;
      } finally {
        ended((clock.uptimeMs() - startMs) / 1000, wrong);
      }
    },
  };
}
