/** What device plugins and drivers of claims add to a container. Source: kubernetes v1.36 pkg/kubelet/cm/container_manager_linux.go (GetResources) */
import type { Pod } from "../../core/api/gen/core.v1.ts";
import type { CDIDevice, Device, Mount } from "../cri/gen/runtime.v1.ts";
import type { KubeletContext } from "./context.ts";

export interface AddedDevices {
  readonly devices: readonly Device[];
  readonly mounts: readonly Mount[];
  readonly CDI_devices: readonly CDIDevice[];
  /** The container's, with what is added: its own word on a variable counts, as upstream, where a runtime takes the last one. */
  readonly environment: ReadonlyMap<string, string>;
  readonly annotations: Readonly<Record<string, string>>;
}

export async function addedDevices({ devices, claims }: Pick<KubeletContext, "devices" | "claims">, pod: Pod, { container, environment }: { readonly container: string; readonly environment: ReadonlyMap<string, string> }, signal: AbortSignal): Promise<AddedDevices> {
  const answers = (await devices?.startOptions(pod.metadata.uid, container, signal)) ?? [];
  const ofClaims = (claims?.devicesOf(pod, container) ?? []).flatMap((claim) => claim.devices.flatMap(({ cdiIds }) => cdiIds));
  return {
    devices: unique(answers.flatMap((answer) => (answer.devices ?? []).map(({ container_path, host_path, permissions }) => ({ container_path, host_path, permissions }))), ({ container_path = "" }) => container_path),
    mounts: unique(answers.flatMap((answer) => (answer.mounts ?? []).map(({ container_path, host_path, read_only }) => ({ container_path, host_path, readonly: read_only }))), ({ container_path = "" }) => container_path),
    CDI_devices: unique([...ofClaims.map((name) => ({ name })), ...answers.flatMap((answer) => (answer.cdi_devices ?? []).map(({ name }) => ({ name })))], ({ name = "" }) => name),
    environment: new Map([...answers.toReversed().flatMap(({ envs = {} }) => Object.entries(envs)), ...environment]),
    annotations: Object.assign({}, ...answers.toReversed().map(({ annotations = {} }) => annotations)) as Record<string, string>,
  };
}

/** The first one of each key stays, where it is. */
function unique<T>(items: readonly T[], key: (item: T) => string): T[] {
  const seen = new Set<string>();
  return items.filter((item) => !seen.has(key(item)) && seen.add(key(item)));
}
