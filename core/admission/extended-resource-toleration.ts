/**
 * ExtendedResourceToleration: nodes with a device are kept for pods that want it by a taint of the device's name; pods that ask for it tolerate the taint.
 *
 * Source: kubernetes v1.36 plugin/pkg/admission/extendedresourcetoleration/admission.go
 */
import type { Pod, Toleration } from "../api/gen/core.v1.ts";
import type { AdmissionPlugin } from "./plugin.ts";
import { isResource, sameValue } from "./refuse.ts";

export const extendedResourceToleration: AdmissionPlugin = {
  name: "ExtendedResourceToleration",
  handles: (request) => (request.operation === "CREATE" || request.operation === "UPDATE") && isResource(request, "pods"),
  admit({ object }) {
    const { spec } = object as Pod;
    const names = [...(spec.containers ?? []), ...(spec.initContainers ?? [])].flatMap(({ resources }) => Object.keys(resources?.requests ?? {})).filter(isExtended);
    for (const key of [...new Set(names)].sort()) {
      const wanted: Toleration = { key, operator: "Exists", effect: "NoSchedule" };
      const given = spec.tolerations ?? [];
      const at = given.findIndex((one) => one.key === key && one.effect === wanted.effect && (one.operator ?? "Equal") === wanted.operator && !one.value);
      if (at < 0) spec.tolerations = [...given, wanted];
      else if (!sameValue(given[at], wanted)) spec.tolerations = given.with(at, wanted);
    }
  },
};

/** Anybody's but Kubernetes' own, and none whose quota name would be. */
function isExtended(name: string): boolean {
  return name.includes("/") && !name.includes("kubernetes.io/") && !name.startsWith("requests.");
}
