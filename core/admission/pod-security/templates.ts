/** Where pods' templates stand in workloads, and which changes of a pod matter. Source: kubernetes v1.36 staging/src/k8s.io/pod-security-admission/admission/admission.go */
import type { Pod } from "../../api/gen/core.v1.ts";
import type { AdmissionRequest } from "../plugin.ts";
import type { PodTemplate } from "./evaluate.ts";

export const TEMPLATE_PATHS: Readonly<Record<string, readonly string[]>> = {
  "/replicationcontrollers": ["spec", "template"], "/podtemplates": ["template"],
  "apps/replicasets": ["spec", "template"], "apps/deployments": ["spec", "template"], "apps/statefulsets": ["spec", "template"], "apps/daemonsets": ["spec", "template"],
  "batch/jobs": ["spec", "template"], "batch/cronjobs": ["spec", "jobTemplate", "spec", "template"],
};

export function templateOf({ group, resource, object }: AdmissionRequest): PodTemplate | undefined {
  const path = TEMPLATE_PATHS[`${group}/${resource}`] ?? [];
  const found = path.reduce<unknown>((at, name) => (at as Readonly<Record<string, unknown>> | undefined)?.[name], object) as PodTemplate | undefined;
  return found?.spec ? found : undefined;
}

/** Of what the standards look at, only containers can change in a pod: new ones, or other images. */
export function isSignificantUpdate({ spec }: Readonly<Pod>, { spec: old }: Readonly<Pod>): boolean {
  for (const kind of ["containers", "initContainers"] as const) {
    const [next, before] = [spec[kind] ?? [], old[kind] ?? []];
    if (next.length !== before.length || next.some(({ image }, i) => image !== before[i]!.image)) return true;
  }
  return (spec.ephemeralContainers ?? []).some(({ name, image }) => old.ephemeralContainers?.find((one) => one.name === name)?.image !== image);
}
