import { expect, test } from "vitest";
import { created, type Given, updated } from "../../../test/rehearse.ts";
import type { Resource } from "../generic/resource.ts";
import { keepFieldsOf } from "../generic/switched-on.ts";
import { csiDrivers } from "./csi-driver.ts";
import { csiNodes } from "./csi-node.ts";
import { csiStorageCapacities } from "./csi-storage-capacity.ts";
import { storageClasses, volumeAttributesClasses } from "./storage-class.ts";
import { volumeAttachments } from "./volume-attachment.ts";

test("what the API fills in", () => {
  expect(created(storageClasses, { provisioner: "x.io/y", volumeBindingMode: "" }).errors).toEqual(['volumeBindingMode: Unsupported value: "": supported values: "Immediate", "WaitForFirstConsumer"']);
  expect(created(storageClasses, { provisioner: "x.io/y" }).object).toMatchObject({ reclaimPolicy: "Delete", volumeBindingMode: "Immediate" });
  expect(created(csiDrivers, {}).object.spec).toEqual({
    attachRequired: true, podInfoOnMount: false, storageCapacity: false, fsGroupPolicy: "ReadWriteOnceWithFSType", volumeLifecycleModes: ["Persistent"], requiresRepublish: false, seLinuxMount: false,
  });
});

const csi = { csi: { driver: "d", volumeHandle: "h" }, accessModes: ["ReadWriteOnce"] };
test.each<[Resource<never>, Given, string[]]>([
  [storageClasses as never, { reclaimPolicy: "Recycle" }, ["provisioner: Required value", 'reclaimPolicy: Unsupported value: "Recycle": supported values: "Delete", "Retain"']],
  [storageClasses as never, { provisioner: "p", allowedTopologies: [{ matchLabelExpressions: [{ key: "a", values: ["1", "1"] }] }] }, ['allowedTopologies[0].matchLabelExpressions[0].values[1]: Duplicate value: "1"']],
  [volumeAttributesClasses as never, { driverName: "d" }, ["parameters: Required value: must contain at least one key/value pair"]],
  [volumeAttachments as never, { spec: { attacher: "a", nodeName: "n", source: {} } }, ["spec.source: Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName"]],
  [volumeAttachments as never, { spec: { attacher: "a", nodeName: "n", source: { inlineVolumeSpec: csi } } }, []],
  [volumeAttachments as never, { spec: { attacher: "a", nodeName: "n", source: { inlineVolumeSpec: { ...csi, capacity: { storage: "1" } } } } }, ["spec.source.inlineVolumeSpec.capacity: Forbidden: may not be specified in the context of inline volumes"]],
  [csiDrivers as never, { spec: { tokenRequests: [{ audience: "a", expirationSeconds: 1 }, { audience: "a" }] } }, [
    "spec.tokenRequests[0].expirationSeconds: Invalid value: 1: may not specify a duration less than 10 minutes", 'spec.tokenRequests[1].audience: Duplicate value: "a"',
  ]],
  [csiNodes as never, { spec: { drivers: [{ name: "d", nodeID: "" }] } }, ["spec.drivers[0].nodeID: Required value"]],
  [csiStorageCapacities as never, { storageClassName: "s", capacity: "-1" }, ['capacity: Invalid value: "-1": must be greater than or equal to 0']],
])("create %#", (kind, given, errors) => expect(created(kind, given).errors).toEqual(errors));

test("what stays as it was made", () => {
  const { object } = created(storageClasses, { provisioner: "p" });
  expect(updated(storageClasses, object, { volumeBindingMode: "WaitForFirstConsumer" }).errors).toEqual(['volumeBindingMode: Invalid value: "WaitForFirstConsumer": field is immutable']);
  const withParameters = created(storageClasses, { provisioner: "p", parameters: { a: "b" } }).object;
  expect(updated(storageClasses, withParameters, { parameters: undefined }).errors).toEqual(["parameters: Invalid value: null: field is immutable"]);
  const node = created(csiNodes, { spec: { drivers: [{ name: "d", nodeID: "1", allocatable: { count: 1 } }] } }).object;
  expect(updated(csiNodes, node, { spec: { drivers: [{ name: "d", nodeID: "1", allocatable: { count: 2 } }] } }).errors).toEqual([]);
  expect(updated(csiNodes, node, { spec: { drivers: [{ name: "d", nodeID: "2" }] } }).errors).toHaveLength(1);
});

test("of a class of attributes that nothing changes is told before what is wrong with it", () => {
  const { object } = created(volumeAttributesClasses, { driverName: "a.b", parameters: { a: "b" } });
  expect(updated(volumeAttributesClasses, object, { driverName: "a.b", parameters: {} }).errors).toEqual(["parameters: Forbidden: updates to parameters are forbidden.", "parameters: Required value: must contain at least one key/value pair"]);
});

test("a volume stays with its node and driver", () => {
  const { object } = created(volumeAttachments, { spec: { attacher: "a", nodeName: "n", source: { persistentVolumeName: "p" } } });
  expect(updated(volumeAttachments, object, { spec: { ...object.spec, nodeName: "m" } }).errors).toEqual(['spec: Invalid value: {"Attacher":"a","Source":{"PersistentVolumeName":"p","InlineVolumeSpec":null},"NodeName":"m"}: field is immutable']);
});

test("a topology is told to be another's again as often as upstream finds it", () => {
  const allowedTopologies = ["a", "a", "a"].map((value) => ({ matchLabelExpressions: [{ key: "zone", values: [value] }] }));
  const fields = (given: Given): string[] => [...storageClasses.validate!(created(storageClasses, { provisioner: "p", ...given }).object)].map(({ field }) => field);
  expect(fields({ allowedTopologies })).toEqual([1, 2, 2].map((i) => `allowedTopologies[${i}].matchLabelExpressions`));
  const term = (...values: string[][]): Given => ({ matchLabelExpressions: values.map((list) => ({ key: "zone", values: list })) });
  expect(fields({ allowedTopologies: [term(["a", "a"]), term(["b"], ["a"])] })).toEqual(["allowedTopologies[0].matchLabelExpressions[0].values[1]", "allowedTopologies[1].matchLabelExpressions[1].key", "allowedTopologies[1].matchLabelExpressions"]);
  expect(fields({ allowedTopologies: [{}, {}] })).toEqual([0, 0, 1, 1, 1].map((i) => `allowedTopologies[${i}].matchLabelExpressions`));
});

test("that pods wait for a driver is kept where its gate is on, or where it was before", () => {
  const said = (preventPodSchedulingIfMissing?: boolean) => ({ spec: { ...(preventPodSchedulingIfMissing === undefined ? {} : { preventPodSchedulingIfMissing }) } });
  const kept = ({ object }: { readonly object: { readonly spec: { readonly preventPodSchedulingIfMissing?: boolean | undefined } } }) => object.spec.preventPodSchedulingIfMissing;
  const without = created(csiDrivers, said(true)).object;
  expect(kept({ object: without })).toBeUndefined();
  keepFieldsOf(new Set(["VolumeLimitScaling"]));
  const withIt = created(csiDrivers, said(true)).object;
  const seen = [kept({ object: withIt }), kept(created(csiDrivers, said())), kept(updated(csiDrivers, without, { spec: { ...without.spec, preventPodSchedulingIfMissing: true } }))];
  keepFieldsOf(new Set());
  expect([...seen, kept(updated(csiDrivers, withIt, { spec: { ...withIt.spec, preventPodSchedulingIfMissing: false } })), kept(updated(csiDrivers, without, { spec: { ...without.spec, preventPodSchedulingIfMissing: true } }))]).toEqual([true, false, true, false, undefined]);
});
