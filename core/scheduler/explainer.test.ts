import { expect, test } from "vitest";
import { first, node, pod, schedulingCluster, stored } from "../../test/scheduling-cluster.ts";
import { staticInformer } from "../../test/static-informer.ts";
import { devicePlan } from "./devices/dynamic-resources.ts";
import { type DevicePlan, thoughtThrough } from "./devices/plan.ts";
import { SchedulingExplainer } from "./explainer.ts";
import { placedPod } from "./node-info.ts";
import { place } from "./place.ts";
import { DEFAULT_PROFILE } from "./plugins.ts";
import { GroupTrials } from "./pod-group-trials.ts";

const names = Array.from({ length: 20 }, (_, i) => `n${i}`);
const using = pod("p", { resourceClaims: [{ name: "gpu", resourceClaimName: "c" }] });
const three = stored("resource.k8s.io/v1", "ResourceClaim", "default/c", { spec: { devices: { requests: ["a", "b", "c"].map((name) => ({ name, exactly: { deviceClassName: "gpu" } })) } } });
const slices = names.map((name) => stored("resource.k8s.io/v1", "ResourceSlice", name, { spec: { driver: "d", nodeName: name, pool: { name, generation: 1, resourceSliceCount: 1 }, devices: [{ name: "x" }, { name: "y" }] } }));

/** Each look at the clock finds it a millisecond later. */
function slowly(): { readonly cluster: ReturnType<typeof schedulingCluster>; readonly clock: { nowMs(): number; uptimeMs(): number } } {
  let uptimeMs = 0;
  const clock = { nowMs: () => 0, uptimeMs: () => uptimeMs++ };
  return { clock, cluster: { ...schedulingCluster({ nodes: names.map((name) => node(name)), objects: [stored("resource.k8s.io/v1", "DeviceClass", "gpu", { spec: {} }), three, ...slices] }), clocks: clock } };
}

test("while it is explained which devices a pod could have others have their turn, and who asks no more ends it", async () => {
  const { cluster, clock } = slowly();
  const informers = { of: ({ plural }: { plural: string }) => (plural === "pods" ? staticInformer(using) : staticInformer()) };
  const explainer = new SchedulingExplainer({ informers: informers as never, profiles: [DEFAULT_PROFILE], clock: clock as never });
  explainer.attach({ snapshot: cluster.snapshot, cluster, standing: () => undefined, groups: undefined });
  let turns = 0, isOver = false;
  const turn = (): void => { turns++; if (!isOver) setImmediate(turn); };
  setImmediate(turn);
  const explained = await explainer.explain("default", "p", new AbortController().signal);
  isOver = true;
  expect(turns).toBeGreaterThan(2);
  expect(explained).toMatchObject({ state: "Unschedulable", message: "0/20 nodes are available: 20 cannot allocate all claims." });
  await expect(explainer.explain("default", "p", AbortSignal.abort(new Error("gone")))).rejects.toThrow("gone");
});

test("a search is begun again until all is known of the devices, and then told", async () => {
  const { cluster } = slowly();
  const candidate = placedPod(using);
  let begun = 0, pauses = 0;
  const found = await thoughtThrough(devicePlan(candidate, cluster) as DevicePlan, () => {
    begun++;
    return place(candidate, cluster, DEFAULT_PROFILE, { random: first, start: { next: 0 } });
  }, () => void pauses++);
  expect(found).toMatchObject({ type: "none", message: "0/20 nodes are available: 20 cannot allocate all claims." });
  expect(begun).toBeGreaterThan(1);
  expect(begun).toBeLessThan(names.length);
  expect(pauses).toBeGreaterThanOrEqual(begun - 1);
});

test("so it is for a pod of a group", async () => {
  const { cluster, clock } = slowly();
  const tried = { attempt: { key: "default/p" }, candidate: placedPod(using), profile: { ...DEFAULT_PROFILE, placements: undefined }, startMs: 0, signal: new AbortController().signal };
  let begun = 0;
  const trials = new GroupTrials({
    parts: { extenders: [], cluster, deps: { clock } }, rooms: undefined, binder: undefined, groups: undefined,
    place: () => {
      begun++;
      return place(tried.candidate, cluster, DEFAULT_PROFILE, { random: first, start: { next: 0 } });
    },
  } as never);
  const { found } = await trials.run("default/g" as never, [tried as never], { within: undefined, findsRoom: false });
  expect(found).toMatchObject([{ finding: { type: "rejected" }, failure: { message: "0/20 nodes are available: 20 cannot allocate all claims." } }]);
  expect(begun).toBeGreaterThan(1);
});
