/**
 * Claims, volumes and drivers as the scheduler sees them: as informers tell, and on top what it has just decided and not yet heard back.
 * What is assumed holds until the informer knows a newer version, or until it is taken back.
 */
import type { PersistentVolume, PersistentVolumeClaim } from "../api/gen/core.v1.ts";
import type { CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment } from "../api/gen/storage.v1.ts";
import { annotationsOf, type ApiObject, keyOf, type ObjectKey, objectKey } from "../api/meta/object-meta.ts";
import type { Informers } from "../client/informer-factory.ts";
import type { Index, Informer } from "../client/informer.ts";
import { CSI_DRIVERS, CSI_NODES, CSI_STORAGE_CAPACITIES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES, VOLUME_ATTACHMENTS } from "../client/resources.ts";

export const STORAGE_RESOURCES = [PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES, CSI_NODES, CSI_DRIVERS, CSI_STORAGE_CAPACITIES, VOLUME_ATTACHMENTS] as const;

const CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class";
const VOLUMES_BY_CLASS: Index<PersistentVolume> = { name: "storage class", valuesOf: (volume) => [classOf(volume)] };
const ATTACHMENTS_BY_NODE: Index<VolumeAttachment> = { name: "node", valuesOf: ({ spec }) => [spec.nodeName] };

/** Of a claim or a volume: an annotation says more than the field. */
export function classOf(claim: Readonly<PersistentVolumeClaim | PersistentVolume>): string {
  return annotationsOf(claim)[CLASS_ANNOTATION] ?? claim.spec.storageClassName ?? "";
}

export interface Storage {
  readonly claims: Assumed<PersistentVolumeClaim>;
  readonly volumes: Assumed<PersistentVolume>;
  claim(namespace: string, name: string): Readonly<PersistentVolumeClaim> | undefined;
  volume(name: string): Readonly<PersistentVolume> | undefined;
  volumesOfClass(name: string): readonly Readonly<PersistentVolume>[];
  storageClass(name: string): Readonly<StorageClass> | undefined;
  csiNode(name: string): Readonly<CSINode> | undefined;
  csiDriver(name: string): Readonly<CSIDriver> | undefined;
  capacities(): Iterable<Readonly<CSIStorageCapacity>>;
  attachmentsTo(node: string): readonly Readonly<VolumeAttachment>[];
}

export function storageFrom(informers: Informers): Storage {
  const claims = new Assumed(informers.of(PERSISTENT_VOLUME_CLAIMS));
  const pvs = informers.of(PERSISTENT_VOLUMES);
  const volumes = new Assumed(pvs);
  return {
    claims,
    volumes,
    claim: (namespace, name) => claims.get(objectKey(namespace, name)),
    volume: (name) => volumes.get(objectKey("", name)),
    volumesOfClass: (name) => pvs.by(VOLUMES_BY_CLASS, name).map((pv) => volumes.get(keyOf(pv)) ?? pv),
    storageClass: (name) => informers.of(STORAGE_CLASSES).get(objectKey("", name)),
    csiNode: (name) => informers.of(CSI_NODES).get(objectKey("", name)),
    csiDriver: (name) => informers.of(CSI_DRIVERS).get(objectKey("", name)),
    capacities: () => informers.of(CSI_STORAGE_CAPACITIES).list(),
    attachmentsTo: (node) => informers.of(VOLUME_ATTACHMENTS).by(ATTACHMENTS_BY_NODE, node),
  };
}

/** Objects as an informer has them, or as we have decided they will be. */
export class Assumed<T extends ApiObject> {
  readonly #informer: Pick<Informer<T>, "get">;
  readonly #assumed = new Map<ObjectKey, Readonly<T>>();

  constructor(informer: Pick<Informer<T>, "get">) {
    this.#informer = informer;
  }

  get(key: ObjectKey): Readonly<T> | undefined {
    const known = this.#informer.get(key);
    const assumed = this.#assumed.get(key);
    if (!assumed) return known;
    if (known && known.metadata.uid === assumed.metadata.uid && revision(known) <= revision(assumed)) return assumed;
    this.#assumed.delete(key);
    return known;
  }

  get size(): number { return this.#assumed.size; }

  /** The informer has told of it: what it knows better, or knows to be gone, is not assumed any more, whether or not anybody asks for it again. */
  told(object: Readonly<T>): void { this.get(keyOf(object)); }

  /** As the API last told. */
  known(key: ObjectKey): Readonly<T> | undefined {
    return this.#informer.get(key);
  }

  /** `object` has the resourceVersion it was changed from, or the one its write returned. */
  assume(object: Readonly<T>): void {
    this.#assumed.set(keyOf(object), object);
  }

  takeBack(object: Readonly<T>): void {
    this.#assumed.delete(keyOf(object));
  }
}

export function revision({ metadata }: Readonly<ApiObject>): bigint {
  return BigInt(metadata.resourceVersion);
}
