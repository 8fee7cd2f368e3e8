/**
 * Starts one container: its image, its configuration, the container, its postStart hook. Every failure has a reason the user sees as the
 * container's waiting state, and an event.
 *
 * Source: kubernetes v1.36 pkg/kubelet/kuberuntime/kuberuntime_container.go (startContainer)
 */
import { existsSync, readFileSync } from "node:fs";
import { mkdir, readdir, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import type { Pod } from "../../core/api/gen/core.v1.ts";
import { ifThere } from "../../core/lifecycle/if-there.ts";
import { CriError } from "../cri/client.ts";
import type { ContainerConfig, Image, PodSandboxConfig } from "../cri/gen/runtime.v1.ts";
import { containerConfig, sendable } from "./containers/container-config.ts";
import { readEnvFile } from "./containers/env-file.ts";
import { environmentOf } from "./containers/environment.ts";
import { containerDevices, containerMounts, HOSTS_PATH, mountsImageSubPaths } from "./containers/mounts.ts";
import { containerSecurityContext, namespacesOf, verifyNonRoot } from "./containers/security-context.ts";
import { serviceEnvironment } from "./containers/service-env.ts";
import { hasHostProcess, verifyNotAdministrator, windowsContainer } from "./containers/windows-container.ts";
import type { KubeletContext } from "./context.ts";
import { runHook } from "./hooks.ts";
import { pullCredentials } from "./images/pull-secrets.ts";
import { ImageError, type ImageRequest } from "./images/puller.ts";
import { killContainer } from "./kill.ts";
import { containerReference, isHostNetwork, isStaticPod, type NamedContainer } from "./pod-spec.ts";
import { containerResources } from "./resources/linux-resources.ts";
import { containerNamed, inOrderOf, type RuntimePod } from "./runtime-pod.ts";
import { managedHosts, nodeHosts, podHostname } from "./sandbox/hostname.ts";
import { mappedIds, userNamespaceOptions } from "./sandbox/sandbox-config.ts";
import { addedDevices } from "./start-devices.ts";
import { podDirectory } from "./volumes/pod-directories.ts";
import type { ReadyVolume } from "./volumes/ready-volume.ts";
import { subPathsAnswer } from "./volumes/remote-volumes.ts";

export type StartFailure = "CreateContainerConfigError" | "CreateContainerError" | "RunContainerError" | "PostStartHookError" | ImageError["reason"];

export class StartError extends Error {
  readonly reason: StartFailure;
  constructor(reason: StartFailure, message: string, cause: unknown) {
    super(message, { cause });
    this.name = "StartError";
    this.reason = reason;
  }
}

export interface ContainerStart {
  readonly pod: Pod;
  readonly spec: NamedContainer;
  readonly runtime: RuntimePod;
  readonly sandboxId: string;
  readonly sandbox: PodSandboxConfig;
  readonly podIps: readonly string[];
  readonly volumes: ReadonlyMap<string, ReadyVolume>;
}

/** Throws StartError; anything else is the caller's abort. */
export async function startContainer(context: KubeletContext, start: ContainerStart, signal: AbortSignal): Promise<void> {
  const { pod, spec, runtime, sandboxId, sandbox } = start;
  const { cri, events, clock, settings, log, metrics, starts } = context;
  const about = containerReference(pod, spec);

  /** Runs a step; its failure is the container's. Events have its name for its id, which each new one has another of. */
  async function step<T>(reason: StartFailure, work: () => Promise<T>, id = ""): Promise<T> {
    try {
      return await work();
    } catch (cause) {
      signal.throwIfAborted();
      const failed = cause instanceof ImageError ? cause.reason : reason;
      const message = cause instanceof CriError ? cause.detail : (cause as Error).message;
      const told = cause instanceof ImageError ? cause.reason : id === "" ? message : message.replaceAll(id, spec.container.name);
      events.event(about, "Warning", "Failed", `Error: ${told}`);
      throw new StartError(failed, message, cause);
    }
  }

  const image = await step("ErrImagePull", () => ensureImage(context, start, { about, image: spec.container.image ?? "", policy: spec.container.imagePullPolicy }, signal));
  const { config } = await step("CreateContainerConfigError", () => configure(context, start, image, signal));
  const id = await starts.run(async () => {
    const { container_id = "" } = await step("CreateContainerError", async () => await cri.call("RuntimeService/CreateContainer", { pod_sandbox_id: sandboxId, config: sendable(config), sandbox_config: sandbox }, { signal }));
    events.event(about, "Normal", "Created", "Container created");
    context.placement.starts(pod, spec.container.name);
    await step("RunContainerError", () => cri.call("RuntimeService/StartContainer", { container_id }, {}), container_id); // not given up half-way: the container would have failed, who is deleted has not
    events.event(about, "Normal", "Started", "Container started");
    return container_id;
  }, { signal, begun: true });
  await linkLog(context, pod, spec, id, join(sandbox.log_directory ?? "", config.log_path ?? ""));
  signal.throwIfAborted();

  const handler = spec.container.lifecycle?.postStart;
  if (!handler) return;
  try {
    await runHook({ cri, clock, events, metrics, version: majorMinor(settings.version) }, { pod, container: spec.container, containerId: id, podIp: start.podIps[0] ?? "", handler, timeoutMs: Number.MAX_SAFE_INTEGER }, signal);
  } catch (cause) {
    signal.throwIfAborted();
    events.event(about, "Warning", "FailedPostStartHook", "PostStartHook failed");
    log.warn("postStart hook failed", { pod: pod.metadata.name, namespace: pod.metadata.namespace, container: spec.container.name, error: cause });
    const now = { ...(containerNamed(runtime, spec.container.name) ?? nothingYet(spec, sandboxId)), id, state: "running" as const };
    await killContainer({ cri, clock, events, log, metrics, version: majorMinor(settings.version) }, { pod, runtime, container: now, spec, message: "FailedPostStartHook" }, signal).catch((error: unknown) => {
      signal.throwIfAborted();
      log.warn("container not stopped after its postStart hook failed", { pod: pod.metadata.name, namespace: pod.metadata.namespace, container: spec.container.name, error });
    });
    throw new StartError("PostStartHookError", (cause as Error).message, cause);
  }
}

function nothingYet({ container }: NamedContainer, sandboxId: string) {
  return {
    id: "", name: container.name, sandboxId, state: "running" as const, createdAtMs: 0, startedAtMs: 0, finishedAtMs: 0, exitCode: 0, reason: "", message: "", image: "", imageRef: "", restartCount: 0,
    spec: { hash: "", restartCount: 0, terminationMessagePath: "", terminationMessagePolicy: "", gracePeriodSeconds: undefined, preStop: undefined }, logPath: "", mounts: [], user: undefined, stopSignal: undefined,
  };
}

/** "1.36" of "v1.36.0", as user agents have it. */
export function majorMinor(version: string): string {
  return /^v?(\d+\.\d+)/.exec(version)?.[1] ?? version;
}

/** `about`: whose image it is, for events. */
export async function ensureImage(context: KubeletContext, { pod, sandbox }: Pick<ContainerStart, "pod" | "sandbox">, { about, image, policy }: Pick<ImageRequest, "about" | "image" | "policy">, signal: AbortSignal): Promise<Image> {
  const runtimeHandler = await context.handlers.handlerOf(pod.spec.runtimeClassName, signal);
  return await context.images.ensure({
    pod, image, policy, about, sandbox, runtimeHandler, credentials: (name) => pullCredentials(name, pod, context, signal),
  }, signal);
}

async function configure(context: KubeletContext, start: ContainerStart, image: Image, signal: AbortSignal): Promise<{ config: ContainerConfig }> {
  const { settings, objects, machine, mounts, random, services, userNamespaces } = context;
  const { pod, spec: { container, kind }, runtime, podIps, volumes, sandbox } = start;
  const before = containerNamed(runtime, container.name);
  const logDirectory = join(sandbox.log_directory ?? "", container.name);
  const restartCount = before ? before.restartCount + 1 : await restartsInLogs(logDirectory);

  if (!services.synced && !isStaticPod(pod)) throw new Error("services have not yet been read at least once, cannot construct envvars");
  const environment = await environmentOf({
    pod, container, podIps: isHostNetwork(pod) ? settings.nodeIps.slice(0, 2) : inOrderOf(settings.nodeIps, podIps), hostIps: settings.nodeIps, objects,
    allocatable: context.allocatable(), services: serviceEnvironment(services.list(), pod.metadata.namespace ?? "", pod.spec.enableServiceLinks ?? true),
    readFileKey: async (volume, path, key) => {
      const hostPath = volumes.get(volume)?.hostPath;
      if (hostPath === undefined) throw new Error(`cannot find the volume "${volume}" referenced by FileKeyRef`);
      return await readEnvFile(hostPath, path, key);
    },
  });
  const imageUser = { uid: image.username && !image.uid ? undefined : image.uid?.value ?? 0, username: image.uid ? "" : image.username ?? "" };
  if (machine.os === "windows") verifyNotAdministrator(pod, container, imageUser.username);
  else verifyNonRoot(pod, container, imageUser);

  const target = kind === "ephemeral" && "targetContainerName" in container ? container.targetContainerName : undefined;
  const targetId = target ? containerNamed(runtime, target)?.id : undefined;
  if (target && !targetId) throw new Error(`unable to find target container ${target}`);
  const range = await userNamespaces.rangeOf(pod);
  const namespaces = { ...namespacesOf(pod, targetId), ...(range ? { userns_options: userNamespaceOptions(range) } : {}) };
  const mapped = range ? mappedIds(range) : undefined;
  const platform = machine.os === "windows" ? { windows: windowsContainer(pod, container, { imageUser: imageUser.username, cpus: machine.cpus }) } : {
    linux: {
      resources: { ...containerResources(pod, container, machine), ...context.placement.pinning(pod.metadata.uid, container.name) },
      security_context: containerSecurityContext({
        pod, container, imageUser, namespaces, volumeGroups: [...volumes.values()].flatMap(({ group }) => group ?? []), seccompDir: settings.seccompDir,
        seccompDefault: settings.seccompDefault, maskedPaths: machine.throttlePaths ?? [],
      }),
    },
  };

  await mkdir(logDirectory, { recursive: true, mode: 0o755 });
  await subPathsAnswer(context.exec, container, volumes, { signal });
  const added = await addedDevices(context, pod, { container: container.name, environment }, signal);
  const config = containerConfig({
    pod, container, restartCount, imageId: image.id ?? "", environment: added.environment, platform, devices: [...added.devices, ...containerDevices(container, volumes)],
    annotations: added.annotations, cdiDevices: added.CDI_devices,
    mounts: [
      ...added.mounts,
      ...(await containerMounts({
        os: machine.os, pod, container, volumes, environment: added.environment, podDir: podDirectory(settings.dataDir, pod.metadata.uid),
        mounted: new Set(runtime.containers.flatMap((one) => one.mounts.map(({ host_path = "" }) => host_path))), hosts: hostsFile(context, pod, podIps),
        recursiveReadOnly: await mountsRecursively(context, pod, container, signal), imageSubPaths: mountsImageSubPaths(context.runtimeName()), mounts, random,
      })),
    ].map((mount) => (mapped ? { ...mount, uidMappings: mapped, gidMappings: mapped } : mount)),
  });
  return { config };
}

/** Whether what runs the container can make mounts read-only all the way down. Nobody is asked where nobody wants that. */
async function mountsRecursively({ handlers, handlerFeatures }: Pick<KubeletContext, "handlers" | "handlerFeatures">, pod: Pod, { volumeMounts = [] }: NamedContainer["container"], signal: AbortSignal): Promise<boolean> {
  if (!volumeMounts.some(({ recursiveReadOnly = "Disabled" }) => recursiveReadOnly !== "Disabled")) return false;
  return handlerFeatures(await handlers.handlerOf(pod.spec.runtimeClassName, signal))?.recursive_read_only_mounts ?? false;
}

function hostsFile({ settings, machine: { os } }: KubeletContext, pod: Pod, podIps: readonly string[]): string | undefined {
  if ((podIps.length === 0 && !isHostNetwork(pod)) || (os === "windows" && hasHostProcess(pod))) return undefined;
  if (isHostNetwork(pod)) return existsSync(HOSTS_PATH[os]) ? nodeHosts(readFileSync(HOSTS_PATH[os], "utf8"), pod.spec.hostAliases) : undefined;
  return managedHosts(podHostname(pod, settings.clusterDomain), podIps, pod.spec.hostAliases);
}

/** Where no record of earlier containers is left, their logs still tell how many there were. */
async function restartsInLogs(directory: string): Promise<number> {
  const names = await ifThere(readdir(directory));
  return names ? restartCountOf(names) : 0;
}

/** What the next container's count is, by the names of its predecessors' logs, whoever has rotated those. Source: calcRestartCountByLogDir */
export function restartCountOf(logs: readonly string[]): number {
  return logs.map(countOfLog).filter(Number.isSafeInteger).reduce((most, count) => Math.max(most, count), -1) + 1;
}

/** Of the container whose log, or a part of it, has that name; -1: none. */
export function countOfLog(name: string): number { return Number(/^(\d+)\.log(\..*)?$/.exec(name)?.[1] ?? -1); }

/** /var/log/containers/<pod>_<namespace>_<container>-<id>.log, for agents that look there. */
async function linkLog({ settings, log }: KubeletContext, pod: Pod, { container }: NamedContainer, id: string, target: string): Promise<void> {
  if (settings.containerLogsDir === "") return;
  const link = join(settings.containerLogsDir, logLinkName(pod, container.name, id));
  try {
    await mkdir(settings.containerLogsDir, { recursive: true, mode: 0o755 });
    await rm(link, { force: true });
    await symlink(target, link);
  } catch (error) {
    log.warn("link to a container's log not made", { link, error });
  }
}

const FILE_NAME_BYTES_MAX = 255;

export function logLinkName({ metadata: { name, namespace = "" } }: { readonly metadata: { readonly name: string; readonly namespace?: string | undefined } }, container: string, id: string): string {
  const suffix = ".log";
  return `${name}_${namespace}_${container}-${id}`.slice(0, FILE_NAME_BYTES_MAX - suffix.length) + suffix;
}
