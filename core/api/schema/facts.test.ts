import { expect, test } from "vitest";
import { builtInFacts, type StructType } from "./facts.ts";

const POD = { group: "", version: "v1", kind: "Pod" };

function struct(name: string): StructType { return builtInFacts.structNamed(`io.k8s.api.core.v1.${name}`)!; }

test("kinds, their lists and the meta kinds of every group version are found; what is not registered is not", () => {
  const names = [
    POD, { ...POD, kind: "PodList" }, { group: "apps", version: "v1", kind: "DeleteOptions" }, { group: "", version: "v1", kind: "Status" },
    { group: "meta.k8s.io", version: "v1", kind: "Table" }, { group: "apiregistration.k8s.io", version: "v1", kind: "APIService" },
    { group: "apps", version: "v1", kind: "Status" }, { group: "apps", version: "v1", kind: "Pod" }, { group: "apps", version: "v1beta1", kind: "Deployment" },
  ].map((gvk) => builtInFacts.typeOf(gvk)?.name.split(".").slice(-2).join("."));
  expect(names).toEqual(["v1.Pod", "v1.PodList", "v1.DeleteOptions", "v1.Status", "v1.Table", "v1.APIService", undefined, undefined, undefined]);
});

test("every type of every kind can be read, and refers only to types that exist", () => {
  const seen = new Set<unknown>();
  const wanted = builtInFacts.typeNames().flatMap((name) => builtInFacts.typeNamed(name) ?? []);
  for (const type of wanted) {
    if (type.kind !== "struct" || seen.has(type)) continue;
    seen.add(type);
    expect(type.fields.length, type.name).toBeGreaterThanOrEqual(0);
  }
  expect(seen.size).toBeGreaterThan(900);
});

test("inlined structs are flat in JSON and one member in protobuf", () => {
  const volume = struct("Volume");
  expect(volume.members.map(({ name, inline, protobuf }) => [name, inline, protobuf])).toEqual([["name", false, 1], ["", true, 2]]);
  expect(volume.field("emptyDir")?.protobuf).toBe(2);
  expect(volume.fields.length).toBeGreaterThan(25);
});

test("a field says how it is merged, applied, defaulted and written", () => {
  const containers = struct("PodSpec").field("containers")!;
  expect(containers).toMatchObject({ listType: "map", listMapKeys: ["name"], patchStrategy: ["merge"], patchMergeKey: "name", optional: false, omitEmpty: false });
  const ports = struct("Container").field("ports")!;
  expect([ports.listMapKeys, ports.patchMergeKey]).toEqual([["containerPort", "protocol"], "containerPort"]);
  expect(struct("PodSpec").field("volumes")!.patchStrategy).toEqual(["merge", "retainKeys"]);
  expect(struct("ContainerPort").field("protocol")!.default).toBe("TCP");
  expect(struct("AzureDiskVolumeSource").field("kind")!.default).toBe("Shared");
  expect(struct("ContainerPort").field("protocol")!.type).toMatchObject({ kind: "scalar", named: { goName: "Protocol", enum: ["SCTP", "TCP", "UDP"] } });
  expect(builtInFacts.structNamed("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")!.field("creationTimestamp")).toMatchObject({ optional: true, omitZero: true });
  // corrections: written though empty, required though left out when empty
  expect(builtInFacts.structNamed("io.k8s.api.rbac.v1.Role")!.field("rules")).toMatchObject({ omitEmpty: false });
  expect(builtInFacts.structNamed("io.k8s.api.batch.v1.CronJob")!.field("spec")).toMatchObject({ optional: false, omitEmpty: true });
});
