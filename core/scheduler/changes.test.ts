/** What happens has upstream's names, which metrics show. */
import { expect, test } from "vitest";
import { node, pod } from "../../test/scheduling-cluster.ts";
import { type ClusterChange, eventsOf } from "./changes.ts";

const became = (old: ReturnType<typeof node>, object: ReturnType<typeof node>): ClusterChange => ({ of: "node", object, old, deleted: false });
const altered = (of: "pod" | "placed pod", old: ReturnType<typeof pod>, object: ReturnType<typeof pod>): ClusterChange => ({ of, object, old, deleted: false });
const taints = [{ key: "k", effect: "NoSchedule" as const }];
const ready = (status: string) => ({ ...node("n"), status: { ...node("n").status, conditions: [{ type: "Ready", status, lastHeartbeatTime: status }] } }) as unknown as ReturnType<typeof node>;

test.each<[what: string, change: ClusterChange, events: readonly string[]]>([
  ["a new node", { of: "node", object: node("n"), deleted: false }, ["NodeAdd"]],
  ["a heartbeat", became(node("n"), node("n")), []],
  ["a node that is ready", became(ready("False"), ready("True")), ["NodeUpdateNodeCondition"]],
  ["a cordoned node", became(node("n"), node("n", { unschedulable: true })), []],
  ["an uncordoned node", became(node("n", { unschedulable: true }), node("n")), ["NodeUpdateNodeTaint"]],
  ["a node that is more and is tainted", became(node("n"), node("n", { cpu: "4", labels: { x: "y" }, taints })), ["NodeUpdateNodeAllocatable", "NodeUpdateNodeLabel", "NodeUpdateNodeTaint"]],
  ["a placed pod's labels", altered("placed pod", pod("p"), pod("p", { labels: { x: "y" } })), ["AssignedPodUpdatePodLabel"]],
  ["a placed pod asks for less", altered("placed pod", pod("p"), pod("p", { cpu: "1m" })), ["AssignedPodUpdatePodScaleDown"]],
  ["a placed pod's status", altered("placed pod", pod("p"), pod("p", { status: { phase: "Running" } })), ["AssignedPodUpdate"]],
  ["a waiting pod tolerates more", altered("pod", pod("p"), pod("p", { tolerations: [{ operator: "Exists" }] })), ["UnschedulablePodUpdatePodToleration"]],
  ["a waiting pod's gates are gone", altered("pod", pod("p", { schedulingGates: [{ name: "g" }] }), pod("p")), ["UnschedulablePodUpdatePodSchedulingGatesEliminated"]],
  ["a new class of storage", { of: "storage class", object: {} as never, deleted: false }, ["storage.k8s.io/StorageClassAdd"]],
])("%s", (_, change, events) => expect(eventsOf(change)).toEqual(events));
