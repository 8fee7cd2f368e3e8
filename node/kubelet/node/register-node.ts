/** Makes the node's object, or takes the one that is there. Source: kubernetes v1.36 pkg/kubelet/kubelet_node_status.go (tryRegisterWithAPIServer) */
import type { Node } from "../../../core/api/gen/core.v1.ts";
import { isExtendedResource } from "../../../core/api/meta/resource-names.ts";
import { isAlreadyExists } from "../../../core/api/meta/status-error.ts";
import type { Client, ResourceClient } from "../../../core/client/client.ts";
import { NODES } from "../../../core/client/resources.ts";
import type { Log } from "../../../core/observe/log.ts";
import type { MachineInfo } from "../../os/machine.ts";
import type { KubeletSettings } from "../settings.ts";
import { newNode, nodeLabels } from "./node-status.ts";
import type { StartupLatency } from "./startup-latency.ts";

/** Labels that are kept as this machine has them; all others are given to a node once, and are then whoever's it is to label nodes. Source: updateDefaultLabels */
const KEPT_LABELS: ReadonlySet<string> = new Set([
  "kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch", "beta.kubernetes.io/os", "beta.kubernetes.io/arch", "node.kubernetes.io/windows-build", "topology.kubernetes.io/zone", "topology.kubernetes.io/region",
  "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region", "node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type",
]);

export interface RegisterNodeDeps {
  readonly settings: KubeletSettings;
  readonly client: Client;
  readonly machine: MachineInfo;
  readonly log: Log;
  /** The machine has been started anew since the object was written. */
  readonly onRebooted: () => void;
  readonly startup?: Pick<StartupLatency, "registering" | "registered"> | undefined;
  /** No kubelet has run on this machine before: if the node is there already, it was another one's, or this one's before its disk was. */
  readonly isNewMachine?: boolean | undefined;
}

export async function registerNode({ settings, client, machine, log, onRebooted, startup, isNewMachine = false }: RegisterNodeDeps, signal: AbortSignal): Promise<Readonly<Node>> {
  const nodes = client.resource(NODES);
  const name = { metadata: { name: settings.nodeName } };
  if (!settings.registers) return await nodes.get(name, { signal }); // as whoever makes it wants it
  const draft = newNode({ settings, machine });
  startup?.registering();
  try {
    const created = await nodes.create({ ...draft, metadata: { ...draft.metadata } }, { signal });
    log.info("node registered", { node: settings.nodeName });
    startup?.registered();
    return created;
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
  const found = await nodes.get(name, { signal });
  const facts = nodeLabels(settings, machine);
  const differing = Object.entries({ ...facts, ...settings.labels }).filter(([key, value]) => found.metadata.labels?.[key] !== value);
  const labels = differing.filter(([key]) => KEPT_LABELS.has(key));
  const left = differing.flatMap(([key]) => (KEPT_LABELS.has(key) ? [] : [key]));
  if (left.length > 0) log.info("the node has been registered before: labels it was to have then are not given to it now, kubectl label does that", { node: settings.nodeName, labels: left });
  const annotations = Object.entries(draft.metadata.annotations).filter(([key, value]) => found.metadata.annotations?.[key] !== value);
  if (found.status?.nodeInfo?.bootID && found.status.nodeInfo.bootID !== machine.bootId) onRebooted(); // empty: nobody has reported it yet
  const current = isNewMachine ? await withoutExtended(nodes, found, signal) : found;
  if (labels.length === 0 && annotations.length === 0) return current;
  return await nodes.patch(name, "application/strategic-merge-patch+json", { metadata: { labels: Object.fromEntries(labels), annotations: Object.fromEntries(annotations) } }, { signal });
}

/** What its devices were is not known to be there: their plugins will say. Source: reconcileExtendedResource */
async function withoutExtended(nodes: ResourceClient<Node>, node: Readonly<Node>, signal: AbortSignal): Promise<Readonly<Node>> {
  const { capacity = {}, allocatable = {} } = node.status ?? {};
  const nothing = Object.fromEntries(Object.keys(capacity).filter(isExtendedResource).map((name) => [name, "0"]));
  if (Object.keys(nothing).every((name) => capacity[name] === "0" && allocatable[name] === "0")) return node;
  return await nodes.patch(node, "application/strategic-merge-patch+json", { status: { capacity: nothing, allocatable: nothing } }, { subresource: "status", signal });
}
