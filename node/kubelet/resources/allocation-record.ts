/** What a pod was granted when that is not (or not always was) what its spec says, so that a restarted kubelet still knows. In the pod's own directory. */
import { join } from "node:path";
import type { Log } from "../../../core/observe/log.ts";
import { readStateFile, type StateFile, stateFile } from "../../os/state-file.ts";
import { podDirectory } from "../volumes/pod-directories.ts";
import type { Allocation } from "./resize.ts";

const FILE = "allocation.json";

export function readAllocation(dataDir: string, podUid: string, log: Log): Allocation | undefined {
  return readStateFile<Allocation>(join(podDirectory(dataDir, podUid), FILE), log);
}

export function allocationFile(dataDir: string, podUid: string): StateFile { return stateFile(join(podDirectory(dataDir, podUid), FILE)); }
