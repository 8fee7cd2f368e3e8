/** LimitPodHardAntiAffinityTopology: pods may keep others off their node, but not off a whole zone. Source: kubernetes v1.36 plugin/pkg/admission/antiaffinity */
import type { Pod } from "../api/gen/core.v1.ts";
import type { AdmissionPlugin } from "./plugin.ts";
import { isResource, refusal } from "./refuse.ts";

const HOSTNAME_LABEL = "kubernetes.io/hostname";

export const limitPodHardAntiAffinityTopology: AdmissionPlugin = {
  name: "LimitPodHardAntiAffinityTopology",
  handles: (request) => (request.operation === "CREATE" || request.operation === "UPDATE") && isResource(request, "pods"),
  validate(request) {
    const terms = (request.object as Pod).spec.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
    const other = terms.find(({ topologyKey }) => topologyKey !== HOSTNAME_LABEL);
    if (other) throw refusal(request, `affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey ${other.topologyKey} but only key ${HOSTNAME_LABEL} is allowed`);
  },
};
