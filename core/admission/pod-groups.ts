/**
 * Three plug-ins for groups of pods, there where GenericWorkload is switched on: PodGroupProtection, PodGroupWorkloadExists, JobValidation.
 *
 * Source: kubernetes v1.36 plugin/pkg/admission/{scheduling/podgroupprotection,podgroup,job}
 */
import type { Job } from "../api/gen/batch.v1.ts";
import type { PodGroup, Workload } from "../api/gen/scheduling.v1alpha2.ts";
import { goQuote } from "../api/meta/go-quote.ts";
import { hasFinalizer, isControlledBy, isDeleting, namespaceOf } from "../api/meta/object-meta.ts";
import type { ResourceClient } from "../client/client.ts";
import type { Informer } from "../client/informer.ts";
import { listAll, type Lookup } from "../client/lookup.ts";
import type { AdmissionPlugin } from "./plugin.ts";
import { isResource, refusal } from "./refuse.ts";

const POD_GROUPS = "podgroups.scheduling.k8s.io";
const POD_GROUP_FINALIZER = "scheduling.k8s.io/podgroup-protection";

/** A group with pods that have not ended is not deleted before them: a controller removes the finalizer. */
export const podGroupProtection: AdmissionPlugin = {
  name: "PodGroupProtection",
  handles: (request) => request.operation === "CREATE" && isResource(request, POD_GROUPS),
  admit({ object }) {
    const { metadata } = object!;
    if (!hasFinalizer(object!, POD_GROUP_FINALIZER)) metadata.finalizers = [...(metadata.finalizers ?? []), POD_GROUP_FINALIZER];
  },
};

/** The template that a group says it is made of is there. */
export function podGroupWorkloadExists({ workloads }: { readonly workloads: Lookup<Workload> }): AdmissionPlugin {
  return {
    name: "PodGroupWorkloadExists",
    handles: (request) => request.operation === "CREATE" && isResource(request, POD_GROUPS),
    async validate(request) {
      const reference = (request.object as PodGroup).spec.podGroupTemplateRef?.workload;
      if (!reference) return;
      const { workloadName: name, podGroupTemplateName: template } = reference;
      const workload = await workloads.find(request.namespace, name, request.signal);
      if (!workload) throw refusal(request, `PodGroup rejected: Workload ${goQuote(name)} not found`);
      if (isDeleting(workload)) throw refusal(request, `PodGroup rejected: Workload ${goQuote(name)} is being deleted`);
      if (!workload.spec.podGroupTemplates.some((one) => one.name === template)) throw refusal(request, `PodGroup rejected: PodGroupTemplate ${goQuote(template)} not found in Workload ${goQuote(name)}`);
    },
  };
}

/** A Job whose pods are scheduled all or none keeps their number: the group would not follow. */
export function jobValidation({ podGroups, informer, client }: { readonly podGroups: Lookup<PodGroup>; readonly informer: Informer<PodGroup>; readonly client: ResourceClient<PodGroup> }): AdmissionPlugin {
  async function groupsOf(job: Readonly<Job>, signal: AbortSignal): Promise<readonly Readonly<PodGroup>[]> {
    const namespace = namespaceOf(job), name = job.spec.template.spec?.schedulingGroup?.podGroupName;
    if (name === undefined) return (await listAll(informer, client, { namespace, signal })).filter((group) => isControlledBy(group, job));
    const named = await podGroups.find(namespace, name, signal);
    return named ? [named] : [];
  }
  return {
    name: "JobValidation",
    handles: (request) => request.operation === "UPDATE" && isResource(request, "jobs.batch"),
    async validate(request) {
      const old = request.oldObject as Readonly<Job>;
      if ((request.object as Job).spec.parallelism === old.spec.parallelism) return;
      const gang = (await groupsOf(old, request.signal)).find(({ spec }) => spec.schedulingPolicy.gang);
      if (gang) throw refusal(request, `cannot change parallelism for a Job referencing gang-scheduled PodGroup ${goQuote(gang.metadata.name)}`);
    },
  };
}
