/** All plug-ins in their order, as one: those that change objects, then, after the object is complete, those that only look. */
import type { AdmissionMeter, AdmissionStep, Took } from "./admission-metrics.ts";
import type { AdmissionPlugin, AdmissionRequest } from "./plugin.ts";
import { Reinvocation } from "./reinvocation.ts";

export interface AdmissionChain {
  /** May change `request.object`. Throws StatusError of the first to refuse. */
  admit(request: AdmissionRequest): Promise<void>;
  validate(request: AdmissionRequest): Promise<void>;
}

export function admissionChain(plugins: readonly AdmissionPlugin[], meter: AdmissionMeter = UNMETERED): AdmissionChain {
  const metered = (step: AdmissionStep): Metered[] => plugins.filter((plugin) => plugin[step]).map((plugin) => ({ plugin, took: meter.series(step, plugin.name) }));
  const admitting = metered("admit");
  const validating = metered("validate");
  const [admitted, validated] = [meter.series("admit", undefined), meter.series("validate", undefined)];
  return {
    async admit(request) {
      await timed(admitted, request, async () => {
        const reinvocation = new Reinvocation();
        do {
          for (const { plugin, took } of admitting) {
            const pending = plugin.handles(request) ? timed(took, request, () => plugin.admit!(request, reinvocation)) : undefined;
            if (pending) await pending;
          }
        } while (reinvocation.next());
      });
    },
    async validate(request) {
      await timed(validated, request, async () => {
        for (const { plugin, took } of validating) {
          const pending = plugin.handles(request) ? timed(took, request, () => plugin.validate!(request)) : undefined;
          if (pending) await pending;
        }
      });
    },
  };

  /** What is thrown is a refusal. Most plug-ins are done at once: nothing is promised for them. */
  function timed(took: Took, { operation }: AdmissionRequest, work: () => Promise<void> | void): Promise<void> | undefined {
    const startMs = meter.nowMs();
    const settle = (rejected: boolean): void => took(operation, rejected, (meter.nowMs() - startMs) / 1000);
    let pending: Promise<void> | void;
    try {
      pending = work();
    } catch (error) {
      settle(true);
      throw error;
    }
    if (pending) return pending.then(() => settle(false), (error: unknown) => {
      settle(true);
      throw error;
    });
    settle(false);
    return undefined;
  }
}

interface Metered { readonly plugin: AdmissionPlugin; readonly took: Took }

const UNMETERED: AdmissionMeter = { nowMs: () => 0, series: () => () => undefined };
