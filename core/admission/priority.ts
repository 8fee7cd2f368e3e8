/**
 * Priority: a pod's priority comes from its PriorityClass, or from the one that is marked as default; so does that of a group of pods, where groups have one.
 *
 * Source: kubernetes v1.36 plugin/pkg/admission/priority/admission.go
 */
import type { Pod } from "../api/gen/core.v1.ts";
import type { PriorityClass } from "../api/gen/scheduling.v1.ts";
import type { PodGroup } from "../api/gen/scheduling.v1alpha2.ts";
import { pathSegmentName } from "../api/meta/names.ts";
import type { ResourceClient } from "../client/client.ts";
import type { Informer } from "../client/informer.ts";
import { listAll, type Lookup } from "../client/lookup.ts";
import type { AdmissionPlugin, AdmissionRequest } from "./plugin.ts";
import { isResource, refusal } from "./refuse.ts";

export interface PriorityDeps {
  readonly priorityClasses: Lookup<PriorityClass>;
  readonly informer: Informer<PriorityClass>;
  readonly client: ResourceClient<PriorityClass>;
  /** Groups of pods have priorities, too: WorkloadAwarePreemption. */
  readonly ofGroups?: boolean;
}

function valueOf({ value = 0 }: Readonly<PriorityClass>): number { return value; }

interface Priority { readonly className: string; readonly value: number; readonly policy: string | undefined }

export function priorityAdmission({ priorityClasses, informer, client, ofGroups = false }: PriorityDeps): AdmissionPlugin {
  /** Of several marked as default, by mistake, the one with the lowest value. */
  async function defaultClass(signal: AbortSignal): Promise<Readonly<PriorityClass> | undefined> {
    const marked = (await listAll(informer, client, { signal })).filter(({ globalDefault }) => globalDefault === true);
    return marked.reduce<Readonly<PriorityClass> | undefined>((lowest, one) => (lowest && valueOf(lowest) <= valueOf(one) ? lowest : one), undefined);
  }

  async function priorityOf(request: AdmissionRequest, className: string): Promise<Priority> {
    if (className === "") {
      const found = await defaultClass(request.signal);
      return found ? { className: found.metadata.name, value: valueOf(found), policy: found.preemptionPolicy } : { className: "", value: 0, policy: "PreemptLowerPriority" };
    }
    const found = pathSegmentName(className).length > 0 ? undefined : await priorityClasses.find("", className, request.signal); // no class has a name that no path can have
    if (!found) throw refusal(request, `no PriorityClass with name ${className} was found`);
    return { className, value: valueOf(found), policy: found.preemptionPolicy };
  }

  async function admitPod(request: AdmissionRequest): Promise<void> {
    const { spec } = request.object as Pod;
    if (request.operation === "UPDATE") {
      const old = (request.oldObject as Readonly<Pod> | undefined)?.spec;
      spec.priority ??= old?.priority;
      spec.preemptionPolicy ??= old?.preemptionPolicy;
      return;
    }
    const { className, value, policy } = await priorityOf(request, spec.priorityClassName ?? "");
    if (spec.priority != null && spec.priority !== value)
      throw refusal(request, `the integer value of priority (${spec.priority}) must not be provided in pod spec; priority admission controller computed ${value} from the given PriorityClass name`);
    if (policy !== undefined && spec.preemptionPolicy != null && spec.preemptionPolicy !== policy)
      throw refusal(request, `the string value of PreemptionPolicy (${spec.preemptionPolicy}) must not be provided in pod spec; priority admission controller computed ${policy} from the given PriorityClass name`);
    if (className !== "") spec.priorityClassName = className;
    spec.priority = value;
    if (policy !== undefined) spec.preemptionPolicy = policy as NonNullable<typeof spec.preemptionPolicy>;
  }

  async function admitGroup(request: AdmissionRequest): Promise<void> {
    const { spec } = request.object as PodGroup;
    const { className, value } = await priorityOf(request, spec.priorityClassName ?? "");
    if (spec.priority != null && spec.priority !== value) throw refusal(request, `priority set in the pod group (${spec.priority}) must match the priority computed (${value}) based on the priority class set in the spec`);
    if (className !== "") spec.priorityClassName = className;
    spec.priority = value;
  }

  const isGroup = (request: AdmissionRequest): boolean => ofGroups && request.operation === "CREATE" && isResource(request, "podgroups.scheduling.k8s.io");
  return {
    name: "Priority",
    handles: (request) => (request.operation === "CREATE" || request.operation === "UPDATE") && (isResource(request, "pods") || isResource(request, "priorityclasses.scheduling.k8s.io") || isGroup(request)),
    async admit(request) {
      if (request.resource === "pods") await admitPod(request);
      else if (isGroup(request)) await admitGroup(request);
    },
    async validate(request) {
      const next = request.object as PriorityClass;
      if (request.resource !== "priorityclasses" || next.globalDefault !== true) return;
      const marked = await defaultClass(request.signal);
      if (marked && (request.operation === "CREATE" || marked.metadata.name !== next.metadata.name))
        throw refusal(request, `PriorityClass ${marked.metadata.name} is already marked as default. Only one default can exist`);
    },
  };
}
