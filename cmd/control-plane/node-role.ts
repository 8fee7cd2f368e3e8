/**
 * The node in a server's process is known as one of the control plane: ROLES of `kubectl get nodes`, and what selects nodes by that label (kubeadm's, k3s' and k0s' nodes have
 * it, too). No taint comes with it. A node may not give itself this label; the server does, once for each Node it finds under its name: who takes it away has it away until the next start.
 */
import type { Node } from "../../core/api/gen/core.v1.ts";
import { labelsOf, objectKey } from "../../core/api/meta/object-meta.ts";
import { isNotFound } from "../../core/api/meta/status-error.ts";
import type { Client } from "../../core/client/client.ts";
import type { Informers } from "../../core/client/informer-factory.ts";
import { NODES } from "../../core/client/resources.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Runnable } from "../../core/lifecycle/run-all.ts";
import { workQueue } from "../../core/lifecycle/work-queue.ts";
import type { Log } from "../../core/observe/log.ts";

const ROLE_LABEL = "node-role.kubernetes.io/control-plane";

interface Options { readonly nodeName: string; readonly client: Client; readonly informers: Informers; readonly clock: Clock; readonly log: Log }

export function controlPlaneRole({ nodeName, client, informers, clock, log }: Options): Runnable {
  const nodes = informers.of(NODES);
  const queue = workQueue<string>(clock);
  let given: string | undefined; // to the Node of this uid

  async function give(node: Readonly<Node>, signal: AbortSignal): Promise<void> {
    if (labelsOf(node)[ROLE_LABEL] === undefined) await client.resource(NODES).patch(node, "application/merge-patch+json", { metadata: { uid: node.metadata.uid, labels: { [ROLE_LABEL]: "true" } } }, { signal });
    given = node.metadata.uid;
  }

  return {
    name: "role of the own node",
    async run(signal, ready) {
      const unwatch = nodes.onChange(({ object: { metadata } }) => { if (metadata.name === nodeName && metadata.uid !== given) queue.add(nodeName); });
      ready();
      for (let name = await queue.take(signal); name !== undefined; name = await queue.take(signal)) {
        const node = nodes.get(objectKey("", name));
        try {
          if (node && node.metadata.uid !== given) await give(node, signal);
          queue.forget(name);
        } catch (error) {
          if (signal.aborted) break;
          if (!isNotFound(error)) log.warn("this server's node cannot be labelled as one of the control plane", { error });
          queue.addRateLimited(name);
        } finally {
          queue.done(name);
        }
      }
      unwatch();
    },
  };
}
