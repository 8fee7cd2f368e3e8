/**
 * Removes the directory of a pod that has ended while its object stays, but for what its containers have said at their end: a kubelet that starts anew reads
 * that again, and perhaps nobody has been told of it yet. What is empty says nothing, so of most pods nothing is left.
 */
import type { Dirent } from "node:fs";
import { readdir, rmdir, stat, unlink } from "node:fs/promises";
import { join } from "node:path";
import { ifThere } from "../../../core/lifecycle/if-there.ts";
import { messagesDirectory } from "./pod-directories.ts";
import { removeTree } from "./remove-tree.ts";

/** Nothing may be mounted below it. */
export async function removeButMessages(podDir: string): Promise<void> {
  const messages = messagesDirectory(podDir);
  for (const entry of await entriesOf(podDir)) {
    const path = join(podDir, entry.name);
    if (path === messages) continue;
    if (entry.isDirectory()) await removeTree(path);
    else await unlink(path);
  }
  for (const { name } of await entriesOf(messages)) {
    for (const file of await entriesOf(join(messages, name))) {
      const path = join(messages, name, file.name);
      if ((await stat(path)).size === 0) await unlink(path);
    }
    await removeIfEmpty(join(messages, name));
  }
  await removeIfEmpty(messages);
  await removeIfEmpty(podDir);
}

async function entriesOf(directory: string): Promise<readonly Dirent[]> { return (await ifThere(readdir(directory, { withFileTypes: true }))) ?? []; }

async function removeIfEmpty(directory: string): Promise<void> {
  if ((await entriesOf(directory)).length === 0) await ifThere(rmdir(directory));
}
