/**
 * Ranges of user and group ids for pods with a user namespace of their own: 65536 ids each, none shared, none of the host's own.
 * What is in use is remembered in pods/<uid>/userns, so that a restart gives nothing away twice.
 *
 * Source: kubernetes v1.36 pkg/kubelet/userns/userns_manager.go
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import { usesUserNamespace } from "../pod-spec.ts";
import { podDirectory } from "../volumes/pod-directories.ts";

export interface IdRange { readonly hostId: number; readonly length: number }

export interface UserNamespaces {
  /** The pod's range, newly chosen if it has none; undefined when it shares the host's ids. */
  rangeOf(pod: Pod): IdRange | undefined;
  /** Takes over what a former life of the kubelet gave out. */
  adopt(podUids: Iterable<string>): void;
  release(podUid: string): void;
}

const LENGTH = 65_536;

export function userNamespaces({ dataDir, maxPods }: { readonly dataDir: string; readonly maxPods: number }): UserNamespaces {
  const taken = new Map<string, number>(); // pod uid → number of its range

  function recordPath(uid: string): string {
    return join(podDirectory(dataDir, uid), "userns");
  }

  function adoptOne(uid: string): number | undefined {
    if (!existsSync(recordPath(uid))) return undefined;
    const { userMappings } = JSON.parse(readFileSync(recordPath(uid), "utf8")) as { readonly userMappings: readonly { readonly hostId: number }[] };
    const slot = (userMappings[0]?.hostId ?? 0) / LENGTH;
    taken.set(uid, slot);
    return slot;
  }

  return {
    rangeOf(pod) {
      if (!usesUserNamespace(pod)) return undefined;
      const { uid } = pod.metadata;
      let slot = taken.get(uid) ?? adoptOne(uid);
      if (slot === undefined) {
        const used = new Set(taken.values());
        slot = 1; // 0 is the host's
        while (used.has(slot)) slot++;
        if (slot > 2 * maxPods) throw new Error("could not find an empty slot to allocate a user namespace");
        taken.set(uid, slot);
        const mapping = [{ hostId: slot * LENGTH, containerId: 0, length: LENGTH }];
        mkdirSync(podDirectory(dataDir, uid), { recursive: true, mode: 0o750 });
        writeFileSync(recordPath(uid), JSON.stringify({ userMappings: mapping, groupMappings: mapping }));
      }
      return { hostId: slot * LENGTH, length: LENGTH };
    },
    adopt(podUids) { for (const uid of podUids) adoptOne(uid); },
    release: (podUid) => void taken.delete(podUid),
  };
}
