import { expect, test } from "vitest";
import type { Node } from "../../../core/api/gen/core.v1.ts";
import type { CSINode } from "../../../core/api/gen/storage.v1.ts";
import type { NewObject } from "../../../core/api/meta/object-meta.ts";
import { CSI_NODES, NODES } from "../../../core/client/resources.ts";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import { silentLog } from "../../../core/observe/log.ts";
import { fakeApi } from "../../../test/fake-api.ts";
import { csiNodeWriter } from "./csi-node.ts";
import { csiDrivers } from "./drivers.ts";

const signal = new AbortController().signal;
const clock = { ...systemClock, sleep: async () => undefined };
const driver = { name: "d.example", nodeId: "id", volumesMax: 2 ** 40, topology: { "t/zone": "a" } };

async function started({ labels = {} }: { readonly labels?: Readonly<Record<string, string>> } = {}) {
  const api = fakeApi();
  const node = await api.client.resource(NODES).create({ apiVersion: "v1", kind: "Node", metadata: { name: "n1", labels } } as NewObject<Node>, { signal });
  return { api, uid: node.metadata.uid, writer: csiNodeWriter({ client: api.client, clock, log: silentLog, nodeName: "n1" }) };
}

const csiNode = (uid: string, annotations: Readonly<Record<string, string>>): NewObject<CSINode> => ({ apiVersion: "storage.k8s.io/v1", kind: "CSINode", metadata: { name: "n1", annotations, ownerReferences: [{ apiVersion: "v1", kind: "Node", name: "n1", uid }] }, spec: { drivers: [{ name: "old.example", nodeID: "x" }] } });

test("a CSINode that a Node of the same name left behind is made anew", async () => {
  const { api, uid, writer } = await started();
  await api.client.resource(CSI_NODES).create(csiNode("gone", {}), { signal });
  await writer.add(driver, signal);
  expect(api.all(CSI_NODES)).toMatchObject([{ metadata: { ownerReferences: [{ uid }] }, spec: { drivers: [{ name: "d.example", allocatable: { count: 2 ** 31 - 1 } }] } }]);
});

test("one that does not say which volumes are drivers' by now says so", async () => {
  const { api, uid, writer } = await started();
  await api.client.resource(CSI_NODES).create(csiNode(uid, { mine: "x", "storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/cinder" }), { signal });
  await writer.add(driver, signal);
  const [{ metadata, spec } = {} as CSINode] = api.all(CSI_NODES);
  expect(metadata.annotations).toMatchObject({ "mine": "x", "storage.alpha.kubernetes.io/migrated-plugins": expect.stringMatching(/^kubernetes.io\/aws-ebs,.*vsphere-volume$/) as unknown });
  expect(spec.drivers.map(({ name }) => name)).toEqual(["old.example", "d.example"]);
});

test("where a node is already said to be stands: a driver that says otherwise is not taken", async () => {
  const { api, writer } = await started({ labels: { "t/zone": "b" } });
  await expect(writer.add(driver, signal)).rejects.toThrow('detected topology value collision: driver reported "t/zone":"a" but existing label is "t/zone":"b"');
  expect(api.all(NODES)[0]?.metadata.labels).toEqual({ "t/zone": "b" });
});

test("a driver that has no name for the node is told so at once", async () => {
  const waits: number[] = [];
  const { api: { client } } = await started();
  const writer = csiNodeWriter({ client, clock: { ...clock, sleep: async (ms) => void waits.push(ms) }, log: silentLog, nodeName: "n1" });
  await expect(writer.add({ ...driver, nodeId: "" }, signal)).rejects.toThrow("error adding CSI driver node info: driverNodeID must not be empty");
  expect(waits).toEqual([]);
});

test("a driver that speaks no version of CSI that we do is told so", async () => {
  const { writer } = await started();
  const { handler } = csiDrivers({ node: writer, clock, log: silentLog, metered: async (_, __, call) => await call(), onRegistered: () => undefined });
  const told = (...versions: string[]): string | undefined => { try { handler.validate({ name: "d.example", endpoint: "/d.sock", versions }); return undefined; } catch (error) { return (error as Error).message; } };
  expect([told("1.0.0"), told("0.3.0", "v1.5.0-rc1")]).toEqual([undefined, undefined]);
  expect(told()).toBe('validation failed for CSI Driver d.example at endpoint /d.sock: kubernetes.io/csi: ValidatePlugin for CSI driver "d.example" failed. Plugin returned an empty list for supported versions');
  expect(told("0.3.0", "2.0.0")).toContain('None of the versions specified ["0.3.0" "2.0.0"] are supported.');
});

test("the ids of drivers stand in order of their names", async () => {
  const { api, writer } = await started();
  for (const name of ["b.example", "a.example"]) await writer.add({ ...driver, name }, signal);
  expect(api.all(NODES)[0]?.metadata.annotations?.["csi.volume.kubernetes.io/nodeid"]).toBe('{"a.example":"id","b.example":"id"}');
});
