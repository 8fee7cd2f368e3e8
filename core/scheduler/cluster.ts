/** What filters and scores may look at: nodes, the pods on them, and the other objects that decide where a pod can go. */
import type { Service } from "../api/gen/core.v1.ts";
import type { Pod } from "../api/gen/core.v1.ts";
import type { Labels } from "../api/meta/label-requirement.ts";
import { LabelSelector, labelSelector, selectorFromSet } from "../api/meta/label-selector.ts";
import { controllerOf, labelsOf, namespaceOf, objectKey } from "../api/meta/object-meta.ts";
import type { Informers } from "../client/informer-factory.ts";
import { NAMESPACES, REPLICA_SETS, REPLICATION_CONTROLLERS, SERVICES, STATEFUL_SETS } from "../client/resources.ts";
import type { Candidate } from "./candidate.ts";
import { type Devices, devicesFrom } from "./devices/claims.ts";
import type { Clocks, DevicePlan } from "./devices/plan.ts";
import type { LiveNode, PlacedPod } from "./node-info.ts";
import type { PodIndex } from "./pod-index.ts";
import type { Snapshot } from "./snapshot.ts";
import { type Storage, storageFrom } from "./storage.ts";

export interface Cluster {
  nodes(): readonly LiveNode[];
  node(name: string): LiveNode | undefined;
  /** Its size, and how many have it; undefined: none. */
  image(name: string): { readonly bytes: number; readonly nodes: number } | undefined;
  readonly pods: PodIndex;
  /** Pods that wait for others to leave `node`. */
  nominatedTo(node: string): readonly PlacedPod[];
  readonly storage: Storage;
  readonly owners: Owners;
  readonly devices: Devices;
  /** What devices were thought of, by attempt. */
  readonly devicePlans: WeakMap<Candidate, { readonly plan: DevicePlan | { readonly refused: string } | undefined }>;
  readonly clocks: Clocks;
  /** Feature gates that are off by default and were switched on. */
  readonly gates: ReadonlySet<string>;
}

export interface Surroundings extends Clocks {
  readonly gates?: ReadonlySet<string> | undefined;
}

/** What stands above pods: their namespaces, and who selects them. */
export interface Owners {
  namespaceLabels(namespace: string): Labels;
  namespacesMatching(selector: LabelSelector): string[];
  /** The pods that `pod` is one of, by its services and its controller; undefined: it stands alone. Source: plugins/helper/spread.go DefaultSelector */
  siblings(pod: Readonly<Pod>): LabelSelector | undefined;
}

/** `like`: what has been assumed about other objects there counts here, too. */
export function clusterOf(snapshot: Snapshot, informers: Informers, { gates = new Set(), ...clocks }: Surroundings, like?: Cluster | undefined): Cluster {
  return {
    nodes: () => snapshot.nodes(), node: (name) => snapshot.node(name), image: (name) => snapshot.image(name), pods: snapshot.pods, nominatedTo: (node) => snapshot.nominatedTo(node),
    storage: like?.storage ?? storageFrom(informers), owners: like?.owners ?? ownersFrom(informers), devices: like?.devices ?? devicesFrom(informers, gates), devicePlans: like?.devicePlans ?? new WeakMap(), clocks, gates,
  };
}

const NO_LABELS: Labels = Object.freeze({});

export function ownersFrom(informers: Informers): Owners {
  const namespaces = informers.of(NAMESPACES);
  const services = informers.of(SERVICES);
  return {
    namespaceLabels(name) {
      const namespace = namespaces.get(objectKey("", name));
      return namespace ? labelsOf(namespace) : NO_LABELS;
    },
    namespacesMatching: (selector) => [...namespaces.list()].filter((one) => selector.matches(labelsOf(one))).map(({ metadata }) => metadata.name).sort(),
    siblings(pod) {
      const selected: Record<string, string> = {};
      for (const service of services.inNamespace(namespaceOf(pod))) if (selects(service, pod)) Object.assign(selected, service.spec.selector);
      const owner = controllerOf(pod);
      const key = objectKey(namespaceOf(pod), owner?.name ?? "");
      switch (owner && `${owner.apiVersion} ${owner.kind}`) {
        case "v1 ReplicationController":
          Object.assign(selected, informers.of(REPLICATION_CONTROLLERS).get(key)?.spec.selector);
          return nonEmpty(selectorFromSet(selected));
        case "apps/v1 ReplicaSet":
          return nonEmpty(both(selectorFromSet(selected), informers.of(REPLICA_SETS).get(key)?.spec.selector));
        case "apps/v1 StatefulSet":
          return nonEmpty(both(selectorFromSet(selected), informers.of(STATEFUL_SETS).get(key)?.spec.selector));
        default:
          return nonEmpty(selectorFromSet(selected));
      }
    },
  };
}

export const OWNER_RESOURCES = [NAMESPACES, SERVICES, REPLICATION_CONTROLLERS, REPLICA_SETS, STATEFUL_SETS] as const;

function selects({ spec }: Readonly<Service>, pod: Readonly<Pod>): boolean {
  const labels = labelsOf(pod);
  const entries = Object.entries(spec.selector ?? {});
  return entries.length > 0 && entries.every(([name, value]) => labels[name] === value);
}

function both(first: LabelSelector, second: Parameters<typeof labelSelector>[0]): LabelSelector {
  return second ? new LabelSelector([...first.requirements, ...labelSelector(second).requirements]) : first;
}

function nonEmpty(selector: LabelSelector): LabelSelector | undefined {
  return selector.empty ? undefined : selector;
}
