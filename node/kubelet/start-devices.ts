/** What device plugins and drivers of claims add to a container. Source: kubernetes v1.36 pkg/kubelet/cm/container_manager_linux.go (GetResources) */
import type { Pod } from "../../core/api/gen/core.v1.ts";
import type { CDIDevice, Device, Mount } from "../cri/gen/runtime.v1.ts";
import type { KubeletContext } from "./context.ts";

export interface AddedDevices {
  readonly devices: readonly Device[];
  readonly mounts: readonly Mount[];
  readonly CDI_devices: readonly CDIDevice[];
  readonly environment: ReadonlyMap<string, string>;
  readonly annotations: Readonly<Record<string, string>>;
}

export async function addedDevices({ devices, claims }: Pick<KubeletContext, "devices" | "claims">, pod: Pod, container: string, signal: AbortSignal): Promise<AddedDevices> {
  const answers = (await devices?.startOptions(pod.metadata.uid, container, signal)) ?? [];
  const ofClaims = (claims?.devicesOf(pod, container) ?? []).flatMap((claim) => claim.devices.flatMap(({ cdiIds }) => cdiIds));
  return {
    devices: unique(answers.flatMap((answer) => (answer.devices ?? []).map(({ container_path, host_path, permissions }) => ({ container_path, host_path, permissions }))), ({ container_path = "" }) => container_path),
    mounts: unique(answers.flatMap((answer) => (answer.mounts ?? []).map(({ container_path, host_path, read_only }) => ({ container_path, host_path, readonly: read_only }))), ({ container_path = "" }) => container_path),
    CDI_devices: unique([...answers.flatMap((answer) => (answer.cdi_devices ?? []).map(({ name }) => ({ name }))), ...ofClaims.map((name) => ({ name }))], ({ name = "" }) => name),
    environment: new Map(answers.flatMap(({ envs = {} }) => Object.entries(envs))),
    annotations: Object.assign({}, ...answers.map(({ annotations = {} }) => annotations)) as Record<string, string>,
  };
}

function unique<T>(items: readonly T[], key: (item: T) => string): T[] {
  return [...new Map(items.toReversed().map((item) => [key(item), item])).values()].toReversed(); // the first one stays
}
