/**
 * Tells each node for how long it may use its copies of Secrets and ConfigMaps, as an annotation of the Node.
 *
 * API:    https://kubernetes.io/docs/reference/labels-annotations-taints/#node-alpha-kubernetes-io-ttl
 * Source: kubernetes v1.36 pkg/controller/ttl/ttl_controller.go
 */
import { ifFound } from "../../api/meta/if-found.ts";
import { annotationsOf, isDeleting } from "../../api/meta/object-meta.ts";
import { NODES } from "../../client/resources.ts";
import { type Controller, itself } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { stepFor, ttlSecondsOf } from "./plan.ts";

const TTL = "node.alpha.kubernetes.io/ttl";

export function ttlController({ client, informers }: Pick<ControllerDeps, "client" | "informers">): Controller {
  const nodes = informers.of(NODES);
  const nodeClient = client.resource(NODES);
  let step = 0;
  return {
    name: "ttlcontroller",
    workers: 1,
    watches: [itself(nodes)],
    async reconcile(key, { signal }) {
      const all = [...nodes.list()];
      step = stepFor(step, all.length);
      const ttl = String(ttlSecondsOf(step));
      const node = nodes.get(key);
      if (node === undefined || isDeleting(node) || annotationsOf(node)[TTL] === ttl) return;
      const written = await ifFound(nodeClient.patch(node, "application/merge-patch+json", { metadata: { annotations: { [TTL]: ttl } } }, { signal }));
      if (written) await nodes.caughtUp([written], signal);
    },
  };
}
