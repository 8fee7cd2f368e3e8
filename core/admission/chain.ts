/** All plug-ins in their order, as one: those that change objects, then, after the object is complete, those that only look. */
import type { AdmissionPlugin, AdmissionRequest } from "./plugin.ts";
import { Reinvocation } from "./reinvocation.ts";

export interface AdmissionChain {
  /** May change `request.object`. Throws StatusError of the first to refuse. */
  admit(request: AdmissionRequest): Promise<void>;
  validate(request: AdmissionRequest): Promise<void>;
}

export function admissionChain(plugins: readonly AdmissionPlugin[]): AdmissionChain {
  const admitting = plugins.filter(({ admit }) => admit);
  const validating = plugins.filter(({ validate }) => validate);
  return {
    async admit(request) {
      const reinvocation = new Reinvocation();
      do {
        for (const plugin of admitting) if (plugin.handles(request)) await plugin.admit!(request, reinvocation);
      } while (reinvocation.next());
    },
    async validate(request) { for (const plugin of validating) if (plugin.handles(request)) await plugin.validate!(request); },
  };
}
