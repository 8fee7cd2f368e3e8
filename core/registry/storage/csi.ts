/**
 * CSIDriver, CSINode and CSIStorageCapacity (storage.k8s.io/v1): what the cluster knows of its CSI drivers.
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/config-and-storage-resources/csi-driver-v1/
 * Source: kubernetes v1.36 pkg/registry/storage/{csidriver,csinode,csistoragecapacity}/strategy.go, pkg/apis/storage/{v1/defaults,validation/validation}.go
 */
import { child, duplicate, type FieldError, FIELD_IMMUTABLE, index, invalid, notSupported, required } from "../../api/meta/field-error.ts";
import type { CSIDriver, CSIDriverSpec, CSINode, CSINodeDriver, CSIStorageCapacity, TokenRequest } from "../../api/gen/storage.v1.ts";
import { byteLength } from "../../api/meta/byte-length.ts";
import { validateLabelSelector } from "../../api/meta/label-selector.ts";
import { compareQuantities } from "../../api/meta/quantity.ts";
import { semanticEqual } from "../core/checks/equal.ts";
import { immutable, isDns1123Subdomain, isQualifiedName, nonNegative, NOT_NEGATIVE } from "../core/checks/values.ts";
import { csiDriverName } from "../core/pod/validation/volume-sources.ts";
import { deprecatedNodeLabel } from "../core/pod/warnings.ts";
import { defineResource } from "../generic/resource.ts";

const GROUP = { group: "storage.k8s.io", version: "v1" };
const FS_GROUP_POLICIES = ["File", "None", "ReadWriteOnceWithFSType"];
const LIFECYCLE_MODES = ["Persistent", "Ephemeral"];
const TOKEN_SECONDS_MIN = 600;
const TOKEN_SECONDS_MAX = 2 ** 32;
const UPDATE_PERIOD_SECONDS_MIN = 10;
const NODE_ID_BYTES_MAX = 256;
const TOKENS_IN_SECRETS = "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes";

export const csiDrivers = defineResource<CSIDriver>({
  ...GROUP, kind: "CSIDriver", plural: "csidrivers",
  unconditionalUpdate: false,
  defaults({ spec }) {
    spec.attachRequired ??= true;
    spec.podInfoOnMount ??= false;
    spec.storageCapacity ??= false;
    spec.fsGroupPolicy ??= "ReadWriteOnceWithFSType";
    if (!spec.volumeLifecycleModes?.length) spec.volumeLifecycleModes = ["Persistent"];
    spec.requiresRepublish ??= false;
    spec.seLinuxMount ??= false;
  },
  prepareForCreate({ metadata, spec }) {
    delete metadata.generation; // counts the changes after the first
    delete spec.preventPodSchedulingIfMissing; // its gate (VolumeLimitScaling) is off
  },
  prepareForUpdate(next, old) { if (old.spec.preventPodSchedulingIfMissing === undefined) delete next.spec.preventPodSchedulingIfMissing; },
  validate: ({ spec }) => validateDriver("spec", spec),
  *validateUpdate(next, old) {
    yield* immutable("spec.attachedRequired", next.spec.attachRequired, old.spec.attachRequired);
    yield* immutable("spec.volumeLifecycleModes", next.spec.volumeLifecycleModes, old.spec.volumeLifecycleModes);
  },
  *warnings({ spec }, old) {
    const asks = (spec.tokenRequests ?? []).length > 0 && spec.serviceAccountTokenInSecrets === undefined;
    if (asks && (!old || !semanticEqual(old.spec.tokenRequests, spec.tokenRequests))) yield TOKENS_IN_SECRETS;
  },
});

function* validateDriver(path: string, spec: Readonly<CSIDriverSpec>): Iterable<FieldError> {
  const { fsGroupPolicy, tokenRequests = [], volumeLifecycleModes = [], nodeAllocatableUpdatePeriodSeconds: period, serviceAccountTokenInSecrets: inSecrets } = spec;
  if (spec.attachRequired === undefined) yield required(child(path, "attachedRequired"));
  for (const name of ["podInfoOnMount", "storageCapacity"] as const) if (spec[name] === undefined) yield required(child(path, name));
  if (fsGroupPolicy !== undefined && !FS_GROUP_POLICIES.includes(fsGroupPolicy)) yield notSupported(child(path, "fsGroupPolicy"), fsGroupPolicy, FS_GROUP_POLICIES);
  yield* validateTokenRequests(child(path, "tokenRequests"), tokenRequests);
  for (const mode of volumeLifecycleModes) if (!LIFECYCLE_MODES.includes(mode)) yield notSupported(child(path, "volumeLifecycleModes"), mode, LIFECYCLE_MODES);
  if (spec.seLinuxMount === undefined) yield required(child(path, "seLinuxMount"));
  if (period !== undefined && period < UPDATE_PERIOD_SECONDS_MIN) yield invalid(child(path, "nodeAllocatableUpdatePeriodSeconds"), period, "must be greater than or equal to 10 seconds");
  if (inSecrets !== undefined && tokenRequests.length === 0)
    yield invalid(child(path, "serviceAccountTokenInSecrets"), inSecrets, "serviceAccountTokenInSecrets is set but no tokenRequests are specified");
}

function* validateTokenRequests(path: string, requests: readonly TokenRequest[]): Iterable<FieldError> {
  const audiences = new Set<string>();
  for (const [i, { audience = "", expirationSeconds: seconds }] of requests.entries()) {
    const at = index(path, i);
    if (audiences.has(audience)) { yield duplicate(child(at, "audience"), audience); continue; }
    audiences.add(audience);
    if (seconds === undefined) continue;
    if (seconds < TOKEN_SECONDS_MIN) yield invalid(child(at, "expirationSeconds"), seconds, "may not specify a duration less than 10 minutes");
    if (seconds > TOKEN_SECONDS_MAX) yield invalid(child(at, "expirationSeconds"), seconds, "may not specify a duration larger than 2^32 seconds");
  }
}

export const csiNodes = defineResource<CSINode>({
  ...GROUP, kind: "CSINode", plural: "csinodes",
  generation: false, unconditionalUpdate: false,
  *validate({ spec }) {
    const names = new Set<string>();
    for (const [i, driver] of (spec.drivers ?? []).entries()) {
      const at = index("spec.drivers", i);
      yield* validateNodeDriver(at, driver);
      if (names.has(driver.name)) yield duplicate(child(at, "name"), driver.name);
      names.add(driver.name);
    }
  },
  /** How much a driver can take may change; the rest goes and comes with the driver. */
  *validateUpdate(next, old) {
    for (const before of old.spec.drivers ?? [])
      for (const driver of next.spec.drivers ?? [])
        if (driver.name === before.name) yield* immutable("spec.drivers", withoutAllocatable(driver), withoutAllocatable(before));
  },
});

function withoutAllocatable({ allocatable: _, ...rest }: CSINodeDriver): unknown { return rest; }

function* validateNodeDriver(path: string, { name, nodeID = "", allocatable, topologyKeys }: CSINodeDriver): Iterable<FieldError> {
  yield* csiDriverName(child(path, "name"), name);
  if (nodeID === "") yield required(child(path, "nodeID"));
  if (byteLength(nodeID) > NODE_ID_BYTES_MAX) yield invalid(child(path, "nodeID"), nodeID, `must be ${NODE_ID_BYTES_MAX} characters or less`);
  yield* nonNegative(child(path, "allocatable", "count"), allocatable?.count);
  const keys = topologyKeys ?? [];
  for (const [i, key] of keys.entries()) {
    if (key === "") yield required(path);
    if (keys.indexOf(key) < i) yield duplicate(path, key);
    yield* isQualifiedName(path, key);
  }
}

export const csiStorageCapacities = defineResource<CSIStorageCapacity>({
  ...GROUP, kind: "CSIStorageCapacity", plural: "csistoragecapacities",
  generation: false, unconditionalUpdate: false,
  *validate({ nodeTopology, storageClassName, capacity }, old) {
    const allowInvalidValues = old !== undefined && validateLabelSelector(old.nodeTopology, "").length > 0;
    yield* validateLabelSelector(nodeTopology, "nodeTopology", { allowInvalidValues });
    yield* isDns1123Subdomain("storageClassName", storageClassName ?? "");
    if (capacity !== undefined && compareQuantities(capacity, "0") < 0) yield invalid("capacity", capacity, NOT_NEGATIVE);
  },
  *validateUpdate(next, old) {
    yield* immutable("nodeTopology", next.nodeTopology, old.nodeTopology);
    if (next.storageClassName !== old.storageClassName) yield invalid("storageClassName", next.storageClassName, FIELD_IMMUTABLE);
  },
  *warnings({ nodeTopology }) {
    for (const [i, { key }] of (nodeTopology?.matchExpressions ?? []).entries()) {
      const text = deprecatedNodeLabel(key);
      if (text !== undefined) yield `${child(index("nodeTopology.matchExpressions", i), "key")}: ${key} is ${text}`;
    }
    for (const name of Object.keys(nodeTopology?.matchLabels ?? {})) {
      const text = deprecatedNodeLabel(name);
      if (text !== undefined) yield `nodeTopology.matchLabels.${name}: ${text}`;
    }
  },
});
