/** Makes the node's object, or takes the one that is there. Source: kubernetes v1.36 pkg/kubelet/kubelet_node_status.go (tryRegisterWithAPIServer) */
import type { Node } from "../../../core/api/gen/core.v1.ts";
import { isAlreadyExists } from "../../../core/api/meta/status-error.ts";
import type { Client } from "../../../core/client/client.ts";
import { NODES } from "../../../core/client/resources.ts";
import type { Log } from "../../../core/observe/log.ts";
import type { MachineInfo } from "../../os/machine.ts";
import type { KubeletSettings } from "../settings.ts";
import { newNode, nodeLabels } from "./node-status.ts";
import type { StartupLatency } from "./startup-latency.ts";

export interface RegisterNodeDeps {
  readonly settings: KubeletSettings;
  readonly client: Client;
  readonly machine: MachineInfo;
  readonly log: Log;
  /** The machine has been started anew since the object was written. */
  readonly onRebooted: () => void;
  readonly startup?: Pick<StartupLatency, "registering" | "registered"> | undefined;
}

export async function registerNode({ settings, client, machine, log, onRebooted, startup }: RegisterNodeDeps, signal: AbortSignal): Promise<Readonly<Node>> {
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
  const labels = Object.entries({ ...facts, ...settings.labels }).filter(([key, value]) => found.metadata.labels?.[key] !== value);
  const annotations = Object.entries(draft.metadata.annotations).filter(([key, value]) => found.metadata.annotations?.[key] !== value);
  if (found.status?.nodeInfo?.bootID && found.status.nodeInfo.bootID !== machine.bootId) onRebooted(); // empty: nobody has reported it yet
  if (labels.length === 0 && annotations.length === 0) return found;
  return await nodes.patch(name, "application/strategic-merge-patch+json", { metadata: { labels: Object.fromEntries(labels), annotations: Object.fromEntries(annotations) } }, { signal });
}
