/** What the runtime is told about a container. Source: kubernetes v1.36 pkg/kubelet/kuberuntime/kuberuntime_container.go (generateContainerConfig) */
import { join } from "node:path";
import type { Container, EphemeralContainer, Pod } from "../../../core/api/gen/core.v1.ts";
import type { CDIDevice, ContainerConfig, Device, Mount, Signal } from "../../cri/gen/runtime.v1.ts";
import { bytesOfText, joinedText } from "./byte-text.ts";
import { expandAll } from "./expansion.ts";
import { containerAnnotations, containerLabels } from "./labels.ts";

export interface ContainerConfigFacts {
  readonly pod: Pod;
  readonly container: Container | EphemeralContainer;
  readonly restartCount: number;
  /** The id of the image, so that what runs is what was looked at. */
  readonly imageId: string;
  readonly environment: ReadonlyMap<string, string>;
  readonly mounts: readonly Mount[];
  readonly devices: readonly Device[];
  /** Of device plugins: for the runtime. */
  readonly annotations?: Readonly<Record<string, string>> | undefined;
  readonly cdiDevices?: readonly CDIDevice[] | undefined;
  /** One of the two: what only the operating system of this machine knows. */
  readonly platform: Pick<ContainerConfig, "linux"> | Pick<ContainerConfig, "windows">;
}

export function containerConfig({ pod, container, restartCount, imageId, environment, mounts, devices, annotations = {}, cdiDevices = [], platform }: ContainerConfigFacts): ContainerConfig {
  const lookup = (name: string): string | undefined => environment.get(name);
  const stopSignal = container.lifecycle?.stopSignal;
  return {
    metadata: { name: container.name, attempt: restartCount }, image: { image: imageId, user_specified_image: container.image ?? "" },
    command: expandAll(container.command, lookup).map(joinedText), args: expandAll(container.args, lookup).map(joinedText), working_dir: container.workingDir,
    labels: containerLabels(pod, container), annotations: { ...annotations, ...containerAnnotations(pod, container, restartCount) }, log_path: containerLogPath(container.name, restartCount),
    stdin: container.stdin, stdin_once: container.stdinOnce, tty: container.tty, mounts: [...mounts], devices: [...devices], ...(cdiDevices.length > 0 ? { CDI_devices: [...cdiDevices] } : {}),
    envs: [...environment].map(([key, value]) => ({ key, value: bytesOfText(value) })), ...(stopSignal ? { stop_signal: stopSignal as Signal } : {}),
    ...platform,
  };
}

/** What a program is started with is text, only its variables need not be. Throws an Error with the words of who sends it upstream. */
export function sendable(config: ContainerConfig): ContainerConfig {
  if (![...(config.command ?? []), ...(config.args ?? [])].every((text) => text.isWellFormed())) throw new Error("grpc: error while marshaling: string field contains invalid UTF-8");
  return config;
}

/** Below the pod's log directory. */
function containerLogPath(name: string, restartCount: number): string {
  return join(name, `${restartCount}.log`);
}
