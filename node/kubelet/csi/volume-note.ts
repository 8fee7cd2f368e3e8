/** vol_data.json: what stands in a directory of a CSI volume, so that a kubelet that starts anew (or another one) can take it apart. Upstream's keys. */
import { mkdir, readdir, rm, rmdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { CorruptStateError, parseStateFile, writeStateFile } from "../../os/state-file.ts";

export interface VolumeNote {
  readonly driverName: string;
  readonly volumeHandle: string;
  readonly specVolID?: string | undefined;
  readonly nodeName?: string | undefined;
  readonly attachmentID?: string | undefined;
  readonly volumeLifecycleMode?: string | undefined;
  /** "true": it may be published, and is not yet its pod's, or not as large as it should be. */
  readonly unfinished?: string | undefined;
}

export const NOTE = "vol_data.json";

export async function writeNote(directory: string, note: VolumeNote): Promise<void> {
  await writeStateFile(join(directory, NOTE), note);
}

/** Undefined also for one that was cut short: what it was about to tell of had not been done. */
export async function readNote(directory: string): Promise<VolumeNote | undefined> {
  try {
    return parseStateFile<VolumeNote>(join(directory, NOTE));
  } catch (error) {
    if (isNotThere(error) || error instanceof CorruptStateError) return undefined;
    throw error;
  }
}

/** The directories right below `directory`; none if it is not there. */
export async function directoriesIn(directory: string): Promise<string[]> {
  try {
    return (await readdir(directory, { withFileTypes: true })).filter((entry) => entry.isDirectory()).map(({ name }) => name);
  } catch (error) {
    if (isNotThere(error)) return [];
    throw error;
  }
}

/** Removes what the driver should have removed, never what is in it: throws ENOTEMPTY, EBUSY. */
export async function removeTarget(target: string): Promise<void> {
  try {
    await rmdir(target);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOTDIR") await rm(target, { force: true }); // a device
    else if (code !== "ENOENT") throw error;
  }
}

/** The note, and the directory it stood in once nothing else is there; `around`, if nothing else is there, either. */
export async function removeNote(directory: string, around: string | undefined): Promise<void> {
  await rm(join(directory, NOTE), { force: true });
  await removeTarget(directory);
  if (around !== undefined) await rmdir(around).catch((error: NodeJS.ErrnoException) => { if (!["ENOTEMPTY", "ENOENT"].includes(error.code ?? "")) throw error; });
}

export async function makeParent(path: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o750 });
}

function isNotThere(error: unknown): boolean {
  return ["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "");
}
