/**
 * The node's heartbeat: a Lease in kube-node-lease, renewed every 10 s, good for 40. Only what is new is sent: it is most of what a node at rest sends, and links may be metered.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/component-helpers/apimachinery/lease/controller.go, pkg/kubelet/kubelet.go
 */
import type { Lease } from "../../../core/api/gen/coordination.v1.ts";
import { isConflict, isNotFound } from "../../../core/api/meta/status-error.ts";
import type { Client } from "../../../core/client/client.ts";
import { NODE_LEASES } from "../../../core/client/cluster-objects.ts";
import { LEASES } from "../../../core/client/resources.ts";
import { backoffMs } from "../../../core/lifecycle/backoff.ts";
import { type Clock, microTimestamp } from "../../../core/lifecycle/clock.ts";
import type { Runnable } from "../../../core/lifecycle/run-all.ts";
import type { Log } from "../../../core/observe/log.ts";

/** That all its fields are the node's is half of each answer, and of what is written to flash for it. Source: apimachinery/pkg/util/managedfields (an empty entry takes it away, for good) */
const UNTRACKED = [{}];
const RENEW_FRACTION = 0.25;
const RETRY = { minMs: 200, maxMs: 7_000 };

interface Deps { readonly client: Client; readonly clock: Clock; readonly log: Log; readonly nodeName: string; readonly durationSeconds: number; /** Of the node's object, once it is known. */ readonly nodeUid: () => string | undefined }

export function nodeLease({ client, clock, log, nodeName, durationSeconds, nodeUid }: Deps): Runnable {
  const leases = client.resource(LEASES);
  let known: Readonly<Lease> | undefined;

  async function renew(signal: AbortSignal): Promise<void> {
    const uid = nodeUid();
    const owner = uid === undefined ? {} : { ownerReferences: [{ apiVersion: "v1", kind: "Node", name: nodeName, uid }] };
    const spec = { holderIdentity: nodeName, leaseDurationSeconds: durationSeconds, renewTime: microTimestamp(clock.nowMs()) };
    const metadata = { name: nodeName, namespace: NODE_LEASES };
    try {
      known ??= await leases.get({ metadata }, { signal });
      const { resourceVersion, managedFields } = known.metadata; // somebody else's renewal in between is a conflict
      const patch = { metadata: { resourceVersion, ...changed(known.metadata, owner), ...(managedFields?.length === 1 ? { managedFields: UNTRACKED } : {}) }, spec: changed(known.spec ?? {}, spec) };
      known = await leases.patch({ metadata }, "application/merge-patch+json", patch, { signal });
    } catch (error) {
      known = undefined;
      if (!isNotFound(error)) throw error;
      known = await leases.create({ apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { ...metadata, ...owner }, spec }, { signal });
    }
  }

  return {
    name: "node-lease",
    async run(signal, ready) {
      ready();
      for await (const _ of clock.every(durationSeconds * 1000 * RENEW_FRACTION, signal)) {
        for (let failures = 0; !signal.aborted; ) {
          try {
            await renew(signal);
            break;
          } catch (error) {
            if (signal.aborted) return;
            if (!isConflict(error)) log.warn("node lease not renewed, next try soon", { error });
            await clock.sleep(backoffMs(++failures, RETRY), signal);
          }
        }
      }
    },
  };
}

/** The fields of `wanted` that are otherwise in `known`. */
function changed(known: object, wanted: object): object {
  return Object.fromEntries(Object.entries(wanted).filter(([name, value]) => !Bun.deepEquals((known as Record<string, unknown>)[name], value)));
}
