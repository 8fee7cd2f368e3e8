/**
 * A container runtime whose sandboxes have the bandwidth their pods' annotations say (bandwidth.ts), from before their first container starts until they are stopped.
 *
 * Nothing is done, and the runtime is asked nothing, until a pod has such an annotation; but once after a start, sandboxes of before are looked through. A kernel that
 * cannot filter on bridges says so once, and the pods run without a limit.
 */
import type { Log } from "../../core/observe/log.ts";
import { type Cri, isCriNotFound } from "../cri/client.ts";
import type { PodSandboxMetadata, RunPodSandboxRequest } from "../cri/gen/runtime.v1.ts";
import type { Nft } from "../os/exec-nft.ts";
import { type BandwidthLimit, bandwidthText, type LimitedPod, limitOf } from "./bandwidth.ts";

export interface LimitingOptions { readonly nft: Pick<Nft, "apply">; readonly log: Log }

export interface Limiting {
  readonly cri: Cri;
  /** Writes the rules again, when somebody has removed them. */
  renew(): Promise<void>;
}

export function limiting(cri: Cri, { nft, log }: LimitingOptions): Limiting {
  const pods = new Map<string, LimitedPod>();
  let known = false; // whether sandboxes of before are
  let turn: Promise<unknown> = Promise.resolve(); // one change at a time: each writes the whole table

  /** Whether all of them could be asked for. */
  async function learn(): Promise<boolean> {
    let isWhole = true;
    const { items = [] } = await cri.call("RuntimeService/ListPodSandbox", { filter: { state: { state: "SANDBOX_READY" } } });
    for (const { id = "", metadata, annotations = {} } of items) {
      const limit = limitOf(annotations);
      if (!limit) continue;
      const ips = await ipsOf(id).catch((error: unknown) => {
        if (isCriNotFound(error)) return; // it has gone since
        isWhole = false;
        log.warn("the bandwidth of a pod cannot be limited, next try with the next pod", { pod: nameOf(metadata), error });
      });
      if (ips) pods.set(id, { name: nameOf(metadata), ips, limit });
    }
    return isWhole;
  }

  async function ipsOf(id: string): Promise<string[]> {
    const { status } = await cri.call("RuntimeService/PodSandboxStatus", { pod_sandbox_id: id });
    const { ip = "", additional_ips = [] } = status?.network ?? {};
    return [ip, ...additional_ips.map((one) => one.ip ?? "")].filter((one) => one !== "");
  }

  async function change(work: () => Promise<boolean>): Promise<void> {
    const mine = turn.then(async () => {
      known ||= await learn();
      if (await work()) await nft.apply(bandwidthText([...pods.values()]), {});
    }).catch((error: unknown) => log.warn("the bandwidth of pods cannot be limited", { error }));
    turn = mine;
    await mine;
  }

  async function begin(id: string, { config }: RunPodSandboxRequest, limit: BandwidthLimit): Promise<void> {
    await change(async () => {
      const ips = await ipsOf(id);
      if (ips.length > 0) pods.set(id, { name: nameOf(config?.metadata), ips, limit });
      return ips.length > 0;
    });
  }

  const call: Cri["call"] = async (method, request, options) => {
    if (method === "RuntimeService/StopPodSandbox" && !known) await change(async () => false); // while it is still there
    const response = await cri.call(method, request, options);
    if (method === "RuntimeService/RunPodSandbox") {
      const limit = limitOf((request as RunPodSandboxRequest).config?.annotations ?? {});
      if (limit) await begin((response as { readonly pod_sandbox_id?: string }).pod_sandbox_id ?? "", request as RunPodSandboxRequest, limit);
    } else if (method === "RuntimeService/StopPodSandbox") {
      const { pod_sandbox_id: id = "" } = request as { readonly pod_sandbox_id?: string };
      if (pods.has(id)) await change(async () => pods.delete(id));
    }
    return response;
  };
  return { cri: { ...cri, call }, renew: () => change(async () => pods.size > 0) };
}

function nameOf(metadata: PodSandboxMetadata | undefined): string { return `${metadata?.namespace ?? ""}/${metadata?.name ?? ""}`.slice(0, 120); }
