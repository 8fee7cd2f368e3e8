import { expect, test } from "vitest";
import type { Deployment, ReplicaSet } from "../../api/gen/apps.v1.ts";
import { mulberry32 } from "../../../test/mulberry32.ts";
import { currentSize, fenceposts, planCleanup, planRolling, planScale, replicasOf, splitSets } from "./plan.ts";
import { currentAnnotations, REVISION, REVISION_HISTORY } from "./revision.ts";

let age = 0;
function set(name: string, { replicas, available = replicas, desired, max, revision, image = name }: { replicas: number; available?: number; desired?: number; max?: number; revision?: number; image?: string }): ReplicaSet {
  const annotations: Record<string, string> = {};
  if (desired !== undefined) annotations["deployment.kubernetes.io/desired-replicas"] = String(desired);
  if (max !== undefined) annotations["deployment.kubernetes.io/max-replicas"] = String(max);
  if (revision !== undefined) annotations[REVISION] = String(revision);
  return {
    apiVersion: "apps/v1", kind: "ReplicaSet",
    metadata: { name, namespace: "default", uid: name, resourceVersion: "1", generation: 1, creationTimestamp: new Date(1e12 + age++ * 1000).toISOString(), annotations },
    spec: { replicas, template: { metadata: { labels: { app: "web", "pod-template-hash": name } }, spec: { containers: [{ name: "c", image }] } } },
    status: { replicas, readyReplicas: available, availableReplicas: available, observedGeneration: 1 },
  };
}

function deployment(replicas: number, { surge, unavailable, recreate = false, image = "new", history }: { surge?: number | string; unavailable?: number | string; recreate?: boolean; image?: string; history?: number } = {}): Deployment {
  return {
    apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "web", namespace: "default", uid: "d", resourceVersion: "1", creationTimestamp: "", generation: 1 },
    spec: {
      replicas, template: { metadata: { labels: { app: "web" } }, spec: { containers: [{ name: "c", image }] } },
      strategy: recreate ? { type: "Recreate" } : { type: "RollingUpdate", rollingUpdate: { maxSurge: surge ?? "25%", maxUnavailable: unavailable ?? "25%" } },
      ...(history === undefined ? {} : { revisionHistoryLimit: history }),
    },
  };
}

const sizes = (resize: readonly { set: Readonly<ReplicaSet>; to: number }[]) => Object.fromEntries(resize.map(({ set, to }) => [set.metadata.name, to]));

test.each([
  [10, "25%", "25%", 3, 2], [1, "25%", "25%", 1, 0], [3, 0, "10%", 0, 1], [0, "50%", "50%", 0, 0], [4, 2, 9, 2, 4],
])("%i replicas, surge %s, unavailable %s", (replicas, surge, unavailable, maxSurge, maxUnavailable) => {
  expect(fenceposts(deployment(replicas, { surge, unavailable }))).toEqual({ maxSurge, maxUnavailable });
});

test("the set of the template is found whatever its hash label, the oldest of several", () => {
  const [first, second, other] = [set("a", { replicas: 1, image: "new" }), set("b", { replicas: 1, image: "new" }), set("c", { replicas: 1 })];
  expect(splitSets(deployment(1), [other, second, first])).toEqual({ current: first, old: [second, other] });
});

test.each([
  { name: "one active set takes it all", of: 10, old: [set("old", { replicas: 4, desired: 4, max: 5 })], current: set("new", { replicas: 0 }), to: { old: 10 } },
  { name: "growing in proportion, the rest to the largest", of: 15, old: [set("old", { replicas: 8, desired: 10, max: 13 })], current: set("new", { replicas: 5, desired: 10, max: 13 }), to: { old: 12, new: 7 } },
  { name: "shrinking in proportion", of: 5, old: [set("old", { replicas: 8, desired: 10, max: 13 })], current: set("new", { replicas: 5, desired: 10, max: 13 }), to: { old: 4, new: 3 } },
  { name: "to nothing", of: 0, old: [set("old", { replicas: 8, desired: 10, max: 13 })], current: set("new", { replicas: 5, desired: 10, max: 13 }), to: { old: 0, new: 0 } },
  { name: "the new set is there: old ones go", of: 3, old: [set("old", { replicas: 1 })], current: set("new", { replicas: 3, desired: 3 }), to: { old: 0 } },
])("scaling: $name", ({ of, old, current, to }) => {
  expect(sizes(planScale(deployment(of), current, old).resize)).toEqual(to);
});

test("old sets beyond the history limit go, oldest revision first, if they are empty", () => {
  const old = [set("r3", { replicas: 0, revision: 3 }), set("r1", { replicas: 0, revision: 1 }), set("r2", { replicas: 1, revision: 2 }), set("r4", { replicas: 0, revision: 4 })];
  expect(planCleanup(deployment(1, { history: 1 }), old).map(({ metadata }) => metadata.name)).toEqual(["r1", "r3"]);
  expect(planCleanup(deployment(1), old)).toEqual([]);
});

test("a set that comes back gets a new revision and remembers the old one; annotations are handed down", () => {
  const annotated = { ...deployment(1), metadata: { ...deployment(1).metadata, annotations: { team: "x", [REVISION]: "9", "kubectl.kubernetes.io/last-applied-configuration": "{}" } } };
  expect(currentAnnotations(annotated, { [REVISION]: "2", [REVISION_HISTORY]: "1" }, 5n)).toEqual({ team: "x", [REVISION]: "5", [REVISION_HISTORY]: "1,2" });
  expect(currentAnnotations(annotated, {}, 1n)).toEqual({ team: "x", [REVISION]: "1" });
  expect(currentAnnotations(annotated, { [REVISION]: "7" }, 5n)).toEqual({ team: "x", [REVISION]: "7" });
  expect(currentAnnotations(annotated, { [REVISION]: "3546343826724305832" }, 3546343826724305833n)[REVISION]).toBe("3546343826724305833");
});

test("every rollout stays within its limits and comes to an end, however pods come and go", () => {
  for (let seed = 1; seed <= 300; seed++) {
    const random = mulberry32(seed);
    const pick = (n: number): number => Math.floor(random() * n);
    const desired = pick(12);
    const web = deployment(desired, { surge: pick(2) ? pick(4) : `${pick(100)}%`, unavailable: pick(2) ? pick(4) : `${pick(100)}%` });
    const { maxSurge, maxUnavailable } = fenceposts(web);
    let old = Array.from({ length: 1 + pick(3) }, (_, i) => set(`old${i}`, { replicas: 0 }));
    for (let i = 0; i < desired; i++) { const one = old[pick(old.length)]!; one.spec.replicas = (one.spec.replicas ?? 0) + 1; }
    for (const one of old) one.status = { ...one.status!, replicas: one.spec.replicas!, availableReplicas: one.spec.replicas! };
    let current = set("new", { replicas: currentSize(web, old, undefined), available: 0 });
    const availableAll = () => [...old, current].reduce((n, { status }) => n + (status?.availableReplicas ?? 0), 0);
    for (let step = 0; ; step++) {
      expect(step, `seed ${seed}`).toBeLessThan(500);
      if (replicasOf(current) === desired && current.status?.availableReplicas === desired && old.every((one) => replicasOf(one) === 0)) break;
      const before = availableAll();
      const resize = planRolling(web, current, old);
      const apply = (one: ReplicaSet): ReplicaSet => {
        const to = resize.find((r) => r.set === one)?.to ?? replicasOf(one);
        expect(to).toBeGreaterThanOrEqual(0);
        return { ...one, spec: { ...one.spec, replicas: to }, status: { ...one.status!, replicas: to, availableReplicas: Math.min(to, one.status?.availableReplicas ?? 0) } };
      };
      [old, current] = [old.map(apply), apply(current)];
      expect([...old, current].reduce((n, one) => n + replicasOf(one), 0), `seed ${seed}: too many`).toBeLessThanOrEqual(desired + maxSurge);
      if (before >= desired - maxUnavailable) expect(availableAll(), `seed ${seed}: too few`).toBeGreaterThanOrEqual(desired - maxUnavailable);
      if (random() < 0.7) current = { ...current, status: { ...current.status!, availableReplicas: Math.min(replicasOf(current), (current.status?.availableReplicas ?? 0) + 1 + pick(2)) } };
    }
  }
});

test("a set that has been told to shrink does not count what it is about to lose", () => {
  const late = set("late", { replicas: 9, available: 10 }); // its status is of before
  const web = { ...late, kind: "Deployment", metadata: { ...late.metadata, name: "web" }, spec: { replicas: 13, selector: {}, template: set("next", { replicas: 5 }).spec.template, strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 1, maxUnavailable: 3 } } } } as unknown as Deployment;
  expect(planRolling(web, set("next", { replicas: 5, available: 3 }), [late]).map(({ set: { metadata }, to }) => `${metadata.name} ${to}`)).toEqual(["late 7"]);
});

test("of old pods those that serve nobody go first, and cost nothing", () => {
  const resize = planRolling(deployment(4, { surge: 1, unavailable: 0 }), set("new", { replicas: 1, available: 0 }), [set("broken", { replicas: 2, available: 0 }), set("serving", { replicas: 4, available: 4 })]);
  expect(sizes(resize)).toEqual({ broken: 0 });
});
