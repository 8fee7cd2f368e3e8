/**
 * What the cluster knows of this node's CSI drivers: the CSINode object, the node's labels of their topology, and their ids in an annotation.
 *
 * Source: kubernetes v1.36 pkg/volume/csi/nodeinfomanager/nodeinfomanager.go
 */
import type { CSINode, CSINodeDriver } from "../../../core/api/gen/storage.v1.ts";
import type { Node } from "../../../core/api/gen/core.v1.ts";
import { ifFound } from "../../../core/api/meta/if-found.ts";
import { isAlreadyExists, isConflict } from "../../../core/api/meta/status-error.ts";
import type { Client } from "../../../core/client/client.ts";
import { CSI_NODES, NODES } from "../../../core/client/resources.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Runnable } from "../../../core/lifecycle/run-all.ts";
import type { Log } from "../../../core/observe/log.ts";

export interface DriverOnNode {
  readonly name: string;
  readonly nodeId: string;
  /** 0: as many as one likes. */
  readonly volumesMax: number;
  readonly topology: Readonly<Record<string, string>>;
}

export interface CsiNodeWriter extends Runnable {
  add(driver: DriverOnNode, signal: AbortSignal): Promise<void>;
  remove(name: string, signal: AbortSignal): Promise<void>;
}

const NODE_IDS = "csi.volume.kubernetes.io/nodeid";
/** Volumes of these kinds are CSI drivers' by now; the scheduler and the controllers are told that this node knows. */
const MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins";
const MIGRATED_PLUGINS = ["aws-ebs", "azure-disk", "azure-file", "cinder", "gce-pd", "portworx-volume", "vsphere-volume"].map((name) => `kubernetes.io/${name}`).join(",");
const RETRY_MS = 1_000;
const TRIES_MAX = 6;

interface Deps { readonly client: Client; readonly clock: Clock; readonly log: Log; readonly nodeName: string }

export function csiNodeWriter({ client, clock, log, nodeName }: Deps): CsiNodeWriter {
  const csiNodes = client.resource(CSI_NODES);
  const nodes = client.resource(NODES);
  const name = { metadata: { name: nodeName } };
  let turn: Promise<unknown> = Promise.resolve(); // one change at a time

  /** One that a Node of the same name left behind is made anew: it would be collected with that. */
  async function ensure(signal: AbortSignal): Promise<Readonly<CSINode>> {
    const { metadata: { uid } } = await nodes.get(name, { signal });
    const found = await ifFound(csiNodes.get(name, { signal }));
    if (found?.metadata.ownerReferences?.some((owner) => owner.kind === "Node" && owner.name === nodeName && owner.uid === uid)) return await withMigrated(found, signal);
    if (found) {
      log.info("CSINode of an earlier Node is made anew", { node: nodeName });
      await ifFound(csiNodes.delete({ metadata: found.metadata }, {}, { signal }));
    }
    const metadata = { name: nodeName, annotations: { [MIGRATED]: MIGRATED_PLUGINS }, ownerReferences: [{ apiVersion: "v1", kind: "Node", name: nodeName, uid }] };
    try {
      return await csiNodes.create({ apiVersion: "storage.k8s.io/v1", kind: "CSINode", metadata, spec: { drivers: [] } }, { signal });
    } catch (error) {
      if (isAlreadyExists(error)) return await csiNodes.get(name, { signal });
      throw error;
    }
  }

  async function withMigrated(csiNode: Readonly<CSINode>, signal: AbortSignal): Promise<Readonly<CSINode>> {
    const { metadata } = csiNode;
    if (metadata.annotations?.[MIGRATED]?.split(",").toSorted().join() === MIGRATED_PLUGINS) return csiNode;
    return await csiNodes.update({ ...csiNode, metadata: { ...metadata, annotations: { ...metadata.annotations, [MIGRATED]: MIGRATED_PLUGINS } } }, { signal });
  }

  /** Again, if somebody else wrote at the same time or the API server is away for a moment. */
  async function change(work: () => Promise<void>, signal: AbortSignal): Promise<void> {
    const mine = turn.then(async () => {
      for (let tries = 1; ; tries++) {
        try {
          return await work();
        } catch (error) {
          if (signal.aborted || tries === TRIES_MAX) throw error;
          await clock.sleep(isConflict(error) ? 0 : RETRY_MS * tries, signal);
        }
      }
    });
    turn = mine.catch(() => undefined); // whoever asked is told; the next one's turn comes all the same
    await mine;
  }

  async function updateNode(wanted: (node: Readonly<Node>) => { readonly annotation: string | null; readonly labels: Readonly<Record<string, string>> }, signal: AbortSignal): Promise<void> {
    const node = await nodes.get(name, { signal });
    const { annotation, labels } = wanted(node);
    const { annotations = {}, labels: now = {} } = node.metadata;
    if ((annotations[NODE_IDS] ?? null) === annotation && Object.entries(labels).every(([key, value]) => now[key] === value)) return;
    await nodes.patch(name, "application/strategic-merge-patch+json", { metadata: { annotations: { [NODE_IDS]: annotation }, labels } }, { signal });
  }

  return {
    name: "csi-node",
    async run(signal, ready) {
      ready(); // nobody waits for it but CSI drivers, and those ask themselves
      for (let tries = 1; !signal.aborted; tries++) {
        try {
          await change(async () => void (await ensure(signal)), signal);
          break;
        } catch (error) {
          if (!signal.aborted) log.warn("CSINode not made, next try later", { node: nodeName, error });
          await clock.sleep(RETRY_MS * Math.min(60, 2 ** tries), signal);
        }
      }
      await new Promise<void>((resolve) => (signal.aborted ? resolve() : signal.addEventListener("abort", () => resolve(), { once: true })));
    },
    async add(driver, signal) {
      if (driver.nodeId === "") throw new Error("error adding CSI driver node info: driverNodeID must not be empty"); // nor will be at another try
      await change(async () => {
        await updateNode((node) => {
          checkTopology(node, driver.topology);
          return { annotation: idsText({ ...idsOf(node), [driver.name]: driver.nodeId }), labels: driver.topology };
        }, signal);
        const csiNode = await ensure(signal);
        const drivers = withDriver(csiNode.spec.drivers ?? [], driver);
        if (drivers !== csiNode.spec.drivers) await csiNodes.update({ ...csiNode, spec: { ...csiNode.spec, drivers: [...drivers] } }, { signal });
      }, signal);
    },
    remove: (driverName, signal) => change(async () => {
      const csiNode = await ensure(signal);
      const before = csiNode.spec.drivers ?? []; // an empty list comes as null
      const drivers = before.filter((one) => one.name !== driverName);
      if (drivers.length !== before.length) await csiNodes.update({ ...csiNode, spec: { ...csiNode.spec, drivers } }, { signal });
      await updateNode((node) => {
        const { [driverName]: _, ...left } = idsOf(node);
        return { annotation: Object.keys(left).length > 0 ? idsText(left) : null, labels: {} };
      }, signal);
    }, signal),
  };
}

/** Where a node is does not change: what it is said to be already stands, for volumes and pods were placed by it. */
function checkTopology({ metadata: { labels = {} } }: Readonly<Node>, topology: Readonly<Record<string, string>>): void {
  for (const [key, value] of Object.entries(topology)) {
    const old = labels[key];
    if (old !== undefined && old !== value)
      throw new Error(`error updating Node object with CSI driver node info: detected topology value collision: driver reported ${JSON.stringify(key)}:${JSON.stringify(value)} but existing label is ${JSON.stringify(key)}:${JSON.stringify(old)}`);
  }
}

const COUNT_MAX = 2 ** 31 - 1;

/** The list itself if nothing changes. */
export function withDriver(drivers: readonly CSINodeDriver[], { name, nodeId, volumesMax: said, topology }: DriverOnNode): readonly CSINodeDriver[] {
  const volumesMax = Math.min(said, COUNT_MAX);
  const topologyKeys = Object.keys(topology).toSorted();
  const old = drivers.find((one) => one.name === name);
  const same = old?.nodeID === nodeId && (old.allocatable?.count ?? 0) === Math.max(0, volumesMax) && (old.topologyKeys ?? []).toSorted().join() === topologyKeys.join();
  if (same) return drivers;
  return [...drivers.filter((one) => one.name !== name), { name, nodeID: nodeId, ...(topologyKeys.length > 0 ? { topologyKeys } : {}), ...(volumesMax > 0 ? { allocatable: { count: volumesMax } } : {}) }];
}

/** By name. */
function idsText(ids: Readonly<Record<string, string>>): string {
  return JSON.stringify(Object.fromEntries(Object.entries(ids).toSorted(([a], [b]) => (a < b ? -1 : 1))));
}

function idsOf({ metadata }: Readonly<Node>): Record<string, string> {
  const text = metadata.annotations?.[NODE_IDS];
  return text ? (JSON.parse(text) as Record<string, string>) : {};
}
