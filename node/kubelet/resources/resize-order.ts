/**
 * Which of several pods that wait for room to be resized is given it: who asks for no more, then by priority, then Guaranteed ones, then who has waited longest. Pure.
 *
 * Source: kubernetes v1.36 pkg/kubelet/allocation/allocation_manager.go (sortPendingResizes, isResizeIncreasingRequests)
 */
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import { compareQuantity, parseQuantity } from "../../../core/api/meta/quantity.ts";
import { podRequests, qosClass } from "./pod-resources.ts";

/** `pod`: as it would be; `granted`: as it is; `sinceMs`: since when it waits, and one that is new comes last. */
export interface ResizeWish { readonly pod: Pod; readonly granted: Pod; readonly sinceMs: number | undefined }

function compareWishes(a: ResizeWish, b: ResizeWish): number {
  return Number(asksForMore(a)) - Number(asksForMore(b)) || (b.pod.spec.priority ?? 0) - (a.pod.spec.priority ?? 0) || Number(qosClass(b.pod) === "Guaranteed") - Number(qosClass(a.pod) === "Guaranteed")
    || (a.sinceMs === b.sinceMs ? 0 : (a.sinceMs ?? Infinity) - (b.sinceMs ?? Infinity));
}

function asksForMore({ pod, granted }: ResizeWish): boolean {
  const [wished, had] = [podRequests(pod), podRequests(granted)];
  const none = parseQuantity("0");
  return ["cpu", "memory"].some((name) => compareQuantity(wished.get(name) ?? none, had.get(name) ?? none) > 0);
}

/** The pods beside `wish` as it has to reckon with them: those that wait and come before it have what they wish, where there is room for it. */
export function othersBefore(wish: ResizeWish, { waiting, others, fits }: { readonly waiting: readonly ResizeWish[]; readonly others: readonly Pod[]; readonly fits: (wish: ResizeWish, others: readonly Pod[]) => boolean }): readonly Pod[] {
  return waiting.filter((one) => compareWishes(one, wish) < 0).sort(compareWishes).reduce<readonly Pod[]>((seen, one) => {
    const rest = seen.filter(({ metadata }) => metadata.uid !== one.pod.metadata.uid);
    return fits(one, [...rest, wish.granted]) ? [...rest, one.pod] : seen;
  }, others);
}
