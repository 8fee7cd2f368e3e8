/** How each kind of volume comes to be. Called again at every sync: what is there already stays as it is. */
import { stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { EmptyDirVolumeSource, HostPathVolumeSource, NFSVolumeSource, PersistentVolume, PersistentVolumeClaim, Pod, ResourceList, Volume } from "../../../core/api/gen/core.v1.ts";
import { goQuote } from "../../../core/api/meta/go-quote.ts";
import { compareQuantities, parseQuantity } from "../../../core/api/meta/quantity.ts";
import { type CsiVolume, inlineVolume, persistentVolume } from "../csi/csi-volume.ts";
import type { Claimed } from "../csi/csi-volumes.ts";
import type { Mounts } from "../../os/mount.ts";
import { allContainers, podReference } from "../pod-spec.ts";
import { podCgroupLimits } from "../resources/pod-cgroups.ts";
import { podLimits } from "../resources/pod-resources.ts";
import { type Payload, writePayload } from "./atomic-writer.ts";
import { FilesystemMismatch } from "./format-and-mount.ts";
import { checkHostPath } from "./host-path.ts";
import type { IscsiVolumes } from "./iscsi/iscsi-volumes.ts";
import { setUpIscsi } from "./iscsi/set-up-iscsi.ts";
import { type LocalDevices, localKind } from "./local-devices.ts";
import { MountFailure, mountErrorText, UnusableVolume, VolumePending } from "./mount-failure.ts";
import { makeMountPoints } from "./nested-mounts.ts";
import { mountNfs } from "./nfs.ts";
import { configMapPayload, downwardPayload, projectedPayload, secretPayload } from "./payload.ts";
import { type BoundVolume, boundVolume, mountOptionsOf } from "./persistent-volume.ts";
import { pluginDirectory, podDirectories, podDirectory, volumeDirectory } from "./pod-directories.ts";
import type { ReadyVolume } from "./ready-volume.ts";
import { doesAnswer, isElsewhere } from "./remote-volumes.ts";
import { servedBundles } from "./trust-anchors.ts";
import type { VolumeDeps } from "./volume-deps.ts";
import { giveToGroup, isThere, makeDirectory } from "./volume-directory.ts";

const MODE_DEFAULT = 0o644;
const EMPTY_DIR = "kubernetes.io/empty-dir";
const GROUP_ANNOTATION = "pv.beta.kubernetes.io/gid"; // kubernetes v1.36 pkg/volume/util/util.go VolumeGidAnnotationKey

export interface SetUpCall {
  readonly signal: AbortSignal;
  /** Is told what a claim stands for. Throws MountFailure. */
  readonly onBound: (volume: Readonly<PersistentVolume>) => void;
  /** Where others of the pod's volumes are mounted within this one, by its name: nestedMountPoints(pod). */
  readonly nested: (volume: string) => string[];
}

export interface SetUpDeps extends VolumeDeps {
  readonly devices: LocalDevices;
  readonly iscsi: IscsiVolumes;
  readonly tmpfs: MountTmpfs;
}

type MountTmpfs = (target: string, options: readonly string[]) => void;

/** Kept out of swap where the kernel can (6.4 and newer); that it cannot is told once. Source: kubernetes v1.36 pkg/kubelet/util/swap/swap_util.go */
export function tmpfsMounter({ mounts, log }: Pick<VolumeDeps, "mounts" | "log">): MountTmpfs {
  let knowsNoswap = true;
  return (target, options) => {
    const mount = (...more: string[]): void => mounts.mount({ source: "tmpfs", target, fsType: "tmpfs", options: [...options, ...more] });
    if (!knowsNoswap) return mount();
    try {
      mount("noswap");
    } catch (error) {
      if ((error as { code?: string }).code !== "EINVAL") throw error;
      mount();
      knowsNoswap = false;
      log.warn("this kernel does not know tmpfs' option noswap: Secrets and other volumes in memory may be swapped to disk");
    }
  };
}

/** Throws an Error for the user. */
export async function setUpVolume(deps: SetUpDeps, pod: Pod, volume: Volume, call: SetUpCall): Promise<ReadyVolume> {
  const { signal } = call;
  const directory = (plugin: string, name = volume.name): string => volumeDirectory(podDirectory(deps.dataDir, pod.metadata.uid), plugin, name);
  const facts = {
    pod, objects: deps.objects, hostIps: deps.hostIps, allocatable: deps.allocatable(), token: deps.tokens.token,
    trustBundles: () => servedBundles(deps.client, signal),
    certificate: (index: number) => deps.certificates.certificate(pod, volume.name, index),
  };
  const { emptyDir, hostPath, configMap, secret, projected, downwardAPI, persistentVolumeClaim, ephemeral, image, nfs, iscsi, csi } = volume;

  if (emptyDir) return await setUpEmptyDir(deps, pod, emptyDir, { directory: directory(EMPTY_DIR), notes: pluginDirectory(podDirectory(deps.dataDir, pod.metadata.uid), EMPTY_DIR, volume.name) });
  if (hostPath) return await setUpHostPath(deps, hostPath, { readOnly: false, signal });
  if (configMap) {
    const mode = configMap.defaultMode ?? MODE_DEFAULT;
    return await setUpFiles(deps, { pod, nested: call.nested(volume.name) }, directory("kubernetes.io/configmap"), await configMapPayload(facts, configMap.name ?? "", { items: configMap.items, optional: configMap.optional, mode }), { memory: false });
  }
  if (secret) {
    const mode = secret.defaultMode ?? MODE_DEFAULT;
    return await setUpFiles(deps, { pod, nested: call.nested(volume.name) }, directory("kubernetes.io/secret"), await secretPayload(facts, secret.secretName ?? "", { items: secret.items, optional: secret.optional, mode }), { memory: true });
  }
  if (projected) return await setUpFiles(deps, { pod, nested: call.nested(volume.name) }, directory("kubernetes.io/projected"), await projectedPayload(facts, projected), { memory: true });
  if (downwardAPI) return await setUpFiles(deps, { pod, nested: call.nested(volume.name) }, directory("kubernetes.io/downward-api"), downwardPayload(facts, downwardAPI.items ?? [], downwardAPI.defaultMode ?? MODE_DEFAULT), { memory: true });
  if (image) return { hostPath: undefined, readOnly: true, managed: false, image: { reference: image.reference ?? "", policy: image.pullPolicy } };
  if (persistentVolumeClaim || ephemeral) return await setUpPersistent(deps, pod, volume, call);
  if (nfs) return await setUpNfs(deps, nfs, directory("kubernetes.io/nfs"), { readOnly: nfs.readOnly ?? false, options: [] }, signal);
  if (iscsi) return await setUpIscsi(deps, pod, iscsi, { name: volume.name, options: [], readOnly: iscsi.readOnly ?? false, block: false }, signal);
  if (csi) return await setUpCsi(deps, pod, inlineVolume(pod, volume, csi), undefined, signal);
  if (volume.gitRepo) throw new Error("git-repo volume plugin has been disabled; if necessary, it may be re-enabled by enabling the feature-gate `GitRepoVolumeDriver`");
  throw unknownKind(volume.name, volume.name);
}

/** `source`: the volume itself, or the PersistentVolume behind it. */
function unknownKind(volume: string, source: string): UnusableVolume {
  return new UnusableVolume(volume, `failed to get Plugin from volumeSpec for volume ${goQuote(source)} err=no volume plugin matched`);
}

async function setUpCsi({ csi }: VolumeDeps, pod: Pod, volume: CsiVolume, claimed: Claimed | undefined, signal: AbortSignal): Promise<ReadyVolume> {
  if (!csi) throw new Error("this node has no CSI drivers");
  const hostPath = await csi.setUp(pod, volume, claimed, signal);
  return { hostPath, readOnly: volume.readOnly, managed: false, ...(volume.block ? { block: true } : { isRemote: true }) }; // who knows
}

/** What somebody has mounted there of another machine is asked first whether it answers: who waits for it cannot be ended. */
async function setUpHostPath({ exec, mounts }: SetUpDeps, source: HostPathVolumeSource, { readOnly, signal }: { readonly readOnly: boolean; readonly signal: AbortSignal }): Promise<ReadyVolume> {
  const { path, type = "" } = source;
  const isRemote = isElsewhere(mounts.list(), path);
  if (isRemote && type !== "" && !(await doesAnswer(exec, path, { signal }))) throw new Error(`hostPath type check failed: ${path} does not answer`);
  await checkHostPath(source);
  return { hostPath: path, readOnly, managed: false, isRemote };
}

async function setUpEmptyDir({ tmpfs, mounts, allocatable }: SetUpDeps, pod: Pod, { medium = "", sizeLimit }: EmptyDirVolumeSource, { directory, notes }: { readonly directory: string; readonly notes: string }): Promise<ReadyVolume> {
  const ready: ReadyVolume = { hostPath: directory, readOnly: false, managed: true };
  if (medium === "") {
    if ((await isThere(join(notes, "ready"))) && (await isThere(directory))) return ready; // set up to the end: what containers changed since is theirs
    await makeDirectory(directory, 0o777);
    await giveToGroup(pod, directory, { readOnly: false });
    await makeDirectory(notes, 0o750);
    await writeFile(join(notes, "ready"), "");
    return ready;
  }
  if (mounts.isMountPoint(directory)) return ready;
  await makeDirectory(directory, 0o777);
  if (medium === "Memory") {
    tmpfs(directory, memorySize(pod, allocatable(), sizeLimit));
  } else if (medium.startsWith("HugePages")) {
    const page = hugepageOf(pod, medium);
    const limit = podLimits(pod).get(`hugepages-${page}`);
    mounts.mount({ source: "nodev", target: directory, fsType: "hugetlbfs", options: [`pagesize=${page.replace(/i$/, "")}`, ...(limit ? [`size=${limit.number()}`] : [])] });
  } else throw new Error(`unknown storage medium "${medium}"`);
  await makeDirectory(directory, 0o777);
  await giveToGroup(pod, directory, { readOnly: false });
  return ready;
}

/** What is in memory is no more than the pod may have of it, or the node. Source: kubernetes v1.36 pkg/volume/emptydir/empty_dir.go calculateEmptyDirMemorySize */
function memorySize(pod: Pod, allocatable: ResourceList, sizeLimit?: string): string[] {
  const texts = [sizeLimit, podCgroupLimits(pod).memoryBytes?.toString(), allocatable["memory"]];
  const sizes = texts.flatMap((text) => (text && parseQuantity(text).sign > 0 ? [parseQuantity(text).number()] : []));
  return sizes.length > 0 ? [`size=${Math.ceil(Math.min(...sizes))}`] : [];
}

/** The size of its pages, which the pod must have asked for. */
function hugepageOf(pod: Pod, medium: string): string {
  const asked = [...podLimits(pod).keys()].filter((name) => name.startsWith("hugepages-")).map((name) => name.slice("hugepages-".length));
  const [, size] = /^HugePages-(.+)$/.exec(medium) ?? [];
  const pages = size === undefined ? asked : asked.filter((page) => compareQuantities(page, size) === 0);
  if (pages.length > 1) throw new Error(`medium: ${medium} can't be used if container requests multiple huge page sizes`);
  if (pages[0] === undefined) throw new Error(`medium ${medium}: hugePages storage requested, but there is no resource request for huge pages`);
  return pages[0];
}

/** Files from the API: small, replaced as a whole; secrets never touch the disk. What an older version of ours has put there stays there: containers have it mounted. */
async function setUpFiles({ tmpfs, mounts, allocatable, clock, random }: SetUpDeps, { pod, nested }: { readonly pod: Pod; readonly nested: readonly string[] }, directory: string, payload: Payload, { memory }: { readonly memory: boolean }): Promise<ReadyVolume> {
  if (memory && !mounts.isMountPoint(directory) && !(await isThere(join(directory, "..data")))) {
    await makeDirectory(directory, 0o777);
    tmpfs(directory, memorySize(pod, allocatable()));
    await makeDirectory(directory, 0o777);
  } else if (!(await isThere(directory))) await makeDirectory(directory, 0o777); // once: its group may have been given it since
  const own = new Set(nested.length === 0 ? [] : [...payload.keys()].map((path) => path.split("/", 1)[0]!));
  const taken = await makeMountPoints(directory, nested, (name) => own.has(name));
  const changed = await writePayload(directory, payload, { clock, random, taken, prepare: (path) => giveToGroup(pod, path, { readOnly: true }) });
  if (changed) await giveToGroup(pod, directory, { readOnly: true }); // the links too
  return { hostPath: directory, readOnly: true, managed: true };
}

async function setUpPersistent(deps: SetUpDeps, pod: Pod, volume: Volume, { signal, onBound }: SetUpCall): Promise<ReadyVolume> {
  const bound = await boundVolume({ client: deps.client, signal }, pod, volume);
  onBound(bound.volume);
  checkVolumeMode(pod, volume, bound);
  const ready = await setUpBound(deps, { pod, volume }, bound, signal).catch((cause: Error) => {
    tellMismatch(deps, bound.volume, cause);
    throw isTold(cause) ? cause : new MountFailure("MountVolume.SetUp", bound.volume.metadata.name, new Error(mountErrorText(cause), { cause }));
  });
  const group = groupOf(bound.volume);
  return group === undefined ? ready : { ...ready, group };
}

/** Of a disk with another file system than its volume says: that is the volume's matter. Source: kubernetes v1.36 pkg/volume/util/operationexecutor/operation_generator.go checkForFailedMount */
function tellMismatch({ events }: SetUpDeps, { metadata: { name, uid } }: Readonly<PersistentVolume>, failure: Error): void {
  const problem = failure instanceof MountFailure ? (failure.cause as Error) : failure;
  for (let cause: unknown = problem; cause instanceof Error; cause = cause.cause)
    if (cause instanceof FilesystemMismatch) return events.event({ apiVersion: "v1", kind: "PersistentVolume", name, uid }, "Warning", "FailedMountOnFilesystemMismatch", `MountVolume failed for volume "${name}" ${problem.message}`);
}

/** It says of which volume it tells, or tells nobody. */
function isTold(cause: Error): boolean {
  return cause instanceof MountFailure || cause instanceof UnusableVolume || cause instanceof VolumePending;
}

/** Whose group a volume's files are, by the word of who made it. */
function groupOf({ metadata }: Readonly<PersistentVolume>): number | undefined {
  const text = metadata.annotations?.[GROUP_ANNOTATION] ?? "";
  return /^\d{1,10}$/.test(text) ? Number(text) : undefined;
}

async function setUpBound(deps: SetUpDeps, { pod, volume }: { readonly pod: Pod; readonly volume: Volume }, bound: BoundVolume, signal: AbortSignal): Promise<ReadyVolume> {
  const { volume: { metadata, spec }, readOnly, block } = bound;
  const options = mountOptionsOf(bound.volume);
  if (spec.csi) return await setUpCsi(deps, pod, persistentVolume(bound.volume, { readOnly, block }), bound, signal);
  if (spec.iscsi) {
    const ready = await setUpIscsi(deps, pod, spec.iscsi, { name: metadata.name, options, readOnly: readOnly || (spec.iscsi.readOnly ?? false), block }, signal);
    return block ? ready : { ...ready, claim: nameOf(bound.claim) };
  }
  if (spec.local) return await setUpLocal(deps, pod, bound, signal);
  if (block) throw new MountFailure("MapVolume.FindMapperPluginBySpec", metadata.name, new Error("failed to find BlockVolumeMapper plugin. Volume plugin is nil."));
  if (spec.hostPath) {
    if (options.length > 0) throw new MountFailure("MountVolume.MountOptionSupport check", metadata.name, new Error("mount options are not supported for this volume type")); // nothing is mounted
    return await setUpHostPath(deps, spec.hostPath, { readOnly, signal });
  }
  if (spec.nfs) {
    const ready = await setUpNfs(deps, spec.nfs, volumeDirectory(podDirectory(deps.dataDir, pod.metadata.uid), "kubernetes.io/nfs", metadata.name), { readOnly: readOnly || (spec.nfs.readOnly ?? false), options }, signal);
    return { ...ready, claim: nameOf(bound.claim) };
  }
  throw unknownKind(volume.name, metadata.name);
}

/** A directory, or a device: given as it is, or with the file system on it, which grows with it. A directory may be another machine's, as one of hostPath may. */
async function setUpLocal(deps: SetUpDeps, pod: Pod, bound: BoundVolume, signal: AbortSignal): Promise<ReadyVolume> {
  const { dataDir, mounts, exec, devices, expander } = deps;
  const { claim, volume: { metadata: { name }, spec }, readOnly, block } = bound;
  const { path, fsType = "" } = spec.local!;
  const options = mountOptionsOf(bound.volume);
  if (block) {
    if (!(await isThere(path))) throw new MountFailure("MapVolume.EvalHostSymlinks", name, new Error(`lstat ${path}: no such file or directory`));
    if ((await localKind(path)) !== "device") throw new MountFailure("MapVolume.MapBlockVolume", name, new Error(`${path} is not a block device`));
    await expander.inUse({ pod, ...bound, grow: async () => true }, signal);
    return { hostPath: path, readOnly, block, managed: false };
  }
  const growing = { pod, ...bound, grow: async () => { if ((await localKind(path)) === "device") await devices.grow({ name, device: path }, signal); return true; } };
  const directory = volumeDirectory(podDirectory(dataDir, pod.metadata.uid), "kubernetes.io/local-volume", name);
  const isRemote = isElsewhere(mounts.list(), path);
  if (mounts.isMountPoint(directory)) await expander.inUse(growing, signal);
  else {
    const failure = (cause: Error): MountFailure => new MountFailure("MountVolume.NewMounter initialization", name, cause);
    if (isRemote && !(await doesAnswer(exec, path, { signal }))) throw failure(new Error(`path "${path}" does not answer`));
    const kind = await localKind(path).catch((cause: Error) => { throw failure(cause); });
    await makeDirectory(directory, 0o750);
    if (kind === "directory") bindWith(mounts, path, directory, { readOnly, options });
    else await devices.show({ name, device: path, fsType, options, readOnly }, directory, signal).catch((cause: Error) => { throw new MountFailure("MountVolume.MountDevice", name, cause); });
    try {
      await expander.beforeUse(growing, signal);
      if (!readOnly) await giveLocal(deps, pod, name, directory);
    } catch (error) {
      mounts.unmount(directory); // as if it had not been: what is mounted is the pod's, as large as it should be and given to its group
      throw error;
    }
  }
  return { hostPath: directory, readOnly, managed: true, isMeasured: true, claim: nameOf(claim), isRemote };
}

/** What the volume's maker wants of its mount holds besides what the place has already. */
function bindWith(mounts: Mounts, path: string, directory: string, { readOnly, options }: { readonly readOnly: boolean; readonly options: readonly string[] }): void {
  mounts.bind(path, directory, { recursive: true, readOnly });
  if (options.length === 0) return;
  try {
    const kept = mounts.list().findLast(({ target }) => target === directory)?.options ?? [];
    mounts.mount({ source: "none", target: directory, fsType: "none", options: ["bind", "remount", ...kept, ...options] });
  } catch (error) {
    mounts.unmount(directory);
    throw error;
  }
}

/** To the pod's group, unless other pods have the volume already: it stays theirs. Source: kubernetes v1.36 pkg/volume/local/local.go SetUpAt */
async function giveLocal({ dataDir, mounts, clock, events, log }: SetUpDeps, pod: Pod, name: string, directory: string): Promise<void> {
  const { fsGroup } = pod.spec.securityContext ?? {};
  if (fsGroup === undefined) return;
  const { dev, ino, gid } = await stat(directory);
  const table = mounts.list(), own = table.findLast(({ target }) => target === directory)?.source;
  const others = table.filter(({ source, target }) => source === own && target !== directory && target.startsWith(`${podDirectories(dataDir)}/`) && target.includes("/volumes/kubernetes.io~local-volume/"));
  const found = await Promise.all(others.map(async ({ target }) => await stat(target).catch(() => undefined))); // gone meanwhile
  if (!found.some((other) => other?.dev === dev && other.ino === ino)) return await giveToGroup(pod, directory, { readOnly: false, told: { clock, events, log } });
  if (gid !== fsGroup) events.event(podReference(pod), "Warning", "AlreadyMountedVolume", `The requested fsGroup is ${fsGroup}, but the volume ${name} has GID ${gid}. The volume may not be shareable.`);
}

function nameOf({ metadata: { name, namespace = "" } }: Readonly<PersistentVolumeClaim>): { readonly namespace: string; readonly claim: string } {
  return { namespace, claim: name };
}

/** A claim is used as what it is: a file system, or a device. */
function checkVolumeMode(pod: Pod, { name }: Volume, { block }: { readonly block: boolean }): void {
  const containers = allContainers(pod.spec).map(({ container }) => container);
  if (block && containers.some(({ volumeMounts }) => volumeMounts?.some((mount) => mount.name === name))) throw new UnusableVolume(name, `volume ${name} has volumeMode Block, but is specified in volumeMounts`);
  if (!block && containers.some(({ volumeDevices }) => volumeDevices?.some((device) => device.name === name))) throw new UnusableVolume(name, `volume ${name} has volumeMode Filesystem, but is specified in volumeDevices`);
}

async function setUpNfs(deps: VolumeDeps, source: NFSVolumeSource, directory: string, use: { readonly readOnly: boolean; readonly options: readonly string[] }, signal: AbortSignal): Promise<ReadyVolume> {
  await mountNfs(deps, source, directory, use, signal);
  return { hostPath: directory, readOnly: use.readOnly, managed: false, isRemote: true, isMeasured: true };
}
