/**
 * Pod (v1): containers that run together on one node.
 *
 *   create     Pending, with its class of service; label keys merged into selectors; what gates are off for is dropped
 *   update     spec only where validation/update.ts lets it; status stays
 *   status     written by the kubelet · ephemeralcontainers, resize: parts of spec, each through its own subresource · binding: binding.ts
 *   delete     graceful while it runs on a node; at once when it never did, or has ended
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/
 * Source: kubernetes v1.36 pkg/registry/core/pod/strategy.go
 */
import { type FieldError, forbidden } from "../../../api/meta/field-error.ts";
import type { Container, Pod, PodAffinityTerm } from "../../../api/gen/core.v1.ts";
import type { LabelSelector } from "../../../api/gen/meta.v1.ts";
import { dns1123Label } from "../../../api/meta/names.ts";
import { defineResource, type WriteContext } from "../../generic/resource.ts";
import { keepMetadata, statusPart } from "../status-part.ts";
import { applyAppArmorAnnotations } from "./app-armor.ts";
import { setPodCondition } from "./conditions.ts";
import { defaultPod, defaultPodStatus } from "./defaults.ts";
import { dropDisabledFields, dropDisabledStatusFields } from "./disabled-fields.ts";
import { podTexts } from "./own-texts.ts";
import { computeQos } from "./qos.ts";
import { podRules } from "./rules.ts";
import { validatePod } from "./validation/spec.ts";
import { validateProfilesAgree } from "./validation/security.ts";
import { validateStatusUpdate } from "./validation/status.ts";
import { validateEphemeralUpdate, validateResize } from "./validation/subresources.ts";
import { validatePodUpdate } from "./validation/update.ts";
import { podWarnings, statusWarnings } from "./warnings.ts";

export const pods = defineResource<Pod>({
  group: "", version: "v1", kind: "Pod", plural: "pods",
  defaults: defaultPod,
  statusDefaults: defaultPodStatus,

  prepareForCreate(pod, context) {
    pod.status = { phase: "Pending", qosClass: computeQos(pod) };
    dropDisabledFields(pod.spec);
    if ((pod.spec.schedulingGates ?? []).length > 0) setGated(pod, context);
    mergeLabelKeys(pod);
    for (const key of applyAppArmorAnnotations(pod)) context.warn?.(`metadata.annotations[${key}]: deprecated since v1.30; use the "appArmorProfile" field instead`);
  },
  prepareForUpdate(next, old) { dropDisabledFields(next.spec, old.spec); },

  *validate(pod, old) {
    if (old) return yield* validatePod(pod, podRules(true, old));
    if (!isAsItsSpec(pod)) return yield* validateCreate(pod);
    if (SOUND.has(pod.spec)) return;
    let isSound = true;
    for (const error of validateCreate(pod)) {
      isSound = false;
      yield error;
    }
    if (isSound) SOUND.add(pod.spec);
  },
  validateUpdate: validatePodUpdate,

  *warnings(pod, old) {
    if (old) return;
    const texts = dns1123Label(pod.metadata.name);
    if (texts.length > 0)
      yield `metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [${texts.join(" ")}]`;
    const warnings = (): Iterable<string> => podWarnings("", pod.spec, pod.metadata);
    if (!isAsItsSpec(pod)) return yield* warnings();
    let known = WARNINGS.get(pod.spec);
    if (!known) WARNINGS.set(pod.spec, (known = [...warnings()]));
    yield* known;
  },

  ownTexts: {
    apart: podTexts.apart,
    together(known, texts) {
      const spec = podTexts.together(known, texts), warnings = WARNINGS.get(known);
      if (SOUND.has(known)) SOUND.add(spec);
      if (warnings) WARNINGS.set(spec, warnings);
      return spec;
    },
  },

  fields: ({ spec, status }) => ({
    "spec.nodeName": spec.nodeName ?? "",
    "spec.host": spec.nodeName ?? "", // its name for clients from before v1
    "spec.restartPolicy": spec.restartPolicy ?? "",
    "spec.schedulerName": spec.schedulerName ?? "",
    "spec.serviceAccountName": spec.serviceAccountName ?? "",
    "spec.hostNetwork": String(spec.hostNetwork ?? false),
    "status.phase": status?.phase ?? "",
    "status.podIP": status?.podIPs?.[0]?.ip ?? "",
    "status.podIPs": "", // known to upstream, and never filled
    "status.nominatedNodeName": status?.nominatedNodeName ?? "",
  }),

  gracePeriodSeconds({ spec, status }, requestedSeconds) {
    if (!spec.nodeName || status?.phase === "Failed" || status?.phase === "Succeeded") return 0;
    const seconds = requestedSeconds ?? spec.terminationGracePeriodSeconds ?? 0;
    return seconds < 0 ? 1 : seconds;
  },

  subresources: {
    status: statusPart<Pod>({
      prepare(next, old) {
        if (old.metadata.ownerReferences) next.metadata.ownerReferences = old.metadata.ownerReferences;
        else delete next.metadata.ownerReferences;
        if (!old.metadata.deletionTimestamp) delete next.metadata.deletionTimestamp;
        keepReported(next, old);
        dropDisabledStatusFields(next.status, old.status);
      },
      validate: (next, old) => validateStatusUpdate(next, old, podRules(true, old)),
      warnings: statusWarnings,
    }),
    ephemeralcontainers: {
      type: "part",
      prepare(next, old) {
        const { ephemeralContainers } = next.spec;
        next.spec = { ...structuredClone(old.spec), ...(ephemeralContainers ? { ephemeralContainers } : {}) };
        if (!ephemeralContainers) delete next.spec.ephemeralContainers;
        keepStatusAndMetadata(next, old);
        dropDisabledFields(next.spec, old.spec);
      },
      validate: (next, old) => validateEphemeralUpdate(next, old, podRules(true, old)),
    },
    resize: {
      type: "part",
      prepare(next, old) {
        const sameCount = next.spec.containers?.length === old.spec.containers?.length && (next.spec.initContainers?.length ?? 0) === (old.spec.initContainers?.length ?? 0);
        if (!sameCount) return; // refused by validation, which says why
        const { resources } = next.spec;
        const containers = withResources(next.spec.containers, old.spec.containers);
        const initContainers = withResources(next.spec.initContainers ?? [], old.spec.initContainers ?? []);
        next.spec = { ...old.spec, containers, ...(old.spec.initContainers ? { initContainers } : {}) };
        if (resources) next.spec.resources = resources;
        else delete next.spec.resources;
        keepStatusAndMetadata(next, old);
      },
      validate: (next, old) => validateResize(next, old, podRules(true, old)),
    },
  },
});

/** Specs that have been found to be without fault, and what is to be warned of in them: they are those of one template's pods. */
const SOUND = new WeakSet<object>(), WARNINGS = new WeakMap<object, readonly string[]>();

/** It was recognized as one that is stored, and nothing but the spec matters: annotations say things of containers, too, and some claims are named after the pod. */
function isAsItsSpec({ metadata, spec }: Readonly<Pod>): boolean {
  return Object.isFrozen(spec) && metadata.annotations === undefined && (spec.volumes ?? []).every(({ ephemeral }) => ephemeral === undefined);
}

function* validateCreate(pod: Readonly<Pod>): Iterable<FieldError> {
  yield* validatePod(pod, podRules(true));
  if (pod.spec.ephemeralContainers?.length) yield forbidden("spec.ephemeralContainers", "cannot be set on create");
  if (pod.spec.nodeName && pod.spec.schedulingGates?.length) yield forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared");
  yield* validateProfilesAgree("spec", pod.metadata, pod.spec);
}

function setGated(pod: Pod, { nowMs }: WriteContext): void {
  const message = "Scheduling is blocked due to non-empty scheduling gates";
  setPodCondition((pod.status ??= {}), { type: "PodScheduled", status: "False", reason: "SchedulingGated", message }, nowMs);
}

/** matchLabelKeys and mismatchLabelKeys become requirements with the values the pod's labels have now. */
function mergeLabelKeys({ spec, metadata }: Pod): void {
  const labels = metadata.labels ?? {};
  const merge = (selector: LabelSelector | undefined, keys: readonly string[] | undefined, operator: "In" | "NotIn"): void => {
    const added = (keys ?? []).flatMap((key) => (Object.hasOwn(labels, key) ? [{ key, operator, values: [labels[key]!] }] : []));
    if (selector && added.length > 0) selector.matchExpressions = [...(selector.matchExpressions ?? []), ...added];
  };
  const mergeTerm = ({ labelSelector, matchLabelKeys, mismatchLabelKeys }: PodAffinityTerm): void => {
    merge(labelSelector, matchLabelKeys, "In");
    merge(labelSelector, mismatchLabelKeys, "NotIn");
  };
  for (const part of [spec.affinity?.podAffinity, spec.affinity?.podAntiAffinity]) {
    for (const { podAffinityTerm } of part?.preferredDuringSchedulingIgnoredDuringExecution ?? []) mergeTerm(podAffinityTerm);
    for (const term of part?.requiredDuringSchedulingIgnoredDuringExecution ?? []) mergeTerm(term);
  }
  for (const { labelSelector, matchLabelKeys } of spec.topologySpreadConstraints ?? []) merge(labelSelector, matchLabelKeys, "In");
}

/** Reporters that know nothing of generations, or of the class of service, do not erase them. */
function keepReported(next: Pod, old: Readonly<Pod>): void {
  const status = (next.status ??= {});
  if (!status.qosClass && old.status?.qosClass) status.qosClass = old.status.qosClass;
  if (!status.observedGeneration && old.status?.observedGeneration) status.observedGeneration = old.status.observedGeneration;
  const before = Map.groupBy(old.status?.conditions ?? [], ({ type }) => type), seen = new Map<string, number>();
  for (const condition of status.conditions ?? []) {
    const nth = seen.get(condition.type) ?? 0, observed = before.get(condition.type)?.[nth]?.observedGeneration;
    seen.set(condition.type, nth + 1);
    if (!condition.observedGeneration && observed) condition.observedGeneration = observed;
  }
}

function keepStatusAndMetadata(next: Pod, old: Readonly<Pod>): void {
  if (old.status) next.status = old.status;
  else delete next.status;
  keepMetadata(next, old);
}

/** The old containers with the new ones' resources and resize policies. Renamed or reordered ones are left for validation to refuse. */
function withResources(next: readonly Container[], old: readonly Container[]): Container[] {
  if (next.some(({ name }, i) => old[i]?.name !== name)) return [...next];
  return next.map(({ resources, resizePolicy }, i) => {
    const { resources: _, resizePolicy: __, ...rest } = old[i]!;
    return { ...rest, ...(resources ? { resources } : {}), ...(resizePolicy ? { resizePolicy } : {}) };
  });
}
