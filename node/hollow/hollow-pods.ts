/** Pretends to run the pods that are bound to a node. What it reports goes through the kubelet's own status writer. */
import type { Node, Pod } from "../../core/api/gen/core.v1.ts";
import { keyOf, type ObjectKey } from "../../core/api/meta/object-meta.ts";
import { isConflict, isNotFound } from "../../core/api/meta/status-error.ts";
import type { Client } from "../../core/client/client.ts";
import type { Informer } from "../../core/client/informer.ts";
import { PODS } from "../../core/client/resources.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Runnable } from "../../core/lifecycle/run-all.ts";
import { workQueue } from "../../core/lifecycle/work-queue.ts";
import type { Log } from "../../core/observe/log.ts";
import { statusPatch } from "../kubelet/status/status-patch.ts";
import { statusWriter } from "../kubelet/status/status-writer.ts";
import { PodAddresses } from "./addresses.ts";
import { planHollowPod } from "./plan.ts";

interface HollowPodsOptions {
  readonly nodeName: string;
  readonly nodeIps: readonly string[];
  /** The node as it is known now: its pod CIDRs. */
  readonly node: () => Pick<Node, "spec">;
  readonly client: Client;
  /** Of this node, or of all. */
  readonly pods: Informer<Pod>;
  readonly clock: Clock;
  readonly log: Log;
}

/** The node's range comes with the controllers of a server that is starting, and soon. */
const NO_RANGE_MS = 1_000;

export function hollowPods({ nodeName, nodeIps, node, client, pods, clock, log }: HollowPodsOptions): Runnable {
  const resource = client.resource(PODS);
  const queue = workQueue<ObjectKey>(clock);
  const addresses = new PodAddresses();

  async function look(key: ObjectKey, writer: ReturnType<typeof statusWriter>, signal: AbortSignal): Promise<void> {
    const pod = pods.get(key);
    if (pod?.spec.nodeName !== nodeName) return;
    const { podCIDRs, podCIDR } = node().spec ?? {};
    const had = (pod.status?.podIPs ?? []).flatMap(({ ip }) => ip ?? []);
    const podIps = addresses.of(pod.metadata.uid, podCIDRs ?? (podCIDR === undefined ? [] : [podCIDR]), had);
    const said = writer.get(pod.metadata.uid);
    const plan = planHollowPod(pod, { nodeIps, podIps, said, nowMs: clock.nowMs() });
    switch (plan.do) {
      case "nothing":
        if (podIps === undefined) queue.addAfter(key, NO_RANGE_MS);
        return;
      case "report":
        if (said && statusPatch(pod.metadata.uid, said, plan.status) === undefined) writer.reconcile(pod);
        else writer.set(pod, plan.status);
        if (plan.againMs !== undefined) queue.addAfter(key, plan.againMs);
        return;
      case "delete":
        try {
          await resource.delete(pod, { gracePeriodSeconds: 0, preconditions: { uid: pod.metadata.uid } }, { signal });
        } catch (error) {
          if (!isNotFound(error) && !isConflict(error)) throw error; // gone, or another pod has its name
        }
    }
  }

  return {
    name: "hollow-pods",
    async run(signal, ready) {
      const writer = statusWriter({ client, clock, log, signal, objectOf: (pod) => pods.get(keyOf(pod)) ?? pod });
      const unwatch = pods.onChange(({ object, deleted }) => {
        if (object.spec.nodeName !== nodeName) return;
        if (deleted) {
          addresses.release(object.metadata.uid);
          writer.forget(object.metadata.uid);
        } else queue.add(keyOf(object));
      });
      ready();
      for (let key = await queue.take(signal); key !== undefined; key = await queue.take(signal)) {
        try {
          await look(key, writer, signal);
          queue.forget(key);
        } catch (error) {
          if (signal.aborted) break;
          log.warn("hollow pod not handled, next try soon", { pod: key, error });
          queue.addRateLimited(key);
        } finally {
          queue.done(key);
        }
      }
      unwatch();
    },
  };
}
