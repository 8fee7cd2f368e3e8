/** Volumes between nodes while pods move, nodes fall silent and kubelets unmount late: one that is for one node is on one node, nothing mounted is torn off a node that is well, and all comes to rest. */
import { expect, test } from "vitest";
import { seededRandom } from "../../../test/simulator/seeded.ts";
import { stored } from "../../../test/static-informer.ts";
import type { Node, PersistentVolume } from "../../api/gen/core.v1.ts";
import type { VolumeAttachment } from "../../api/gen/storage.v1.ts";
import { attachmentName, FORCE_AFTER_MS, planNode } from "./plan.ts";

const VOLUMES = ["v0", "v1", "v2"];
const volumeOf = (name: string): PersistentVolume => stored<PersistentVolume>("v1", "PersistentVolume", name, { spec: { accessModes: ["ReadWriteOnce"], csi: { driver: "d", volumeHandle: name } } });
const unique = (volume: string): string => `kubernetes.io/csi/d^${volume}`;

test("never on two nodes at once, never torn off while mounted on a node that is well", () => {
  for (let seed = 1; seed <= 100; seed++) {
    const random = seededRandom(seed);
    const nodes = ["a", "b", "c"].map((name) => ({ name, ready: true, mounted: new Set<string>(), wants: new Set<string>() }));
    const attached = new Map<string, { node: string; volume: string; idleSince: number | undefined }>(); // by node/volume
    let nowMs = 0;
    const forceDetach = random.chance(0.7);
    const attachments = (): VolumeAttachment[] => [...attached.values()].map(({ node, volume }) => stored<VolumeAttachment>("storage.k8s.io/v1", "VolumeAttachment", attachmentName(volume, "d", node), { spec: { attacher: "d", nodeName: node, source: { persistentVolumeName: volume } }, status: { attached: true } }));
    const step = (label: string): number => {
      let changes = 0;
      for (const node of nodes) {
        const all = attachments();
        const plan = planNode({
          node: stored<Node>("v1", "Node", node.name, { spec: {}, status: { conditions: [{ type: "Ready", status: node.ready ? "True" : "Unknown" }], volumesInUse: [...node.mounted].map(unique) } }),
          wanted: [...node.wants].map((volume) => ({ volume: volumeOf(volume), pods: [] })), attachments: all.filter(({ spec }) => spec.nodeName === node.name),
          elsewhere: (volume) => all.filter(({ spec }) => spec.nodeName !== node.name && spec.source.persistentVolumeName === volume), volume: volumeOf,
          idleMs: (name) => { const one = [...attached.values()].find(({ node: on, volume }) => attachmentName(volume, "d", on) === name)!; return one.idleSince === undefined ? 0 : nowMs - one.idleSince; }, pendingMs: () => 0, forceDetach,
        });
        for (const { volume } of plan.attach) {
          const name = volume.metadata.name;
          expect([...attached.values()].some((one) => one.volume === name), `${label}: ${name} on two nodes`).toBe(false);
          attached.set(`${node.name}/${name}`, { node: node.name, volume: name, idleSince: undefined });
          changes++;
        }
        for (const { spec } of plan.detach) {
          const name = spec.source.persistentVolumeName!;
          const one = attached.get(`${node.name}/${name}`)!;
          expect(node.wants.has(name), `${label}: ${name} is wanted`).toBe(false);
          if (node.mounted.has(name)) expect(forceDetach && !node.ready && nowMs - one.idleSince! > FORCE_AFTER_MS, `${label}: ${name} is mounted on ${node.name}`).toBe(true);
          attached.delete(`${node.name}/${name}`);
          changes++;
        }
      }
      return changes;
    };
    const live = (): void => {
      for (const node of nodes) {
        for (const one of attached.values()) if (one.node === node.name) one.idleSince = node.wants.has(one.volume) ? undefined : one.idleSince ?? nowMs;
        if (!node.ready) continue;
        for (const volume of node.wants) if (attached.has(`${node.name}/${volume}`)) node.mounted.add(volume);
        for (const volume of [...node.mounted]) if (!node.wants.has(volume) && random.chance(0.5)) node.mounted.delete(volume);
      }
      nowMs += 30_000;
    };
    for (let i = 0; i < 80; i++) {
      if (random.chance(0.3)) { // a pod moves
        const volume = random.pick(VOLUMES), to = random.pick(nodes);
        for (const node of nodes) node.wants.delete(volume);
        if (random.chance(0.8)) to.wants.add(volume);
      }
      if (random.chance(0.1)) { const node = random.pick(nodes); node.ready = !node.ready; if (node.ready) for (const volume of [...node.mounted]) if (!attached.has(`${node.name}/${volume}`)) node.mounted.delete(volume); }
      step(`seed ${seed}, step ${i}`);
      live();
    }
    for (const node of nodes) { node.ready = true; for (const volume of [...node.mounted]) if (!attached.has(`${node.name}/${volume}`)) node.mounted.delete(volume); }
    for (let i = 0; i < 40; i++) { step(`seed ${seed}, at last`); live(); }
    expect([...attached.keys()].sort(), `seed ${seed}`).toEqual(nodes.flatMap(({ name, wants }) => [...wants].map((volume) => `${name}/${volume}`)).sort());
  }
});

test("with force detach switched off a node that does not answer keeps its volume for good; the taint out-of-service takes it away", () => {
  const attachment = stored<VolumeAttachment>("storage.k8s.io/v1", "VolumeAttachment", attachmentName("v0", "d", "a"), { spec: { attacher: "d", nodeName: "a", source: { persistentVolumeName: "v0" } }, status: { attached: true } });
  const detached = (forceDetach: boolean, taints: object[] = []): boolean => planNode({
    node: stored<Node>("v1", "Node", "a", { spec: { taints }, status: { conditions: [{ type: "Ready", status: "Unknown" }], volumesInUse: [unique("v0")] } }),
    wanted: [], attachments: [attachment], elsewhere: () => [], volume: volumeOf, idleMs: () => 100 * FORCE_AFTER_MS, pendingMs: () => 0, forceDetach,
  }).detach.length > 0;
  const outOfService = [{ key: "node.kubernetes.io/out-of-service", value: "nodeshutdown", effect: "NoExecute" }];
  expect([detached(true), detached(false), detached(false, outOfService)]).toEqual([true, false, true]);
});
