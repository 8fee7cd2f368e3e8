/**
 * The pods of a DaemonSet: which nodes they belong on, and how they get there. They are scheduled like any other pod, each with an affinity
 * to its node alone.
 *
 * Source: kubernetes v1.36 pkg/controller/daemon/{daemon_controller.go,util/daemonset_util.go}
 */
import type { DaemonSet } from "../../api/gen/apps.v1.ts";
import type { Affinity, Node, NodeSelector, Pod, PodSpec, Toleration } from "../../api/gen/core.v1.ts";
import { annotationsOf, labelsOf } from "../../api/meta/object-meta.ts";
import { fitsNode } from "../node-fit.ts";
import { type NewPod, podFromTemplate } from "../pod-control.ts";
import { TAINT, tolerationsFor } from "../taints.ts";

export const REVISION_HASH_LABEL = "controller-revision-hash";
const GENERATION_LABEL = "pod-template-generation";
const GENERATION_ANNOTATION = "deprecated.daemonset.template.generation";

type Set = Readonly<DaemonSet>;

/** Daemons stay where others would be driven away, and go where others may not. */
function daemonTolerations({ tolerations = [], hostNetwork }: Readonly<PodSpec>): Toleration[] {
  const exists = (key: string, effect: "NoExecute" | "NoSchedule"): Toleration => ({ key, operator: "Exists", effect });
  const own = [
    exists(TAINT.notReady, "NoExecute"), exists(TAINT.unreachable, "NoExecute"), exists(TAINT.diskPressure, "NoSchedule"), exists(TAINT.memoryPressure, "NoSchedule"),
    exists(TAINT.pidPressure, "NoSchedule"), exists(TAINT.unschedulable, "NoSchedule"), ...(hostNetwork ? [exists(TAINT.networkUnavailable, "NoSchedule")] : []),
  ];
  const same = (a: Toleration, b: Toleration): boolean => a.key === b.key && a.effect === b.effect && a.operator === b.operator && (a.value ?? "") === (b.value ?? "");
  const held = tolerations.map((given) => own.find((one) => same(one, given)) ?? given); // in its place, but for ever
  return [...held, ...own.filter((one) => !held.includes(one))];
}

export interface Fit {
  readonly shouldRun: boolean;
  /** A pod that is there already may stay. */
  readonly mayStay: boolean;
}

export function fitOf({ spec: { template } }: Set, node: Readonly<Node>): Fit {
  const spec = template.spec ?? { containers: [] };
  if ((spec.nodeName && spec.nodeName !== node.metadata.name) || !fitsNode(spec, node)) return { shouldRun: false, mayStay: false };
  const tolerations = daemonTolerations(spec);
  const taints = (node.spec?.taints ?? []).filter(({ effect }) => effect === "NoExecute" || effect === "NoSchedule");
  if (tolerationsFor(taints, tolerations) !== undefined) return { shouldRun: true, mayStay: true };
  return { shouldRun: false, mayStay: tolerationsFor(taints.filter(({ effect }) => effect === "NoExecute"), tolerations) !== undefined };
}

export function daemonPod(set: Set, nodeName: string, hash: string): NewPod {
  const pod = podFromTemplate(set.spec.template, set);
  const generation = templateGeneration(set);
  return {
    ...pod,
    metadata: { ...pod.metadata, labels: { ...pod.metadata.labels, ...(generation === undefined ? {} : { [GENERATION_LABEL]: generation }), [REVISION_HASH_LABEL]: hash } },
    spec: { ...pod.spec, tolerations: daemonTolerations(pod.spec), affinity: affinityTo(nodeName, pod.spec.affinity) },
  };
}

function affinityTo(nodeName: string, affinity: Readonly<Affinity> | undefined): Affinity {
  const only: NodeSelector = { nodeSelectorTerms: [{ matchFields: [{ key: "metadata.name", operator: "In", values: [nodeName] }] }] };
  return { ...affinity, nodeAffinity: { ...affinity?.nodeAffinity, requiredDuringSchedulingIgnoredDuringExecution: only } };
}

/** The node a pod is on, or is meant for. */
export function targetNode({ spec }: Readonly<Pod>): string | undefined {
  if (spec.nodeName) return spec.nodeName;
  for (const { matchFields = [] } of spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []) {
    const field = matchFields.find(({ key, operator }) => key === "metadata.name" && operator === "In");
    if (field?.values?.length === 1) return field.values[0];
  }
  return undefined;
}

/** Of the template as it is now. */
export function isUpdated(set: Set, pod: Readonly<Pod>, hash: string): boolean {
  const labels = labelsOf(pod);
  const generation = templateGeneration(set);
  return labels[REVISION_HASH_LABEL] === hash || (generation !== undefined && labels[GENERATION_LABEL] === generation);
}

function templateGeneration(set: Set): string | undefined {
  const text = annotationsOf(set)[GENERATION_ANNOTATION];
  return text !== undefined && /^\d+$/.test(text) ? text : undefined;
}
