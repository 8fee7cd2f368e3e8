/**
 * NodeDeclaredFeatureValidator: a pod that has a node does not become what that node has not declared it can do.
 *
 * Source: kubernetes v1.36 plugin/pkg/admission/nodedeclaredfeatures
 */
import type { Node, Pod } from "../api/gen/core.v1.ts";
import { featuresToChange } from "../api/meta/declared-features.ts";
import { goQuote } from "../api/meta/go-quote.ts";
import type { Lookup } from "../client/lookup.ts";
import type { AdmissionPlugin } from "./plugin.ts";
import { isResource, refusal, sameValue } from "./refuse.ts";

export function nodeDeclaredFeatureValidator({ nodes }: { readonly nodes: Lookup<Node> }): AdmissionPlugin {
  return {
    name: "NodeDeclaredFeatureValidator",
    handles: (request) => request.operation === "UPDATE" && (isResource(request, "pods") || isResource(request, "pods", "resize")),
    async validate(request) {
      const [before, after] = [(request.oldObject as Readonly<Pod>).spec, (request.object as Pod).spec];
      const nodeName = after.nodeName ?? "";
      if (nodeName === "" || sameValue(before, after)) return;
      const wanted = featuresToChange(before, after, sameValue);
      if (wanted.length === 0) return;
      const node = await nodes.find("", nodeName, request.signal);
      if (!node) throw refusal(request, `node ${goQuote(nodeName)} not found`);
      const missing = wanted.filter((feature) => !node.status?.declaredFeatures?.includes(feature));
      if (missing.length > 0) throw refusal(request, `pod update requires features ${missing.join(", ")} which are not available on node ${goQuote(nodeName)}`);
    },
  };
}
