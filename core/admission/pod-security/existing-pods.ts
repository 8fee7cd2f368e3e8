/** What is told to who makes a namespace stricter: which of its pods would be refused now. Source: kubernetes v1.36 staging/src/k8s.io/pod-security-admission/admission/admission.go */
import type { Pod } from "../../api/gen/core.v1.ts";
import { goQuote } from "../../api/meta/go-quote.ts";
import type { Clock } from "../../lifecycle/clock.ts";
import { reasonOf, violationsOf } from "./evaluate.ts";
import { formatLevelVersion, type LevelVersion } from "./policy.ts";

/** A namespace may have more pods than somebody who waits wants checked. */
const PODS_MAX = 3_000;
const CHECK_MS_MAX = 1_000;

interface Options { readonly namespace: string; readonly enforce: LevelVersion; readonly clock: Pick<Clock, "uptimeMs"> }

export function existingPodsWarnings(all: readonly Readonly<Pod>[], { namespace, enforce, clock }: Options): string[] {
  const deadlineMs = clock.uptimeMs() + CHECK_MS_MAX;
  const byReason = new Map<string, { first: string; count: number }>();
  const pods = distinctFirst(all).slice(0, PODS_MAX);
  let checked = 0;
  for (const pod of pods) {
    const reason = reasonOf(violationsOf(enforce, pod));
    checked++;
    if (reason !== "") {
      const { name } = pod.metadata;
      const before = byReason.get(reason);
      byReason.set(reason, before ? { first: name < before.first ? name : before.first, count: before.count + 1 } : { first: name, count: 1 });
    }
    if (clock.uptimeMs() > deadlineMs) break;
  }
  const told = [...byReason].map(([reason, { first, count }]) => {
    const others = count === 1 ? "" : count === 2 ? " (and 1 other pod)" : ` (and ${count - 1} other pods)`;
    return `${first}${others}: ${reason}`;
  }).sort();
  return [
    ...(checked < all.length ? [`new PodSecurity enforce level only checked against the first ${checked} of ${all.length} existing pods`] : []),
    ...(told.length > 0 ? [`existing pods in namespace ${goQuote(namespace)} violate the new PodSecurity enforce level ${goQuote(formatLevelVersion(enforce))}`] : []),
    ...told,
  ];
}

/** One pod of each controller first: its others are most likely the same. */
function distinctFirst(pods: readonly Readonly<Pod>[]): Readonly<Pod>[] {
  const seen = new Set<string>();
  const later: Readonly<Pod>[] = [];
  const first = pods.filter((pod) => {
    const owner = pod.metadata.ownerReferences?.find(({ controller }) => controller)?.uid;
    if (owner === undefined || !seen.has(owner)) {
      if (owner !== undefined) seen.add(owner);
      return true;
    }
    later.push(pod);
    return false;
  });
  return [...first, ...later];
}
