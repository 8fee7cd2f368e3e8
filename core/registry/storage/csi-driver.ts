/**
 * CSIDriver (storage.k8s.io/v1): what a driver can do and needs.
 *
 * It counts generations from its first change on, not from its creation, or from what it is created with.
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/config-and-storage-resources/csi-driver-v1/
 * Source: kubernetes v1.36 pkg/registry/storage/csidriver/strategy.go, pkg/apis/storage/{v1/defaults,validation/validation}.go
 */
import type { CSIDriver, CSIDriverSpec, TokenRequest } from "../../api/gen/storage.v1.ts";
import { child, duplicate, type FieldError, index, invalid, notSupported, required } from "../../api/meta/field-error.ts";
import { semanticEqual } from "../core/checks/equal.ts";
import { immutable, oneOfOptional } from "../core/checks/values.ts";
import { defineResource } from "../generic/resource.ts";
import { keepsFieldsOf } from "../generic/switched-on.ts";
import { repeats } from "../../api/meta/linear.ts";

const TOKEN_SECONDS_MIN = 600;
const TOKEN_SECONDS_MAX = 2 ** 32;
const UPDATE_SECONDS_MIN = 10;
/** Its gate. */
const SCALING = "VolumeLimitScaling";

export const csiDrivers = defineResource<CSIDriver>({
  group: "storage.k8s.io", version: "v1", kind: "CSIDriver", plural: "csidrivers",
  unconditionalUpdate: false,
  generation: (next, old) => !semanticEqual(next.spec, old.spec),
  keepsGenerationOnCreate: true,

  defaults({ spec }) {
    spec.attachRequired ??= true;
    spec.podInfoOnMount ??= false;
    spec.storageCapacity ??= false;
    spec.fsGroupPolicy ??= "ReadWriteOnceWithFSType";
    if (!spec.volumeLifecycleModes?.length) spec.volumeLifecycleModes = ["Persistent"];
    spec.requiresRepublish ??= false;
    spec.seLinuxMount ??= false;
    if (keepsFieldsOf(SCALING)) spec.preventPodSchedulingIfMissing ??= false;
  },
  prepareForCreate({ spec }) { if (!keepsFieldsOf(SCALING)) delete spec.preventPodSchedulingIfMissing; },
  prepareForUpdate(next, old) { if (!keepsFieldsOf(SCALING) && old.spec.preventPodSchedulingIfMissing === undefined) delete next.spec.preventPodSchedulingIfMissing; },

  validate: ({ spec }) => validateSpec("spec", spec),
  *validateUpdate(next, old) {
    yield* immutable("spec.attachedRequired", next.spec.attachRequired, old.spec.attachRequired);
    yield* immutable("spec.volumeLifecycleModes", next.spec.volumeLifecycleModes, old.spec.volumeLifecycleModes);
  },
  *warnings({ spec }, old) {
    if (spec.tokenRequests?.length && spec.serviceAccountTokenInSecrets === undefined && !(old && semanticEqual(old.spec.tokenRequests, spec.tokenRequests)))
      yield "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes";
  },
});

function* validateSpec(path: string, spec: Readonly<CSIDriverSpec>): Iterable<FieldError> {
  if (spec.attachRequired === undefined) yield required(child(path, "attachedRequired"));
  for (const field of ["podInfoOnMount", "storageCapacity"] as const) if (spec[field] === undefined) yield required(child(path, field));
  yield* oneOfOptional(child(path, "fsGroupPolicy"), spec.fsGroupPolicy, ["File", "None", "ReadWriteOnceWithFSType"]);
  yield* validateTokenRequests(child(path, "tokenRequests"), spec.tokenRequests ?? []);
  for (const mode of spec.volumeLifecycleModes ?? [])
    if (mode !== "Persistent" && mode !== "Ephemeral") yield notSupported(child(path, "volumeLifecycleModes"), mode, ["Persistent", "Ephemeral"]);
  if (spec.seLinuxMount === undefined) yield required(child(path, "seLinuxMount"));
  const period = spec.nodeAllocatableUpdatePeriodSeconds;
  if (period !== undefined && period < UPDATE_SECONDS_MIN) yield invalid(child(path, "nodeAllocatableUpdatePeriodSeconds"), period, "must be greater than or equal to 10 seconds");
  if (spec.serviceAccountTokenInSecrets !== undefined && !spec.tokenRequests?.length)
    yield invalid(child(path, "serviceAccountTokenInSecrets"), spec.serviceAccountTokenInSecrets, "serviceAccountTokenInSecrets is set but no tokenRequests are specified");
}

function* validateTokenRequests(path: string, requests: readonly TokenRequest[]): Iterable<FieldError> {
  const cameBefore = repeats<string>();
  for (const [i, { audience, expirationSeconds }] of requests.entries()) {
    const at = index(path, i);
    if (cameBefore(audience)) { yield duplicate(child(at, "audience"), audience); continue; }
    if (expirationSeconds === undefined) continue;
    if (expirationSeconds < TOKEN_SECONDS_MIN) yield invalid(child(at, "expirationSeconds"), expirationSeconds, "may not specify a duration less than 10 minutes");
    if (expirationSeconds > TOKEN_SECONDS_MAX) yield invalid(child(at, "expirationSeconds"), expirationSeconds, "may not specify a duration larger than 2^32 seconds");
  }
}
