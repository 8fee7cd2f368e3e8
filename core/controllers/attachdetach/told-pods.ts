/** What pods are told of their volumes: that one has come, that another node has it, what went wrong. Once each. */
import type { PersistentVolume, Pod } from "../../api/gen/core.v1.ts";
import { type ObjectKey, objectKey } from "../../api/meta/object-meta.ts";
import type { EventRecorder } from "../../client/events.ts";
import { multiAttachMessage, type Pending, type Wanted } from "./plan.ts";
import type { Waits } from "./waits.ts";

export interface ToldPods {
  attached(wanted: Wanted): void;
  /** It is at these nodes. */
  elsewhere(wanted: Wanted, nodes: readonly string[]): void;
  problem(pending: Pending): void;
}

interface Deps {
  readonly recorder: EventRecorder;
  readonly waits: Pick<Waits, "isNewAttempt">;
  /** That use the claim still. */
  readonly podsOfClaim: (claim: ObjectKey) => readonly Readonly<Pod>[];
}

/** Those of before are told again then. */
const TOLD_MAX = 10_000;

export function toldPods({ recorder, waits, podsOfClaim }: Deps): ToldPods {
  const told = new Set<string>(); // pods that know that their volume is elsewhere

  function usersAt(nodes: readonly string[], { claimRef }: Readonly<PersistentVolume>["spec"]): readonly Readonly<Pod>[] {
    const at = new Set(nodes);
    return claimRef ? podsOfClaim(objectKey(claimRef.namespace ?? "", claimRef.name ?? "")).filter(({ spec }) => at.has(spec.nodeName ?? "")) : [];
  }

  return {
    attached({ volume, pods }) {
      for (const pod of pods) recorder.event(pod, "Normal", "SuccessfulAttachVolume", `AttachVolume.Attach succeeded for volume "${volume.metadata.name}" `);
    },
    elsewhere({ volume, pods: waiting }, nodes) {
      const users = usersAt(nodes, volume.spec);
      for (const pod of waiting) {
        const once = `${pod.metadata.uid} ${volume.metadata.name}`;
        if (told.has(once)) continue;
        if (told.size >= TOLD_MAX) told.clear();
        told.add(once);
        recorder.event(pod, "Warning", "FailedAttachVolume", multiAttachMessage(pod, volume.metadata.name, users));
      }
    },
    problem({ wanted: { volume, pods }, attachment, problem, attempt }) {
      if (problem === undefined || !waits.isNewAttempt(attachment, attempt)) return;
      for (const pod of pods) recorder.event(pod, "Warning", "FailedAttachVolume", `AttachVolume.Attach failed for volume "${volume.metadata.name}" : ${problem}`);
    },
  };
}
