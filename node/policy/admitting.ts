/**
 * A container runtime whose sandboxes are ready only when the network policies of their pods are in force: before any container of the pod has sent a packet.
 */
import type { Cri } from "../cri/client.ts";
import type { RunPodSandboxRequest } from "../cri/gen/runtime.v1.ts";
import type { NetworkPolicies } from "./policy.ts";

/** Source: CRI NamespaceMode */
const ON_HOST_NETWORK = "NODE";

export function admitting(cri: Cri, policies: Pick<NetworkPolicies, "admit">): Cri {
  async function admit(id: string, { config }: RunPodSandboxRequest, signal: AbortSignal): Promise<void> {
    if (config?.linux?.security_context?.namespace_options?.network === ON_HOST_NETWORK) return;
    const { status } = await cri.call("RuntimeService/PodSandboxStatus", { pod_sandbox_id: id }, { signal });
    const { ip = "", additional_ips = [] } = status?.network ?? {};
    const ips = [ip, ...additional_ips.map((one) => one.ip ?? "")].filter((one) => one !== "");
    const { uid = "", namespace = "" } = config?.metadata ?? {};
    if (ips.length > 0) await policies.admit({ uid, namespace, labels: config?.labels ?? {}, ips }, signal);
  }

  const call: Cri["call"] = async (method, request, options) => {
    const response = await cri.call(method, request, options);
    if (method !== "RuntimeService/RunPodSandbox") return response;
    const { pod_sandbox_id: id = "" } = response as { readonly pod_sandbox_id?: string };
    const signal = options?.signal ?? new AbortController().signal;
    try {
      await admit(id, request as RunPodSandboxRequest, signal);
    } catch (error) {
      await cri.call("RuntimeService/StopPodSandbox", { pod_sandbox_id: id });
      await cri.call("RuntimeService/RemovePodSandbox", { pod_sandbox_id: id });
      throw error;
    }
    return response;
  };
  return { ...cri, call };
}
