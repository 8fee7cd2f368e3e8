/**
 * Tells the runtime which addresses the node's pods have: one that writes its network's configuration by itself, from a template, waits for that.
 *
 * Source: kubernetes v1.36 pkg/kubelet/kubelet_network.go (updatePodCIDR)
 */
import type { Node } from "../../../core/api/gen/core.v1.ts";
import type { Log } from "../../../core/observe/log.ts";
import { type Cri, CriError } from "../../cri/client.ts";

/** The node's status waits for it. */
const ANSWER_MS = 5_000;

/** Is to be called with the node as it is, time and again: once for each other range the runtime is told. Throws only once `signal` has aborted. */
export function podCidrTold({ cri, log }: { readonly cri: Pick<Cri, "call">; readonly log: Log }): (node: Pick<Node, "spec">, signal: AbortSignal) => Promise<void> {
  let told = "";
  return async ({ spec: { podCIDRs = [] } }, signal) => {
    const wanted = podCIDRs.join(",");
    if (wanted === "" || wanted === told) return;
    try {
      await cri.call("RuntimeService/UpdateRuntimeConfig", { runtime_config: { network_config: { pod_cidr: wanted } } }, { signal, timeoutMs: ANSWER_MS });
      told = wanted;
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof CriError && error.code === "Unimplemented") told = wanted; // it does not want to know
      else log.warn("the runtime was not told which addresses its pods have, next try soon", { podCidr: wanted, error });
    }
  };
}
