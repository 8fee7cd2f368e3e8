/** What a pod was granted when that is not (or not always was) what its spec says, so that a restarted kubelet still knows. In the pod's own directory. */
import { join } from "node:path";
import { isQuantity } from "../../../core/api/meta/quantity.ts";
import type { Log } from "../../../core/observe/log.ts";
import { CorruptStateError, parseStateFile, readStateFile, type StateFile, stateFile } from "../../os/state-file.ts";
import { podDirectory } from "../volumes/pod-directories.ts";
import type { Allocation } from "./resize.ts";

const FILE = "allocation.json";

export function readAllocation(dataDir: string, podUid: string, log: Log): Allocation | undefined {
  return readStateFile(join(podDirectory(dataDir, podUid), FILE), log, readWhole);
}

/** A quantity that is none would fail every look at the pod. */
function readWhole(path: string): Allocation | undefined {
  const found = parseStateFile<Allocation>(path);
  const quantities = Object.values(found ?? {}).flatMap(({ requests = {}, limits = {} }) => [...Object.values(requests), ...Object.values(limits)]);
  if (!quantities.every((text) => typeof text === "string" && isQuantity(text))) throw new CorruptStateError(`${path} is corrupted: it holds what is no quantity`);
  return found;
}

export function allocationFile(dataDir: string, podUid: string): StateFile { return stateFile(join(podDirectory(dataDir, podUid), FILE)); }
