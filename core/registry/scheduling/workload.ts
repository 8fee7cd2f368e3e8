/**
 * Workload and PodGroup (scheduling.k8s.io/v1alpha2): pods that are scheduled together or not at all. Alpha: served when asked for, used by nothing.
 *
 * Source: kubernetes v1.36 pkg/registry/scheduling/{workload,podgroup}/strategy.go
 */
import type { PodGroup, PodGroupTemplate, Workload } from "../../api/gen/scheduling.v1alpha2.ts";
import { statusPart } from "../core/status-part.ts";
import { defineResource } from "../generic/resource.ts";

const GROUP = { group: "scheduling.k8s.io", version: "v1alpha2" };
/** Each behind a gate of its own that is off. */
const GATED = ["schedulingConstraints", "resourceClaims", "disruptionMode", "priorityClassName", "priority"] as const;

type Gated = Partial<Record<(typeof GATED)[number], unknown>>;

export const workloads = defineResource<Workload>({
  ...GROUP, kind: "Workload", plural: "workloads", generation: false,
  prepareForCreate: ({ spec }) => dropGatedTemplates(spec.podGroupTemplates, []),
  prepareForUpdate: (next, old) => dropGatedTemplates(next.spec.podGroupTemplates, old.spec.podGroupTemplates ?? []),
});

export const podGroups = defineResource<PodGroup>({
  ...GROUP, kind: "PodGroup", plural: "podgroups", generation: false,
  prepareForCreate(group) {
    group.status = {};
    dropGated(group.spec as Gated, undefined);
  },
  prepareForUpdate: (next, old) => dropGated(next.spec as Gated, old.spec as Gated),
  subresources: { status: statusPart<PodGroup>({ keepsMetadata: true }) },
});

function dropGatedTemplates(templates: PodGroupTemplate[] | undefined, old: readonly PodGroupTemplate[]): void {
  for (const [i, template] of (templates ?? []).entries()) dropGated(template as Gated, old[i] as Gated | undefined);
}

function dropGated(spec: Gated, old: Readonly<Gated> | undefined): void {
  for (const field of GATED) if (old?.[field] === undefined) delete spec[field];
}
