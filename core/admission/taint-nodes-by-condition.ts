/** TaintNodesByCondition: a new node takes no pods until it is ready. Source: kubernetes v1.36 plugin/pkg/admission/nodetaint */
import type { Node } from "../api/gen/core.v1.ts";
import type { AdmissionPlugin } from "./plugin.ts";
import { isResource } from "./refuse.ts";

const NOT_READY = { key: "node.kubernetes.io/not-ready", effect: "NoSchedule" } as const;

export const taintNodesByCondition: AdmissionPlugin = {
  name: "TaintNodesByCondition",
  handles: (request) => request.operation === "CREATE" && isResource(request, "nodes"),
  admit({ object }) {
    const node = object as Node;
    const taints = node.spec?.taints ?? [];
    if (taints.some(({ key, effect }) => key === NOT_READY.key && effect === NOT_READY.effect)) return;
    node.spec = { ...node.spec, taints: [...taints, { ...NOT_READY }] };
  },
};
