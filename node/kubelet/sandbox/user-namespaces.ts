/**
 * Ranges of user and group ids for pods with a user namespace of their own: none shared, none of the host's own, and chosen at random, so that pods of two nodes hardly have the same. What is in use is remembered in pods/<uid>/userns,
 * so that a restart gives nothing away twice.
 *
 * The ids to give away are all but the first range, or those that getsubids says the user "kubelet" has, where the machine has both.
 *
 * Source: kubernetes v1.36 pkg/kubelet/userns/userns_manager.go, pkg/kubelet/kubelet_pods.go (getKubeletMappings)
 */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import type { Random } from "../../../core/lifecycle/random.ts";
import type { Log } from "../../../core/observe/log.ts";
import { type Exec, ExecError } from "../../os/exec.ts";
import { CorruptStateError, parseStateFile, readStateFile, writeStateFile } from "../../os/state-file.ts";
import { usesUserNamespace } from "../pod-spec.ts";
import { podDirectory } from "../volumes/pod-directories.ts";

export interface IdRange { readonly hostId: number; readonly length: number }

export interface UserNamespaces {
  /** Finds out which ids there are to give away, and takes over what a former life of the kubelet gave out. Throws an Error for the user. */
  setUp(ids: IdRange | undefined, podUids: Iterable<string>): void;
  /** The pod's range, newly chosen if it has none; undefined when it shares the host's ids. */
  rangeOf(pod: Pod): Promise<IdRange | undefined>;
  release(podUid: string): Promise<void>;
}

interface Mapping { readonly hostId: number; readonly containerId: number; readonly length: number }
interface RecordFile { readonly uidMappings: readonly Mapping[]; readonly gidMappings: readonly Mapping[] }

/** Ids come in units of so many. */
const UNIT = 65_536;
const IDS_END = 2 ** 32;

/** One is written, twice: what is anything else, a disk has made of it. */
function readMapping(path: string): Mapping | undefined {
  const record = parseStateFile<RecordFile>(path);
  if (!record) return undefined;
  const { uidMappings: [uids, ...moreUids], gidMappings: [gids, ...moreGids] } = record;
  if (!uids || !gids || moreUids.length + moreGids.length > 0 || JSON.stringify(uids) !== JSON.stringify(gids)) throw new CorruptStateError("user namespace: invalid user namespace configuration: GID and UID mapping should be identical");
  if (uids.containerId !== 0) throw new CorruptStateError("user namespace: invalid user namespace configuration: UID 0 must be mapped");
  return uids;
}

interface Options {
  readonly dataDir: string;
  readonly maxPods: number;
  readonly idsPerPod?: number | undefined;
  readonly random: Pick<Random, "next">;
  readonly log: Log;
}

export function userNamespaces({ dataDir, maxPods, idsPerPod = UNIT, random, log }: Options): UserNamespaces {
  const taken = new Map<string, number>(); // pod uid → its first id
  let all: IdRange = { hostId: idsPerPod, length: IDS_END - idsPerPod }; // the first range is the host's own

  const recordPath = (uid: string): string => join(podDirectory(dataDir, uid), "userns");

  function recorded(uid: string): number | undefined {
    const uids = readStateFile(recordPath(uid), log, readMapping);
    if (!uids) return undefined;
    if (uids.length !== idsPerPod) throw new Error(`user namespace: wrong user namespace length ${uids.length}`);
    if (uids.hostId % idsPerPod !== 0) throw new Error(`user namespace: wrong user namespace offset specified ${uids.hostId}`);
    if (uids.hostId < all.hostId || uids.hostId + uids.length > all.hostId + all.length) throw new Error(`user namespace: id ${uids.hostId} is out of range`);
    const other = [...taken].find(([owner, hostId]) => owner !== uid && hostId === uids.hostId);
    if (other) throw new Error(`user namespace: range picked for pod "${uid}" already taken`);
    taken.set(uid, uids.hostId);
    return uids.hostId;
  }

  async function chosen(uid: string): Promise<number> {
    const used = new Set(taken.values());
    const slots = Math.floor(all.length / idsPerPod);
    if (used.size >= slots) throw new Error("create user namespace: could not find an empty slot to allocate a user namespace");
    let slot = Math.floor(random.next() * slots);
    while (used.has(all.hostId + slot * idsPerPod)) slot = (slot + 1) % slots;
    const hostId = all.hostId + slot * idsPerPod;
    taken.set(uid, hostId);
    const mappings = [{ hostId, containerId: 0, length: idsPerPod }];
    try {
      await writeStateFile(recordPath(uid), { uidMappings: mappings, gidMappings: mappings } satisfies RecordFile);
    } catch (error) {
      taken.delete(uid); // what is not on disk is another's after a restart
      throw error;
    }
    return hostId;
  }

  return {
    setUp(ids, podUids) {
      all = ids ?? all;
      check(all, { idsPerPod, maxPods });
      for (const uid of podUids) recorded(uid);
    },
    async rangeOf(pod) {
      if (!usesUserNamespace(pod)) return undefined;
      const { uid } = pod.metadata;
      return { hostId: taken.get(uid) ?? recorded(uid) ?? (await chosen(uid)), length: idsPerPod };
    },
    async release(podUid) {
      if (taken.delete(podUid)) await rm(recordPath(podUid), { force: true });
    },
  };
}

function check({ hostId, length }: IdRange, { idsPerPod, maxPods }: { readonly idsPerPod: number; readonly maxPods: number }): void {
  if (idsPerPod % UNIT !== 0) throw new Error(`kubelet user namespace length ${idsPerPod} is not a multiple of ${UNIT}`);
  if (hostId % idsPerPod !== 0) throw new Error(`kubelet user assigned ID ${hostId} is not a multiple of ${idsPerPod}`);
  if (hostId < idsPerPod) throw new Error(`kubelet user assigned ID ${hostId} must be greater or equal to ${idsPerPod}`);
  if (length % idsPerPod !== 0) throw new Error(`kubelet user assigned IDs length ${length} is not a multiple of ${idsPerPod}`);
  if (length / idsPerPod < maxPods) throw new Error(`kubelet user assigned IDs are not enough to support ${maxPods} pods`);
}

/** The user whose subordinate ids are ours to give away. */
const USER = "kubelet";

/** Undefined: nobody has set any aside. Throws an Error for the user when they were set aside in a way we cannot use. */
export async function subordinateIds({ exec, passwd, signal }: { readonly exec: Exec; /** Text of /etc/passwd. */ readonly passwd: string; readonly signal: AbortSignal }): Promise<IdRange | undefined> {
  if (!passwd.split("\n").some((line) => line.startsWith(`${USER}:`))) return undefined;
  try {
    const [uids, gids] = [await exec("getsubids", [USER], { signal }), await exec("getsubids", ["-g", USER], { signal })];
    for (const [what, { exitCode, stderr }] of [["uids", uids], ["gids", gids]] as const) if (exitCode !== 0) throw new Error(`kubelet mappings: error retrieving additional ${what} for user "${USER}": ${stderr.trim() || `exit status ${exitCode}`}`);
    if (uids.stdout !== gids.stdout) throw new Error(`kubelet mappings: mismatched subuids and subgids for user "${USER}"`);
    return parseSubordinateIds(uids.stdout);
  } catch (error) {
    if (error instanceof ExecError && error.code === "not-found") return undefined;
    throw error;
  }
}

/** 0: kubelet 65536 2147483648 */
function parseSubordinateIds(text: string): IdRange {
  const lines = text.replace(/^\n+|\n+$/g, "").split("\n");
  if (lines.length !== 1) throw new Error(`kubelet mappings: error parsing line ${JSON.stringify(text)}: it must contain only one line`);
  const words = lines[0]!.trim().split(/\s+/);
  const [hostId = 0, length = 0] = words.slice(2).map(Number);
  if (words.length !== 4 || !words.slice(2).every((word) => /^\d+$/.test(word)) || hostId >= IDS_END || hostId + length > IDS_END) throw new Error(`kubelet mappings: invalid line ${JSON.stringify(text)}`);
  return { hostId, length };
}
