import { expect, test } from "vitest";
import { eventually } from "../../../test/fake-api.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import type { Volume } from "../../api/gen/core.v1.ts";
import { PERSISTENT_VOLUME_CLAIMS, POD_GROUPS, PODS } from "../../client/resources.ts";
import { claimProtectionController, podGroupProtectionController } from "./protection.ts";

test("a claim stays as long as a pod with a node names it, though it has ended; one of the pod's own until the pod has shut down", () =>
  withControllers((deps) => [claimProtectionController(deps)], async (api, call) => {
    const [pods, claims] = [api.client.resource(PODS), api.client.resource(PERSISTENT_VOLUME_CLAIMS)];
    const of = (claimName: string): Volume => ({ name: "v", persistentVolumeClaim: { claimName } });
    const make = (name: string, volumes: Volume[], nodeName = "n", finalizers: string[] = []) => pods.create({ apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "ns", finalizers }, spec: { nodeName, containers: [], volumes }, status: { phase: "Succeeded" } } as never, call);
    const ended = await make("ended", [of("held")]);
    await make("unplaced", [of("free")], "");
    const own = await make("own", [{ name: "v", ephemeral: { volumeClaimTemplate: { spec: {} } } }], "n", ["example.com/hold"]);
    await make("other", [{ name: "v", ephemeral: { volumeClaimTemplate: { spec: {} } } }]);
    for (const name of ["held", "free", "own-v", "other-v"]) {
      const ownerReferences = name === "own-v" ? [{ apiVersion: "v1", kind: "Pod", name: "own", uid: own.metadata.uid, controller: true }] : [];
      const made = await claims.create({ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name, namespace: "ns", ownerReferences, finalizers: ["kubernetes.io/pvc-protection"] }, spec: {} }, call);
      await claims.delete(made, {}, call);
    }
    const left = () => api.all(PERSISTENT_VOLUME_CLAIMS).map(({ metadata }) => metadata.name).toSorted().join();
    await eventually(left, (names) => names === "held,own-v");
    await pods.delete(own, { gracePeriodSeconds: 0 }, call);
    await eventually(left, (names) => names === "held");
    await Bun.sleep(20);
    expect(left()).toBe("held");
    await pods.delete(ended, { gracePeriodSeconds: 0 }, call);
    await eventually(left, (names) => names === "");
  }));

test("a claim stays whose pod is not in our copy yet", () =>
  withControllers((deps) => {
    const informers: typeof deps.informers = { ...deps.informers, of: (ref) => ((ref as unknown) === PODS ? { ...deps.informers.of(ref), by: () => [] } : deps.informers.of(ref)) };
    return [claimProtectionController({ ...deps, informers })];
  }, async (api, call) => {
    const claims = api.client.resource(PERSISTENT_VOLUME_CLAIMS);
    await api.client.resource(PODS).create({ apiVersion: "v1", kind: "Pod", metadata: { name: "p", namespace: "ns" }, spec: { nodeName: "n", containers: [], volumes: [{ name: "v", persistentVolumeClaim: { claimName: "held" } }] } }, call);
    for (const name of ["held", "free"]) await claims.delete(await claims.create({ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name, namespace: "ns", finalizers: ["kubernetes.io/pvc-protection"] }, spec: {} }, call), {}, call);
    await eventually(() => api.all(PERSISTENT_VOLUME_CLAIMS).map(({ metadata }) => metadata.name).join(), (left) => left === "held");
    await Bun.sleep(20);
    expect(api.all(PERSISTENT_VOLUME_CLAIMS)).toHaveLength(1);
  }));

test("a group of pods stays as long as one of them has not ended, and is let go then", () =>
  withControllers((deps) => [podGroupProtectionController(deps)], async (api, call) => {
    const [pods, groups] = [api.client.resource(PODS), api.client.resource(POD_GROUPS)];
    const pod = (name: string, podGroupName: string, namespace = "ns") => pods.create({ apiVersion: "v1", kind: "Pod", metadata: { name, namespace }, spec: { containers: [], schedulingGroup: { podGroupName } }, status: { phase: "Running" } } as never, call);
    const group = (name: string, finalizers = ["scheduling.k8s.io/podgroup-protection"]) => groups.create({ apiVersion: "scheduling.k8s.io/v1alpha2", kind: "PodGroup", metadata: { name, namespace: "ns", finalizers }, spec: { schedulingPolicy: { basic: {} } } }, call);
    const [ends, goes] = [await pod("ends", "one"), await pod("goes", "one")];
    await pod("elsewhere", "free", "other");
    await group("bare", []);
    await group("kept");
    for (const name of ["one", "free"]) await groups.delete(await group(name), {}, call);
    const left = () => api.all(POD_GROUPS).map(({ metadata: { name, finalizers = [] } }) => `${name} ${finalizers.length}`).toSorted().join();
    await eventually(left, (names) => names === "bare 0,kept 1,one 1");
    await pods.updateStatus({ ...ends, status: { phase: "Succeeded" } } as never, call);
    await Bun.sleep(20);
    expect(left()).toBe("bare 0,kept 1,one 1");
    await pods.delete(goes, { gracePeriodSeconds: 0 }, call);
    await eventually(left, (names) => names === "bare 0,kept 1");
  }));

test("since when nobody wants a claim is told where its gate is on", async () => {
  for (const gates of [new Set<string>(), new Set(["PersistentVolumeClaimUnusedSinceTime"])])
    await withControllers((deps) => [claimProtectionController({ ...deps, gates })], async (api, call) => {
      const pods = api.client.resource(PODS);
      await api.client.resource(PERSISTENT_VOLUME_CLAIMS).create({ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name: "c", namespace: "ns" }, spec: {}, status: { phase: "Bound", conditions: [{ type: "Resizing", status: "True" }] } } as never, call);
      const held = () => api.all(PERSISTENT_VOLUME_CLAIMS)[0]!;
      await eventually(() => held().metadata.finalizers, (finalizers) => finalizers?.join() === "kubernetes.io/pvc-protection");
      const said = () => { const one = held().status?.conditions?.find(({ type }) => type === "Unused"); return one && [one.status, one.reason, one.message]; };
      if (gates.size === 0) return expect(said()).toBeUndefined();
      const unused = ["True", "NoPodsUsingPVC", "No pods are currently referencing this PVC"], used = ["False", "PodUsingPVC", "A pod is currently referencing this PVC"];
      expect(await eventually(said, (seen) => seen !== undefined)).toEqual(unused);
      const pod = await pods.create({ apiVersion: "v1", kind: "Pod", metadata: { name: "p", namespace: "ns" }, spec: { containers: [], volumes: [{ name: "v", persistentVolumeClaim: { claimName: "c" } }] }, status: { phase: "Pending" } } as never, call); // it has no node yet
      expect(await eventually(said, (seen) => seen?.[0] === "False")).toEqual(used);
      const { resourceVersion } = held().metadata;
      await pods.updateStatus({ ...api.all(PODS)[0]!, status: { phase: "Running" } }, call);
      await Bun.sleep(20);
      expect(held().metadata.resourceVersion, "nothing to tell").toBe(resourceVersion);
      await pods.updateStatus({ ...api.all(PODS)[0]!, status: { phase: "Succeeded" } }, call);
      expect(await eventually(said, (seen) => seen?.[0] === "True")).toEqual(unused);
      await pods.delete(pod, { gracePeriodSeconds: 0 }, call);
      expect(held().status?.conditions?.map(({ type }) => type)).toEqual(["Resizing", "Unused"]);
    });
});
