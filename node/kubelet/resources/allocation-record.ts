/** What a pod was granted when that is not (or not always was) what its spec says, so that a restarted kubelet still knows. In the pod's own directory. */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { podDirectory } from "../volumes/pod-directories.ts";
import type { Allocation } from "./resize.ts";

const FILE = "allocation.json";

export function readAllocation(dataDir: string, podUid: string): Allocation | undefined {
  const path = join(podDirectory(dataDir, podUid), FILE);
  return existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as Allocation) : undefined;
}

export function writeAllocation(dataDir: string, podUid: string, allocation: Allocation): void {
  const directory = podDirectory(dataDir, podUid);
  mkdirSync(directory, { recursive: true, mode: 0o750 });
  writeFileSync(join(directory, `${FILE}.tmp`), JSON.stringify(allocation));
  renameSync(join(directory, `${FILE}.tmp`), join(directory, FILE)); // whole or not at all
}
