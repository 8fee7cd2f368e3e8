/**
 * What a container finds mounted: its volumes, /etc/hosts, and the file for its last words.
 *
 * Source: kubernetes v1.36 pkg/kubelet/kubelet_pods.go (makeMounts), pkg/kubelet/kuberuntime/kuberuntime_container.go (makeMounts)
 */
import { chmod, mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Container, EphemeralContainer, Pod, VolumeMount } from "../../../core/api/gen/core.v1.ts";
import type { Random } from "../../../core/lifecycle/random.ts";
import type { Device, Mount, MountPropagation } from "../../cri/gen/runtime.v1.ts";
import type { OperatingSystem } from "../../os/machine.ts";
import type { Mounts } from "../../os/mount.ts";
import { HOSTS_FILE, messagesDirectory, subPathsDirectory } from "../volumes/pod-directories.ts";
import type { ReadyVolume } from "../volumes/ready-volume.ts";
import { bindSubPath, resolveSubPath, SubPathNotMade } from "../volumes/subpath.ts";
import { joinedText } from "./byte-text.ts";
import { expandStrictly } from "./expansion.ts";
import { WINDOWS_HOSTS_PATH, windowsPath } from "./windows-container.ts";

const PROPAGATIONS: Readonly<Record<string, MountPropagation>> = { None: "PROPAGATION_PRIVATE", HostToContainer: "PROPAGATION_HOST_TO_CONTAINER", Bidirectional: "PROPAGATION_BIDIRECTIONAL" };
export const HOSTS_PATH: Readonly<Record<OperatingSystem, string>> = { linux: "/etc/hosts", windows: WINDOWS_HOSTS_PATH };

export interface MountFacts {
  readonly os: OperatingSystem;
  readonly pod: Pod;
  readonly container: Container | EphemeralContainer;
  readonly volumes: ReadonlyMap<string, ReadyVolume>;
  readonly environment: ReadonlyMap<string, string>;
  readonly podDir: string;
  /** Paths of the host that containers of the pod have mounted, dead ones too. */
  readonly mounted: ReadonlySet<string>;
  /** Content of /etc/hosts; undefined: the pod has no address yet, so the image's own stays. */
  readonly hosts: string | undefined;
  /** The runtime can make mounts read-only all the way down. */
  readonly recursiveReadOnly: boolean;
  /** The runtime can mount a directory of an image; one that cannot would mount all of it, and say nothing. */
  readonly imageSubPaths: boolean;
  readonly mounts: Mounts;
  readonly random: Random;
}

/** Binds subpaths and writes files as it goes. Throws an Error for the user. */
export async function containerMounts(facts: MountFacts): Promise<Mount[]> {
  const { os, container, podDir, hosts, random } = facts;
  const result: Mount[] = [];
  for (const [index, mount] of (container.volumeMounts ?? []).entries()) result.push(await volumeMount(facts, mount, index));
  if (hosts !== undefined && !container.volumeMounts?.some(({ mountPath }) => mountPath === HOSTS_PATH[os])) {
    const path = join(podDir, HOSTS_FILE);
    await writeFile(path, hosts);
    await chmod(path, 0o644);
    result.push({ container_path: HOSTS_PATH[os], host_path: path });
  }
  if (container.terminationMessagePath) {
    const directory = join(messagesDirectory(podDir), container.name);
    await mkdir(directory, { recursive: true, mode: 0o750 });
    await removeUnmounted(directory, facts.mounted);
    const path = join(directory, Buffer.from(random.bytes(4)).toString("hex"));
    await writeFile(path, "");
    await chmod(path, 0o666); // the container may run as anyone
    result.push({ container_path: pathIn(os, container.terminationMessagePath), host_path: path });
  }
  return result;
}

/** Each container that is started has a file of its own here: of those that the runtime has forgotten they would pile up, a hundred thousand in a year where one ends again and again. */
async function removeUnmounted(directory: string, mounted: ReadonlySet<string>): Promise<void> {
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (entry.isFile() && !mounted.has(path)) await rm(path, { force: true });
  }
}

async function volumeMount(facts: MountFacts, mount: VolumeMount, index: number): Promise<Mount> {
  const { os, container, volumes, environment, podDir, mounts } = facts;
  const volume = volumes.get(mount.name);
  if (!volume) throw new Error(`cannot find volume "${mount.name}" to mount into container "${container.name}"`);
  const subPath = mount.subPathExpr ? joinedText(expandStrictly(mount.subPathExpr, (name) => environment.get(name))) : mount.subPath ?? "";
  if (!subPath.isWellFormed()) throw new Error(`error SubPath \`${subPath.toWellFormed()}\` must be valid UTF-8`); // or several of them would be one directory
  if (subPath.startsWith("/")) throw new Error(`error SubPath \`${subPath}\` must not be an absolute path`);
  if (subPath.split("/").includes("..")) throw new Error(`unable to provision SubPath \`${subPath}\`: must not contain '..'`);

  const readOnly = (mount.readOnly ?? false) || volume.readOnly;
  const common: Mount = {
    container_path: pathIn(os, mount.mountPath), readonly: readOnly, recursive_read_only: wantsRecursive(facts, mount),
    propagation: os === "windows" ? "PROPAGATION_PRIVATE" : PROPAGATIONS[mount.mountPropagation ?? "None"] ?? "PROPAGATION_PRIVATE",
  };
  if (volume.image && subPath !== "" && !facts.imageSubPaths) throw new Error(`subPath of image volume "${mount.name}" is not supported by the runtime: containerd can since 2.2`);
  if (volume.image) return { ...common, image: { image: volume.image.reference }, ...(subPath === "" ? {} : { image_sub_path: subPath }) };
  const hostPath = volume.hostPath ?? "";
  if (subPath === "") return { ...common, host_path: hostPath };
  const target = join(subPathsDirectory(podDir), mount.name, container.name, String(index));
  try {
    return { ...common, host_path: os === "windows" ? await resolveSubPath({ volumePath: hostPath, subPath }) : await bindSubPath({ volumePath: hostPath, subPath, target }, mounts) };
  } catch (cause) {
    throw new Error(`failed to ${cause instanceof SubPathNotMade ? "create subPath directory" : "prepare subPath"} for volumeMount "${mount.name}" of container "${container.name}"`, { cause });
  }
}

/** Whether a runtime of that name and version mounts a directory of an image: https://github.com/containerd/containerd/pull/11578 */
export function mountsImageSubPaths({ name = "", version = "" }: { readonly name?: string | undefined; readonly version?: string | undefined }): boolean {
  const [, major = "0", minor = "0"] = /^v?(\d+)\.(\d+)/.exec(version) ?? [];
  return name !== "containerd" || Number(major) > 2 || (Number(major) === 2 && Number(minor) >= 2);
}

function wantsRecursive({ recursiveReadOnly }: MountFacts, { name, readOnly, recursiveReadOnly: mode = "Disabled" }: VolumeMount): boolean {
  if (mode === "Disabled" || !readOnly) return false;
  if (mode === "Enabled" && !recursiveReadOnly) throw new Error(`failed to resolve recursive read-only mode: volume "${name}" requested recursive read-only mode, but it is not supported by the runtime`);
  return recursiveReadOnly;
}

/** Volumes of mode Block, as devices. */
export function containerDevices({ volumeDevices }: Container | EphemeralContainer, volumes: ReadonlyMap<string, ReadyVolume>): Device[] {
  return (volumeDevices ?? []).flatMap(({ name, devicePath }) => {
    const volume = volumes.get(name);
    return volume?.block ? [{ host_path: volume.hostPath ?? "", container_path: devicePath, permissions: volume.readOnly ? "r" : "mrw" }] : [];
  });
}

/** As the container sees it. */
function pathIn(os: OperatingSystem, path: string): string {
  if (os === "windows") return windowsPath(path);
  return path.startsWith("/") ? path : `/${path}`;
}
