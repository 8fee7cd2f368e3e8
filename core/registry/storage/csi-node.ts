/**
 * CSINode (storage.k8s.io/v1): the drivers a node has.
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/config-and-storage-resources/csi-node-v1/
 * Source: kubernetes v1.36 pkg/registry/storage/csinode/strategy.go, pkg/apis/storage/validation/validation.go
 */
import type { CSINode, CSINodeDriver } from "../../api/gen/storage.v1.ts";
import { byteLength } from "../../api/meta/byte-length.ts";
import { child, duplicate, type FieldError, index, invalid, required } from "../../api/meta/field-error.ts";
import { immutable, isQualifiedName, nonNegative } from "../core/checks/values.ts";
import { csiDriverName } from "../core/pod/validation/volume-sources.ts";
import { defineResource } from "../generic/resource.ts";
import { repeats } from "../../api/meta/linear.ts";

const NODE_ID_BYTES_MAX = 256;

export const csiNodes = defineResource<CSINode>({
  group: "storage.k8s.io", version: "v1", kind: "CSINode", plural: "csinodes",
  generation: false, unconditionalUpdate: false,
  *validate({ spec }): Iterable<FieldError> {
    const drivers = spec.drivers ?? [];
    const cameBefore = repeats<string>();
    for (const [i, driver] of drivers.entries()) yield* validateDriver(index("spec.drivers", i), driver, cameBefore(driver.name));
  },
  /** A driver stays as it was but for how many volumes it can have. */
  *validateUpdate(next, old) {
    const named = Map.groupBy(next.spec.drivers ?? [], ({ name }) => name);
    for (const before of old.spec.drivers ?? [])
      for (const driver of named.get(before.name) ?? []) yield* immutable("spec.drivers", withoutCount(driver), withoutCount(before));
  },
});

/** As upstream's message shows it. */
function withoutCount({ name, nodeID, topologyKeys }: Readonly<CSINodeDriver>): unknown {
  return { Name: name, NodeID: nodeID, TopologyKeys: topologyKeys ?? null, Allocatable: null };
}

function* validateDriver(path: string, { name, nodeID, topologyKeys, allocatable }: CSINodeDriver, isRepeated: boolean): Iterable<FieldError> {
  yield* csiDriverName(child(path, "name"), name);
  if (!nodeID) yield required(child(path, "nodeID"));
  else if (byteLength(nodeID) > NODE_ID_BYTES_MAX) yield invalid(child(path, "nodeID"), nodeID, `must be ${NODE_ID_BYTES_MAX} characters or less`);
  yield* nonNegative(child(path, "allocatable", "count"), allocatable?.count);
  if (isRepeated) yield duplicate(child(path, "name"), name);
  const cameBefore = repeats<string>();
  for (const key of topologyKeys ?? []) {
    if (key === "") yield required(path);
    if (cameBefore(key)) yield duplicate(path, key);
    yield* isQualifiedName(path, key);
  }
}
