/** The bridge that this node's pods are at, where their network is ours: what makes it and what filters at it know it by its name. */
export const BRIDGE = "cni0";
