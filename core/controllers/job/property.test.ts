/** Jobs carried out step by step while writes are lost, pods are deleted behind their back and events come late: each success counts once, and it completes. */
import { expect, test } from "vitest";
import { seededRandom } from "../../../test/simulator/seeded.ts";
import type { Job, JobStatus } from "../../api/gen/batch.v1.ts";
import type { Pod } from "../../api/gen/core.v1.ts";
import { backoffLeftMs, failuresAfter, planPods, track } from "./plan.ts";
import { TRACKING_FINALIZER } from "./pods.ts";
import { viewOf } from "./view.ts";

interface Member { readonly uid: string; readonly index: number | undefined; phase: "Running" | "Succeeded" | "Failed"; tracked: boolean; deleting: boolean }

test("never more at once than may be, each success counted once whatever is lost in between, each index once", () => {
  for (let seed = 1; seed <= 150; seed++) {
    const random = seededRandom(seed);
    const indexed = random.chance(0.5);
    const completions = random.integer(1, 12);
    let parallelism = random.integer(1, 6);
    let status: JobStatus = {};
    let members: Member[] = [];
    let made = 0;
    const succeeded = new Set<string>(); // uids, or indexes
    let nowMs = Date.parse("2026-01-02T00:00:00Z");
    const job = (): Job => ({ apiVersion: "batch/v1", kind: "Job", metadata: { name: "work", namespace: "n", uid: "j", resourceVersion: "1", creationTimestamp: "" }, spec: { template: {}, completions, parallelism, backoffLimit: 1000, ...(indexed ? { completionMode: "Indexed" as const } : {}) }, status });
    const pods = (): Pod[] => members.map(({ uid, index, phase, tracked, deleting }): Pod => ({
      apiVersion: "v1", kind: "Pod",
      metadata: {
        name: uid, uid, resourceVersion: "1", creationTimestamp: "2026-01-01T00:00:00Z", ...(tracked ? { finalizers: [TRACKING_FINALIZER] } : {}), ...(deleting ? { deletionTimestamp: "2026-01-01T00:00:00Z" } : {}),
        ...(index === undefined ? {} : { annotations: { "batch.kubernetes.io/job-completion-index": String(index) } }),
      },
      spec: { containers: [] }, status: { phase },
    }));
    let step = 0;
    for (; step < 500 && !((status.succeeded ?? 0) >= completions && members.every(({ tracked, phase }) => !tracked && phase !== "Running") && Object.keys(status.uncountedTerminatedPods ?? {}).length === 0); step++) {
      const label = `seed ${seed}, step ${step}`;
      if (random.chance(0.1)) parallelism = random.integer(1, 6);
      const twice = members.find(({ phase, deleting }) => phase === "Running" && !deleting);
      if (twice !== undefined && random.chance(0.1)) members.push({ ...twice, uid: `p${made++}` }); // one that was made, though nobody was told so
      const view = viewOf(job(), pods());
      const failures = failuresAfter(undefined, view, nowMs);
      const plan = planPods(view, failures, nowMs + 3_600_000 * Number(backoffLeftMs(failures, nowMs) > 0));
      for (const pod of plan.remove) members.find(({ uid }) => uid === pod.metadata.uid)!.deleting = true;
      for (let i = 0; i < plan.create; i++) members.push({ uid: `p${made++}`, index: plan.indexes[i], phase: "Running", tracked: true, deleting: false });
      const active = members.filter(({ phase, deleting }) => phase === "Running" && !deleting);
      expect(active.length, `${label}: at once`).toBeLessThanOrEqual(parallelism);
      if (indexed) expect(new Set(active.map(({ index }) => index)).size, `${label}: an index twice`).toBe(active.length);

      // Name them, store that, take their finalizers: each may get lost.
      for (let rounds = random.integer(1, 2); rounds > 0; rounds--) {
        const tracking = track(viewOf(job(), pods()), status, undefined);
        if (random.chance(0.2)) break; // the status was not stored
        status = tracking.status;
        for (const pod of tracking.release) if (random.chance(0.8)) members.find(({ uid }) => uid === pod.metadata.uid)!.tracked = false;
      }
      expect(status.succeeded ?? 0, `${label}: counted`).toBeLessThanOrEqual(succeeded.size);

      members = members.filter(({ deleting, tracked, phase }) => !(deleting && !tracked && phase !== "Running")); // gone at last
      for (const member of members) {
        if (member.phase === "Running" && random.chance(0.5)) {
          member.phase = member.deleting || random.chance(0.2) ? "Failed" : "Succeeded";
          if (member.phase === "Succeeded") succeeded.add(indexed ? String(member.index) : member.uid);
        } else if (member.phase !== "Running" && random.chance(0.2)) member.deleting = true; // somebody tidies up
      }
      nowMs += 1000;
    }
    expect(step, `seed ${seed} does not end`).toBeLessThan(500);
    expect(status.succeeded, `seed ${seed}`).toBe(completions);
    expect(status.uncountedTerminatedPods ?? {}, `seed ${seed}`).toEqual({});
    if (indexed) expect(status.completedIndexes, `seed ${seed}`).toBe(completions === 1 ? "0" : completions === 2 ? "0,1" : `0-${completions - 1}`);
  }
});
