/**
 * `coracle unpack ARCHIVE DIRECTORY`, which is for coracle itself: a server or an agent starts it to unpack its node components the first time. What is read out of the
 * executable stays mapped in the process that has read it, 39 MB for as long as it lives; so another one does, and ends.
 */
import { unpackArchive } from "../node/runtime/unpack.ts";
import { execOk } from "../node/os/exec.ts";
import { ConfigError } from "./config/config.ts";
import { ownCommand } from "./own-command.ts";

/** 200 MB, each file brought to disk, on the slowest card and processor: who gives up too early begins anew, and never ends. */
const UNPACK_MS_MAX = 4 * 3_600_000;

export async function unpack([archive, directory]: readonly string[]): Promise<number> {
  if (archive === undefined || directory === undefined) throw new ConfigError("coracle unpack ARCHIVE DIRECTORY");
  await unpackArchive(archive, directory);
  return 0;
}

/** The same in a process of its own. */
export async function unpackInChild(archive: string, directory: string): Promise<void> {
  const [command = "", ...rest] = ownCommand();
  await execOk(command, [...rest, "unpack", archive, directory], { timeoutMs: UNPACK_MS_MAX });
}
