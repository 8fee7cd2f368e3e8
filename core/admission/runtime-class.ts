/**
 * RuntimeClass: the class must exist; its overhead, node selector and tolerations become the pod's.
 *
 * Source: kubernetes v1.36 plugin/pkg/admission/runtimeclass/admission.go
 */
import type { Pod } from "../api/gen/core.v1.ts";
import type { RuntimeClass } from "../api/gen/node.v1.ts";
import { goQuote } from "../api/meta/go-quote.ts";
import { compareQuantities } from "../api/meta/quantity.ts";
import type { Lookup } from "../client/lookup.ts";
import { mergeTolerations } from "./merge-tolerations.ts";
import type { AdmissionPlugin, AdmissionRequest } from "./plugin.ts";
import { isResource, refusal } from "./refuse.ts";

type Resources = Readonly<Record<string, string>> | undefined;

export function runtimeClassAdmission({ runtimeClasses }: { readonly runtimeClasses: Lookup<RuntimeClass> }): AdmissionPlugin {
  async function classOf(request: AdmissionRequest): Promise<Readonly<RuntimeClass> | undefined> {
    const name = (request.object as Pod).spec.runtimeClassName;
    if (name == null) return undefined;
    const found = await runtimeClasses.find("", name, request.signal);
    if (!found) throw refusal(request, `pod rejected: RuntimeClass ${goQuote(name)} not found`);
    return found;
  }

  return {
    name: "RuntimeClass",
    handles: (request) => request.operation === "CREATE" && isResource(request, "pods"),
    async admit(request) {
      const { spec } = request.object as Pod;
      const found = await classOf(request);
      if (found?.overhead) {
        const overhead = found.overhead.podFixed as Resources;
        if (Object.keys(spec.overhead ?? {}).length > 0 && !sameResources(overhead, spec.overhead as Resources)) throw mismatch(request);
        if (overhead) spec.overhead = { ...overhead };
      }
      if (found?.scheduling) {
        const { nodeSelector = {}, tolerations = [] } = found.scheduling;
        for (const [key, value] of Object.entries(nodeSelector)) {
          const own = spec.nodeSelector?.[key];
          if (own !== undefined && own !== value) throw refusal(request, `conflict: runtimeClass.scheduling.nodeSelector[${key}] = ${value}; pod.spec.nodeSelector[${key}] = ${own}`);
        }
        if (Object.keys(nodeSelector).length > 0) spec.nodeSelector = { ...spec.nodeSelector, ...nodeSelector };
        const merged = mergeTolerations(spec.tolerations ?? [], tolerations); // also without any of the class: of the pod's own, what others include goes
        if (merged.length > 0) spec.tolerations = merged;
      }
    },
    async validate(request) {
      const { spec } = request.object as Pod;
      const found = await classOf(request);
      if (found?.overhead) {
        if (!sameResources(found.overhead.podFixed as Resources, spec.overhead as Resources)) throw mismatch(request);
      } else if (spec.overhead !== undefined) {
        throw refusal(request, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead");
      }
    },
  };
}

function mismatch(request: AdmissionRequest): Error { return refusal(request, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"); }

function sameResources(a: Resources = {}, b: Resources = {}): boolean {
  return Object.keys(a).length === Object.keys(b).length && Object.entries(a).every(([name, quantity]) => b[name] !== undefined && compareQuantities(String(quantity), String(b[name])) === 0);
}
