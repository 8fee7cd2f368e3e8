import { expect, test } from "vitest";
import type { PodGroup } from "../api/gen/scheduling.v1alpha2.ts";
import { objectKey } from "../api/meta/object-meta.ts";
import { node, pod, schedulingCluster, stored } from "../../test/scheduling-cluster.ts";
import { findVictims } from "./pod-group-search.ts";
import type { GroupVerdict } from "./pod-group-verdict.ts";

const GETS_OFF: GroupVerdict = { type: "scheduled" };
const TOO_LITTLE: GroupVerdict = { type: "unschedulable", waits: false, message: "too little room" };
const podGroup = stored<PodGroup>("scheduling.k8s.io/v1alpha2", "PodGroup", "default/gang", { spec: { schedulingPolicy: { basic: {} }, priority: 10 } });

/** It gets off where no more than `pods` of the others are left. `left`: how many are, each time it is asked; at last, when all is over. */
async function searched(pods: number, { aborted = false }: { readonly aborted?: boolean } = {}): Promise<{ readonly victims: unknown; readonly left: readonly number[] }> {
  const placed = [["low", 1], ["lower", 0], ["high", 9], ["equal", 10]].map(([name, priority]): [ReturnType<typeof pod>, string] => [pod(String(name), { priority: Number(priority) }), "a"]);
  const { snapshot } = schedulingCluster({ nodes: [node("a")], placed }), left: number[] = [];
  const count = (): number => { const all = snapshot.nodes()[0]!.pods.size; left.push(all); return all; };
  const verdict = (): Promise<GroupVerdict> => Promise.resolve(count() <= pods ? GETS_OFF : TOO_LITTLE);
  const found = await findVictims(
    { group: objectKey("default", "gang"), pods: [pod("p")], signal: aborted ? AbortSignal.abort() : new AbortController().signal, verdict },
    { snapshot, groups: { podGroup: () => podGroup }, budgets: () => [] },
  );
  count();
  return { victims: "pods" in found ? found.pods.map(({ metadata }) => metadata.name) : found, left };
}

test.each<[pods: number, victims: unknown, left: readonly number[]]>([
  [4, [], [1, 2, 3, 4, 4]],
  [3, ["lower"], [1, 2, 3, 4, 4]],
  [2, ["low", "lower"], [1, 2, 3, 3, 4]],
  [0, { refused: "too little room" }, [1, 4]],
])("where %d pods may stay it is %j who have to go: whoever can is put back, and in the end all are", async (pods, victims, left) => {
  expect(await searched(pods)).toEqual({ victims, left });
});

test("a search that is called off leaves all where they were", async () => {
  expect(await searched(4, { aborted: true })).toEqual({ victims: { refused: "" }, left: [1, 4] });
});
