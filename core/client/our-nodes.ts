/**
 * Which nodes are ours: those that have DNS and the ingress within. A kubelet of somebody else's joins as well (kubernetes' own, KubeEdge's), and has neither.
 */
import type { Node } from "../api/gen/core.v1.ts";

/** As our kubelets tell their version: v1.36.0+coracle0.1.0. */
const OUR_VERSION = "+coracle";

/** A node that has not told its kubelet's version yet is taken for ours. */
export function isOurNode({ status }: Readonly<Pick<Node, "status">>): boolean {
  const version = status?.nodeInfo?.kubeletVersion;
  return !version || version.includes(OUR_VERSION);
}
