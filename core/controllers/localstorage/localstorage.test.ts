import { expect, test } from "vitest";
import { eventually } from "../../../test/fake-api.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import { EVENTS, NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES } from "../../client/resources.ts";
import { volumeBinder } from "../volume/volume.ts";
import { localStorageController } from "./localstorage.ts";
import { type NodeDirectories, nodeDirectories } from "./node-directories.ts";
import { directoryName } from "./plan.ts";

test("a claim gets a directory where its pod is, and the directory goes with the claim, once its node answers", () => {
  const disk = new Set<string>();
  let away = true;
  const directories: NodeDirectories = {
    async make(node, name) {
      if (away) throw new Error("error dialing backend");
      disk.add(`${node}:${name}`);
      return `/storage/${name}`;
    },
    async remove(node, name) {
      if (away) throw new Error("error dialing backend");
      disk.delete(`${node}:${name}`);
    },
  };
  return withControllers((deps) => [volumeBinder(deps), localStorageController({ ...deps, directories })], async (api, call) => {
    const claims = api.client.resource(PERSISTENT_VOLUME_CLAIMS);
    await api.client.resource(NODES).create({ apiVersion: "v1", kind: "Node", metadata: { name: "n", labels: { "kubernetes.io/hostname": "n-host" } }, spec: {} }, call);
    await api.client.resource(STORAGE_CLASSES).create({ apiVersion: "storage.k8s.io/v1", kind: "StorageClass", metadata: { name: "local-path" }, provisioner: "coracle.io/local-path", volumeBindingMode: "WaitForFirstConsumer", reclaimPolicy: "Delete" }, call);
    const make = (name: string, mode: "ReadWriteOnce" | "ReadWriteMany", node: string) => claims.create({
      apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name, namespace: "ns", annotations: { "volume.kubernetes.io/selected-node": node } },
      spec: { accessModes: [mode], storageClassName: "local-path", resources: { requests: { storage: "1Gi" } } },
    }, call);
    const { metadata: { uid } } = await make("data", "ReadWriteOnce", "n");
    await make("many", "ReadWriteMany", "n");
    await make("lost", "ReadWriteOnce", "gone");
    const messages = () => api.all(EVENTS).filter(({ reason }) => reason === "ProvisioningFailed").map(({ message }) => message);
    for (const why of ["error dialing backend", "Only support ReadWriteOnce access mode", `node "gone" not found`]) await eventually(messages, (all) => all.includes(`failed to provision volume with StorageClass "local-path": ${why}`));
    const claim = (name: string) => api.all(PERSISTENT_VOLUME_CLAIMS).find(({ metadata }) => metadata.name === name);
    await eventually(() => claim("lost")?.metadata.annotations, (annotations) => annotations?.["volume.kubernetes.io/selected-node"] === undefined);

    away = false;
    await eventually(() => claim("data")?.status?.phase, (phase) => phase === "Bound");
    expect([...disk]).toEqual([`n:pvc-${uid}_ns_data`]);
    expect(api.all(PERSISTENT_VOLUMES)).toMatchObject([{
      metadata: { name: `pvc-${uid}`, annotations: { "pv.kubernetes.io/provisioned-by": "coracle.io/local-path" } }, status: { phase: "Bound" },
      spec: { local: { path: `/storage/pvc-${uid}_ns_data` }, claimRef: { name: "data", uid }, capacity: { storage: "1Gi" }, nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [{ values: ["n-host"] }] }] } } },
    }]);

    away = true;
    await claims.delete({ metadata: { name: "data", namespace: "ns" } }, {}, call);
    await eventually(() => api.all(EVENTS).filter(({ reason }) => reason === "VolumeFailedDelete"), (all) => all.length > 0);
    expect(api.all(PERSISTENT_VOLUMES)[0]?.status?.phase).toBe("Released");
    await Bun.sleep(700); // by now the next try is far off
    away = false;
    const nodes = api.client.resource(NODES);
    const node = await nodes.get({ metadata: { name: "n" } }, call);
    await nodes.updateStatus({ ...node, status: { conditions: [{ type: "Ready", status: "True" }] } }, call);
    await eventually(() => api.all(PERSISTENT_VOLUMES), (all) => all.length === 0);
    expect(disk.size).toBe(0);
  });
});

test("a node that does not answer holds up its own volumes and nobody else's; one that is known to be silent is not asked until it is back", () => {
  const asked: string[] = [];
  const answers = Promise.withResolvers<void>();
  const directories: NodeDirectories = {
    async make(node, name) {
      asked.push(node);
      if (node === "quiet") await answers.promise;
      return `/storage/${name}`;
    },
    remove: async () => undefined,
  };
  return withControllers((deps) => [volumeBinder(deps), localStorageController({ ...deps, directories })], async (api, call) => {
    const nodes = api.client.resource(NODES);
    for (const name of ["quiet", "good"]) await nodes.create({ apiVersion: "v1", kind: "Node", metadata: { name }, spec: {} }, call);
    const silent = await nodes.create({ apiVersion: "v1", kind: "Node", metadata: { name: "silent" }, spec: {}, status: { conditions: [{ type: "Ready", status: "Unknown" }] } } as never, call);
    await api.client.resource(STORAGE_CLASSES).create({ apiVersion: "storage.k8s.io/v1", kind: "StorageClass", metadata: { name: "local-path" }, provisioner: "coracle.io/local-path", volumeBindingMode: "WaitForFirstConsumer" }, call);
    const make = (name: string, node: string) => api.client.resource(PERSISTENT_VOLUME_CLAIMS).create({
      apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name, namespace: "ns", annotations: { "volume.kubernetes.io/selected-node": node } },
      spec: { accessModes: ["ReadWriteOnce"], storageClassName: "local-path", resources: { requests: { storage: "1Gi" } } },
    }, call);
    for (let i = 0; i < 100; i++) await make(`quiet-${i}`, "quiet");
    await make("silent", "silent");
    await eventually(() => asked.length, (count) => count === 2);
    await make("good", "good");
    const bound = () => api.all(PERSISTENT_VOLUME_CLAIMS).filter(({ status }) => status?.phase === "Bound").map(({ metadata }) => metadata.name);
    await eventually(bound, (names) => names.join() === "good");
    await eventually(() => api.all(EVENTS).map(({ message }) => message), (all) => all.includes('failed to provision volume with StorageClass "local-path": node "silent" does not answer'));
    expect(asked).toEqual(["quiet", "quiet", "good"]);
    answers.resolve();
    await nodes.updateStatus({ ...silent, status: { conditions: [{ type: "Ready", status: "True" }] } } as never, call);
    await eventually(bound, (names) => names.length === 102);
  });
});

test("a directory's name is no longer than a file system allows, and no other claim's", () => {
  const claim = (uid: string) => ({ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name: "c".repeat(253), namespace: "n".repeat(63), uid }, spec: {} }) as never;
  const [one, other] = ["11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"].map((uid) => directoryName(claim(uid)));
  expect([one!.length, one === other]).toEqual([255, false]);
});

test.each([
  ["/storage/pvc-1_ns_c", true], ["C:\\coracle\\storage\\pvc-1_ns_c", true], ["/etc", false], ["/", false], ["", false], [undefined, false], ["pvc-1_ns_c", false], ["/storage/../etc/pvc-1_ns_c", false], ["/storage/pvc-1_ns_c/..", false], ["/storage/pvc-2_ns_c", false],
])("of a node that says its volume is at %s", async (path, believed) => {
  const client = { request: async () => ({ path }) } as never;
  const made = nodeDirectories(client).make("n", "pvc-1_ns_c", new AbortController().signal);
  await (believed ? expect(made).resolves.toBe(path) : expect(made).rejects.toThrow("node n did not say where the volume is"));
});

test("a claim of somebody else's class gets no directory, whatever its user has written on it", () => {
  const made: string[] = [];
  const directories: NodeDirectories = { make: async (_, name) => { made.push(name); return `/storage/${name}`; }, remove: async () => undefined };
  return withControllers((deps) => [localStorageController({ ...deps, directories })], async (api, call) => {
    await api.client.resource(NODES).create({ apiVersion: "v1", kind: "Node", metadata: { name: "n" }, spec: {} }, call);
    for (const [name, provisioner] of [["theirs", "csi.example.com"], ["local-path", "coracle.io/local-path"]] as const) {
      await api.client.resource(STORAGE_CLASSES).create({ apiVersion: "storage.k8s.io/v1", kind: "StorageClass", metadata: { name }, provisioner }, call);
      await api.client.resource(PERSISTENT_VOLUME_CLAIMS).create({
        apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name, namespace: "ns", annotations: { "volume.kubernetes.io/selected-node": "n", "volume.kubernetes.io/storage-provisioner": "coracle.io/local-path" } },
        spec: { accessModes: ["ReadWriteOnce"], storageClassName: name, resources: { requests: { storage: "1Gi" } } },
      }, call);
    }
    await eventually(() => made.length, (count) => count > 0);
    expect(made.map((name) => name.split("_").at(-1))).toEqual(["local-path"]);
  });
});

test("a node of a name that no node has is not asked for: whatever a claim's user has written, the server does nothing else for it", () => {
  const asked: string[] = [];
  return withControllers(({ client, ...deps }) => {
    const { resource, request } = client;
    const watched = { request, resource: ((ref) => (ref.plural === "nodes" ? { ...resource(ref), get: async ({ metadata }) => { asked.push(metadata.name); return { metadata } as never; } } : resource(ref))) as typeof resource };
    return [localStorageController({ ...deps, client: watched, directories: { make: async (node, name) => { asked.push(node); return `/storage/${name}`; }, remove: async () => undefined } })];
  }, async (api, call) => {
    await api.client.resource(STORAGE_CLASSES).create({ apiVersion: "storage.k8s.io/v1", kind: "StorageClass", metadata: { name: "local-path" }, provisioner: "coracle.io/local-path" }, call);
    await api.client.resource(PERSISTENT_VOLUME_CLAIMS).create({
      apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name: "c", namespace: "ns", annotations: { "volume.kubernetes.io/selected-node": "n:9999/proxy/x", "volume.kubernetes.io/storage-provisioner": "coracle.io/local-path" } },
      spec: { accessModes: ["ReadWriteOnce"], storageClassName: "local-path", resources: { requests: { storage: "1Gi" } } },
    }, call);
    await eventually(() => api.all(EVENTS).map(({ message }) => message), (all) => all.includes('failed to provision volume with StorageClass "local-path": node "n:9999/proxy/x" not found'));
    expect(asked).toEqual([]);
  });
});
