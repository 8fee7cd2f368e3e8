/** All plug-ins in their order, as one: those that change objects, then, after the object is complete, those that only look. */
import type { AdmissionMeter } from "./admission-metrics.ts";
import type { AdmissionPlugin, AdmissionRequest } from "./plugin.ts";
import { Reinvocation } from "./reinvocation.ts";

export interface AdmissionChain {
  /** May change `request.object`. Throws StatusError of the first to refuse. */
  admit(request: AdmissionRequest): Promise<void>;
  validate(request: AdmissionRequest): Promise<void>;
}

export function admissionChain(plugins: readonly AdmissionPlugin[], meter: AdmissionMeter = UNMETERED): AdmissionChain {
  const admitting = plugins.filter(({ admit }) => admit);
  const validating = plugins.filter(({ validate }) => validate);
  return {
    admit: (request) => meter.timed("admit", request, undefined, async () => {
      const reinvocation = new Reinvocation();
      do {
        for (const plugin of admitting) if (plugin.handles(request)) await meter.timed("admit", request, plugin.name, () => plugin.admit!(request, reinvocation));
      } while (reinvocation.next());
    }),
    validate: (request) => meter.timed("validate", request, undefined, async () => {
      for (const plugin of validating) if (plugin.handles(request)) await meter.timed("validate", request, plugin.name, () => plugin.validate!(request));
    }),
  };
}

const UNMETERED: AdmissionMeter = { timed: async (_, __, ___, work) => await work() };
