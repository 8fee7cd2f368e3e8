/** PodTopologyLabels: a pod that is bound to a node learns in which zone and region that is. Source: kubernetes v1.36 plugin/pkg/admission/podtopologylabels */
import type { Binding, Node, Pod } from "../api/gen/core.v1.ts";
import { pathSegmentName } from "../api/meta/names.ts";
import type { ApiObject } from "../api/meta/object-meta.ts";
import type { Lookup } from "../client/lookup.ts";
import type { AdmissionPlugin } from "./plugin.ts";
import { isResource } from "./refuse.ts";

const TOPOLOGY_LABELS = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];

export function podTopologyLabels({ nodes }: { readonly nodes: Lookup<Node> }): AdmissionPlugin {
  return {
    name: "PodTopologyLabels",
    handles: (request) => request.operation === "CREATE" && (isResource(request, "pods") || isResource(request, "pods", "binding")),
    async admit({ subresource, object, signal }) {
      const nodeName = subresource === "binding" ? bindingNode(object as unknown as Binding) : (object as Pod).spec.nodeName;
      if (!nodeName || pathSegmentName(nodeName).length > 0) return; // no node has such a name; whether a pod may ask for it is said later
      const own = (await nodes.find("", nodeName, signal))?.metadata.labels ?? {};
      const labels = Object.fromEntries(TOPOLOGY_LABELS.flatMap((label) => (own[label] === undefined ? [] : [[label, own[label]]])));
      const { metadata } = object as ApiObject;
      if (Object.keys(labels).length > 0) metadata.labels = { ...metadata.labels, ...labels };
    },
  };
}

function bindingNode({ target }: Binding): string | undefined { return target?.kind === "Node" ? target.name : undefined; }
