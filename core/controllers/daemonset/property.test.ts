/** DaemonSets rolled out while nodes come and go and pods fail: no more nodes without a pod than may be, no more surging than may be, and all of one kind in the end. */
import { expect, test } from "vitest";
import { seededRandom } from "../../../test/simulator/seeded.ts";
import type { DaemonSet } from "../../api/gen/apps.v1.ts";
import type { Node, Pod } from "../../api/gen/core.v1.ts";
import { daemonStatus, planPlacement, planRolling } from "./plan.ts";

const NOW = Date.parse("2026-01-02T00:00:00Z");
interface Member { readonly node: string; readonly hash: string; state: "pending" | "ready" | "failed" | "deleting"; readonly uid: number }

test("a rollout keeps to its limits at every step, and comes to an end", () => {
  for (let seed = 1; seed <= 100; seed++) {
    const random = seededRandom(seed);
    const surge = random.chance(0.4) ? random.integer(1, 3) : 0;
    const unavailable = surge > 0 ? 0 : random.integer(1, 3);
    const set: DaemonSet = {
      apiVersion: "apps/v1", kind: "DaemonSet", metadata: { name: "d", namespace: "n", uid: "d", resourceVersion: "1", creationTimestamp: "", generation: 1 },
      spec: { selector: {}, template: { spec: { containers: [] } }, updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: surge, maxUnavailable: unavailable } } },
    };
    let nodes = Array.from({ length: random.integer(1, 8) }, (_, i) => `n${i}`);
    let members: Member[] = [];
    let hash = "a";
    let uids = 0;
    const world = () => ({
      set, hash, nowMs: NOW,
      nodes: nodes.map((name): Node => ({ apiVersion: "v1", kind: "Node", metadata: { name, uid: name, resourceVersion: "1", creationTimestamp: "" }, spec: {} })),
      pods: members.map(({ node, hash: of, state, uid }): Pod => ({
        apiVersion: "v1", kind: "Pod", metadata: { name: `p${uid}`, uid: `p${uid}`, resourceVersion: "1", creationTimestamp: `2026-01-01T00:00:00Z`, labels: { "controller-revision-hash": of }, ...(state === "deleting" ? { deletionTimestamp: "x" } : {}) },
        spec: { nodeName: node, containers: [] }, status: { phase: state === "failed" ? "Failed" : "Running", conditions: [{ type: "Ready", status: state === "ready" ? "True" : "False", lastTransitionTime: "2026-01-01T00:00:00Z" }] },
      })),
    });
    const serving = (node: string): boolean => members.some((one) => one.node === node && one.state === "ready");
    const step = (label: string): void => {
      const placed = planPlacement(world());
      const doomed = new Set([...placed.remove, ...placed.failed.map(({ pod }) => pod)].map(({ metadata }) => metadata.uid));
      for (const node of placed.create) members.push({ node, hash, state: "pending", uid: uids++ });
      for (const member of members) if (doomed.has(`p${member.uid}`)) member.state = "deleting";
      if (placed.create.length + placed.remove.length > 0) return;
      const before = nodes.filter((node) => !serving(node)).length;
      const { create, remove } = planRolling(world());
      for (const node of create) {
        expect(members.some((one) => one.node === node && one.hash === hash && one.state !== "deleting"), `${label}: ${node} has a new one already`).toBe(false);
        members.push({ node, hash, state: "pending", uid: uids++ });
      }
      for (const pod of remove) {
        const member = members.find(({ uid }) => `p${uid}` === pod.metadata.uid)!;
        expect(member.hash, `${label}: ${pod.metadata.name} is of the new template`).not.toBe(hash);
        member.state = "deleting";
      }
      const after = nodes.filter((node) => !serving(node)).length;
      expect(after, `${label}: unavailable`).toBeLessThanOrEqual(Math.max(before, surge > 0 ? before : unavailable));
      if (surge > 0) expect(nodes.filter((node) => members.some((one) => one.node === node && one.hash === hash && one.state === "pending") && members.some((one) => one.node === node && one.hash !== hash && one.state === "ready")).length, `${label}: surging`).toBeLessThanOrEqual(surge);
    };
    const live = (failing: number): void => {
      members = members.filter(({ state, node }) => (state !== "deleting" || random.chance(0.5)) && nodes.includes(node));
      for (const member of members) {
        if (member.state === "pending" && random.chance(0.7)) member.state = "ready";
        else if (member.state === "ready" && random.chance(failing)) member.state = "failed";
      }
    };
    for (let i = 0; i < 60; i++) {
      if (random.chance(0.05)) hash = random.pick(["a", "b", "c"]);
      if (random.chance(0.05)) nodes = [...nodes, `m${i}`];
      if (random.chance(0.03)) nodes = nodes.filter((_, at) => at !== 0 || nodes.length === 1);
      step(`seed ${seed}, step ${i}`);
      live(0.02);
    }
    for (let i = 0; i < 200; i++) { step(`seed ${seed}, at last`); live(0); }
    expect(members.map(({ node, hash: of, state }) => `${node} ${of} ${state}`).sort(), `seed ${seed}`).toEqual(nodes.map((node) => `${node} ${hash} ready`).sort());
    expect(daemonStatus(world()), `seed ${seed}`).toMatchObject({ desiredNumberScheduled: nodes.length, numberAvailable: nodes.length, updatedNumberScheduled: nodes.length, numberMisscheduled: 0 });
  }
});
