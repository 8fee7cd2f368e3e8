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
        do await inTurn(admitting, request, (plugin) => plugin.admit!(request, reinvocation));
        while (reinvocation.next());
      });
    },
    async validate(request) {
      await timed(validated, request, () => inTurn(validating, request, (plugin) => plugin.validate!(request)));
    },
  };

  /** Each one's time begins where that of the one before ended. Most are done at once: nothing is promised for them. */
  async function inTurn(among: readonly Metered[], request: AdmissionRequest, work: (plugin: AdmissionPlugin) => Promise<void> | void): Promise<void> {
    let sinceMs = meter.nowMs();
    for (const { plugin, took } of among) {
      if (!plugin.handles(request)) continue;
      let rejected = true; // what is thrown is a refusal
      try {
        const pending = work(plugin);
        if (pending) await pending;
        rejected = false;
      } finally {
        const nowMs = meter.nowMs();
        took(request.operation, rejected, (nowMs - sinceMs) / 1000);
        sinceMs = nowMs;
      }
    }
  }

  async function timed(took: Took, { operation }: AdmissionRequest, work: () => Promise<void>): Promise<void> {
    const startMs = meter.nowMs();
    let rejected = true;
    try {
      await work();
      rejected = false;
    } finally {
      took(operation, rejected, (meter.nowMs() - startMs) / 1000);
    }
  }
}

interface Metered { readonly plugin: AdmissionPlugin; readonly took: Took }

const UNMETERED: AdmissionMeter = { nowMs: () => 0, series: () => () => undefined };
