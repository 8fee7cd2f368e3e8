/** DefaultTolerationSeconds: pods stay five minutes on a node that is not ready or cannot be reached. Source: kubernetes v1.36 plugin/pkg/admission/defaulttolerationseconds */
import type { Pod } from "../api/gen/core.v1.ts";
import type { AdmissionPlugin } from "./plugin.ts";
import { isResource } from "./refuse.ts";

export interface DefaultTolerationSecondsOptions {
  /** --default-not-ready-toleration-seconds */
  readonly notReadySeconds?: number;
  /** --default-unreachable-toleration-seconds */
  readonly unreachableSeconds?: number;
}

export function defaultTolerationSeconds({ notReadySeconds = 300, unreachableSeconds = 300 }: DefaultTolerationSecondsOptions = {}): AdmissionPlugin {
  const defaults = [["node.kubernetes.io/not-ready", notReadySeconds], ["node.kubernetes.io/unreachable", unreachableSeconds]] as const;
  return {
    name: "DefaultTolerationSeconds",
    handles: (request) => (request.operation === "CREATE" || request.operation === "UPDATE") && isResource(request, "pods"),
    admit({ object }) {
      const { spec } = object as Pod;
      const given = spec.tolerations ?? [];
      const missing = defaults.filter(([taint]) => !given.some(({ key = "", effect = "" }) => (key === taint || key === "") && (effect === "NoExecute" || effect === "")));
      if (missing.length > 0) spec.tolerations = [...given, ...missing.map(([key, tolerationSeconds]) => ({ key, operator: "Exists" as const, effect: "NoExecute" as const, tolerationSeconds }))];
    },
  };
}
