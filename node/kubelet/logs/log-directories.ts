/**
 * Which directories of logs are this kubelet's: a note for each, in its own directory. /var/log/pods is everybody's, and what another kubelet or program
 * has left there is not ours to remove.
 */
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileText } from "../../../core/lifecycle/file-text.ts";
import { ifThere } from "../../../core/lifecycle/if-there.ts";

export interface LogOwner { readonly namespace: string; readonly name: string; readonly uid: string }

/** Before the directory is made. */
export async function noteLogDirectory(dataDir: string, { namespace, name, uid }: LogOwner): Promise<void> {
  await mkdir(notes(dataDir), { recursive: true, mode: 0o750 });
  const path = join(notes(dataDir), uid), text = `${namespace}_${name}_${uid}`;
  if ((await fileText(path)) === text) return;
  await rm(path, { force: true }); // its sectors may be bad
  await writeFile(path, text);
}

/** After it was removed. */
export async function forgetLogDirectory(dataDir: string, uid: string): Promise<void> {
  await rm(join(notes(dataDir), uid), { force: true });
}

export async function notedLogDirectories(dataDir: string): Promise<LogOwner[]> {
  const uids = (await ifThere(readdir(notes(dataDir)))) ?? [];
  const names = await Promise.all(uids.map((uid) => fileText(join(notes(dataDir), uid)).then((text = "") => text)));
  return names.flatMap((text) => {
    const [namespace, name, uid] = text.split("_");
    return namespace && name && uid ? [{ namespace, name, uid }] : [];
  });
}

function notes(dataDir: string): string { return join(dataDir, "pod-logs"); }
