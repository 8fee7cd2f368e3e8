/** The CSI volumes that disk tells of, by their notes: what is staged on this node, and what is published for a pod. */
import { join } from "node:path";
import { publishTarget, volumeKey } from "./csi-volume.ts";
import { directoriesIn, readNote, type VolumeNote } from "./volume-note.ts";

export interface NotedVolume {
  /** Where the note is. */
  readonly directory: string;
  /** Where the driver was asked to put it. */
  readonly target: string;
  /** Of a device: the directory of its own around one of the two. */
  readonly around: string | undefined;
  readonly note: VolumeNote;
}

export async function stagedVolumes(dataDir: string): Promise<NotedVolume[]> {
  const root = join(dataDir, "plugins/kubernetes.io/csi");
  const found: NotedVolume[] = [];
  for (const driver of await directoriesIn(root)) {
    for (const name of await directoriesIn(join(root, driver))) {
      const around = driver === "volumeDevices" ? join(root, driver, name) : undefined;
      const directory = around === undefined ? join(root, driver, name) : join(around, "data");
      const note = await readNote(directory);
      if (note) found.push({ directory, target: around === undefined ? join(directory, "globalmount") : join(root, "volumeDevices/staging", name), around, note });
    }
  }
  return found;
}

export async function publishedVolumes(dataDir: string, podUid: string): Promise<NotedVolume[]> {
  const podDir = join(dataDir, "pods", podUid);
  const found: NotedVolume[] = [];
  for (const [kind, block] of [["volumes", false], ["volumeDevices", true]] as const) {
    for (const specName of await directoriesIn(join(podDir, kind, "kubernetes.io~csi"))) {
      const { note: directory, target, around } = publishTarget(dataDir, podUid, { specName, block });
      const note = await readNote(directory);
      if (note) found.push({ directory, target, around, note });
    }
  }
  return found;
}

/** Pods that have published anything, and perhaps others. */
export async function podsOnDisk(dataDir: string): Promise<readonly string[]> {
  return await directoriesIn(join(dataDir, "pods"));
}

export function keyOfNote({ driverName, volumeHandle }: VolumeNote): string {
  return volumeKey({ driver: driverName, handle: volumeHandle });
}
