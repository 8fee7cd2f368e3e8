/** StatefulSets carried out step by step while pods fail and the set is changed: order and partition hold at every step, and it comes to an end. */
import { expect, test } from "vitest";
import { type SeededRandom, seededRandom } from "../../../test/simulator/seeded.ts";
import type { StatefulSet, StatefulSetSpec } from "../../api/gen/apps.v1.ts";
import type { Pod } from "../../api/gen/core.v1.ts";
import { planSteps, type Revision, statefulStatus } from "./plan.ts";
import { ordinalOf, revisionOf } from "./pods.ts";

const NOW = Date.parse("2026-01-02T00:00:00Z");
type State = "pending" | "ready" | "failed" | "deleting";
interface Member { readonly ordinal: number; readonly revision: string; state: State; readonly uid: string }

class World {
  spec: StatefulSetSpec;
  members: Member[] = [];
  revisions: readonly string[] = ["v1"];
  current = "v1";
  status: StatefulSet["status"];
  #uids = 0;

  constructor(spec: StatefulSetSpec) { this.spec = spec; }

  get update(): string { return this.revisions.at(-1)!; }
  get set(): StatefulSet { return { apiVersion: "apps/v1", kind: "StatefulSet", metadata: { name: "db", namespace: "d", uid: "s", resourceVersion: "1", creationTimestamp: "" }, spec: this.spec, ...(this.status && { status: this.status }) } as StatefulSet; }

  pods(): Pod[] {
    return this.members.map(({ ordinal, revision, state, uid }): Pod => ({
      apiVersion: "v1", kind: "Pod",
      metadata: { name: `db-${ordinal}`, namespace: "d", uid, resourceVersion: "1", creationTimestamp: "", labels: { "controller-revision-hash": revision, "statefulset.kubernetes.io/pod-name": `db-${ordinal}` }, ...(state === "deleting" ? { deletionTimestamp: "x" } : {}) },
      spec: { containers: [] }, status: { phase: state === "failed" ? "Failed" : state === "pending" ? "Pending" : "Running", conditions: [{ type: "Ready", status: state === "ready" ? "True" : "False", lastTransitionTime: "2026-01-01T00:00:00Z" }] },
    }));
  }

  step(label: string): number {
    const revision = (name: string): Revision => ({ name, template: { spec: { containers: [] } } });
    const steps = planSteps({ set: this.set, current: revision(this.current), update: revision(this.update), pods: this.pods(), nowMs: NOW }).filter(({ do: what }) => what === "create" || what === "delete");
    const ordered = this.spec.podManagementPolicy !== "Parallel";
    if (ordered) expect(steps.length, `${label}: one at a time`).toBeLessThanOrEqual(1);
    for (const one of steps) {
      if (one.do === "create") {
        expect(this.members.some(({ ordinal }) => ordinal === one.ordinal), `${label}: db-${one.ordinal} twice`).toBe(false);
        if (ordered) for (let before = 0; before < one.ordinal; before++) expect(this.members.find(({ ordinal }) => ordinal === before)?.state, `${label}: db-${one.ordinal} before db-${before} is ready`).toBe("ready");
        const made = revisionOf(one.pod as Pod);
        const partition = this.spec.updateStrategy?.rollingUpdate?.partition ?? 0;
        if (one.ordinal >= partition) expect(made, `${label}: db-${one.ordinal}`).toBe(this.update);
        else expect(made, `${label}: db-${one.ordinal} is below the partition`).toBe(this.current);
        this.members.push({ ordinal: one.ordinal, revision: made, state: "pending", uid: `u${this.#uids++}` });
      } else if (one.do === "delete") {
        const member = this.members.find(({ ordinal }) => ordinal === ordinalOf(one.pod))!;
        const replicas = this.spec.replicas ?? 1;
        const outdated = member.revision !== this.update;
        if (member.state !== "failed" && member.ordinal < replicas) {
          expect(outdated && member.ordinal >= (this.spec.updateStrategy?.rollingUpdate?.partition ?? 0), `${label}: db-${member.ordinal} is deleted for nothing`).toBe(true);
          for (const other of this.members) if (other.ordinal > member.ordinal && other.ordinal < replicas) expect(other.state, `${label}: db-${member.ordinal} before db-${other.ordinal} is ready`).toBe("ready");
        }
        if (ordered && member.ordinal >= replicas) expect(Math.max(...this.members.map(({ ordinal }) => ordinal)), `${label}: not the last`).toBe(member.ordinal);
        member.state = "deleting";
      }
    }
    this.status = statefulStatus({ set: this.set, current: revision(this.current), update: revision(this.update), pods: this.pods(), nowMs: NOW }, 0);
    this.current = this.status.currentRevision ?? this.current;
    return steps.length;
  }

  /** What kubelets do. */
  live(random: SeededRandom, failing: number): void {
    this.members = this.members.filter(({ state }) => state !== "deleting" || random.chance(0.5));
    for (const member of this.members) {
      if (member.state === "pending" && random.chance(0.7)) member.state = "ready";
      else if (member.state === "ready" && random.chance(failing)) member.state = "failed";
    }
  }
}

test("one after the other, from the top, and not below the partition; whatever fails in between", () => {
  for (let seed = 1; seed <= 100; seed++) {
    const random = seededRandom(seed);
    const world = new World({
      serviceName: "db", selector: {}, template: {}, replicas: random.integer(0, 6), ...(random.chance(0.3) ? { podManagementPolicy: "Parallel" as const } : {}),
      updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: random.chance(0.7) ? 0 : random.integer(1, 4) } },
    });
    for (let step = 0; step < 120; step++) {
      const label = `seed ${seed}, step ${step}`;
      if (random.chance(0.05)) world.spec = { ...world.spec, replicas: random.integer(0, 6) };
      if (random.chance(0.03) && world.current === world.update) world.revisions = [...world.revisions, `v${world.revisions.length + 1}`];
      world.step(label);
      world.live(random, 0.02);
    }
    world.spec = { ...world.spec, updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 0 } } };
    let quiet = 0;
    for (let step = 0; step < 400 && quiet < 5; step++) {
      quiet = world.step(`seed ${seed}, at last`) === 0 && world.members.every(({ state }) => state === "ready") ? quiet + 1 : 0;
      world.live(random, 0);
      // As upstream, a set waits for ever while several that are too many have failed: somebody has to delete them.
      for (const member of world.members) if (member.state === "failed" && member.ordinal >= world.spec.replicas!) member.state = "deleting";
    }
    expect(world.members.toSorted((a, b) => a.ordinal - b.ordinal).map(({ ordinal, revision, state }) => `${ordinal} ${revision} ${state}`), `seed ${seed}`)
      .toEqual(Array.from({ length: world.spec.replicas! }, (_, i) => `${i} ${world.update} ready`));
    expect(world.status, `seed ${seed}`).toMatchObject({ replicas: world.spec.replicas, readyReplicas: world.spec.replicas, updatedReplicas: world.spec.replicas, currentRevision: world.update });
  }
});
