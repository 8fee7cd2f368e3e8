/** PodResizeValidator: a running pod cannot grow beyond its node, nor on a node that cannot resize. Source: kubernetes v1.36 plugin/pkg/admission/podresize */
import type { Node, Pod } from "../api/gen/core.v1.ts";
import { goQuote } from "../api/meta/go-quote.ts";
import { compareQuantity, parseQuantity } from "../api/meta/quantity.ts";
import type { Lookup } from "../client/lookup.ts";
import { podResources } from "./pod-resources.ts";
import type { AdmissionPlugin } from "./plugin.ts";
import { isResource, refusal, sameValue } from "./refuse.ts";

export function podResizeValidator({ nodes }: { readonly nodes: Lookup<Node> }): AdmissionPlugin {
  return {
    name: "PodResizeValidator",
    handles: (request) => request.operation === "UPDATE" && isResource(request, "pods", "resize"),
    async validate(request) {
      const pod = request.object as Pod;
      const nodeName = pod.spec.nodeName ?? "";
      if (nodeName === "" || sameValue(pod.spec, (request.oldObject as Readonly<Pod>).spec)) return;
      const node = await nodes.find("", nodeName, request.signal);
      if (!node) throw refusal(request, `node ${goQuote(nodeName)} not found`);
      const os = node.metadata.labels?.["kubernetes.io/os"];
      if (os !== undefined && os !== "linux") throw refusal(request, `pod resize is only supported on linux nodes, node ${goQuote(nodeName)} is ${goQuote(os)}`, [{ reason: "UnsupportedPlatform" }]);
      const lacking = lackingResources(pod, node);
      if (lacking.length > 0) throw refusal(request, `node didn't have enough allocatable resources: ${lacking.join("; ")}`, [{ reason: "NodeCapacity" }]);
    },
  };
}

function lackingResources(pod: Readonly<Pod>, { status }: Readonly<Node>): string[] {
  const requests = podResources(pod, "requests");
  return (["cpu", "memory"] as const).flatMap((name) => {
    const requested = requests.get(name);
    const allocatable = parseQuantity(String(status?.allocatable?.[name] ?? "0"));
    if (!requested || compareQuantity(requested, allocatable) <= 0) return [];
    const shown = name === "cpu" ? [requested.milliValue(), allocatable.milliValue()] : [requested.value(), allocatable.value()];
    return [`${name}, requested: ${shown[0]}, allocatable: ${shown[1]}`];
  });
}
