/** How many ResourceClaims there are, and were made. Source: kubernetes v1.36 pkg/controller/resourceclaim/metrics/metrics.go, controller.go customCollector */
import type { ResourceClaim } from "../../api/gen/resource.v1.ts";
import type { Labels, Metrics } from "../../observe/metrics.ts";
import { POD_CLAIM } from "./plan.ts";

const EXTENDED_CLAIM = "resource.kubernetes.io/extended-resource-claim";

export interface ClaimMeter { created(status: "success" | "failure", claim: Pick<ResourceClaim, "spec">): void }

export function claimMeter(metrics: Metrics, claims: () => Iterable<Readonly<ResourceClaim>>): ClaimMeter {
  const creates = metrics.counter("resourceclaim_controller_creates_total", "[ALPHA] Number of ResourceClaims creation requests, categorized by creation status and admin access");
  metrics.gaugeFrom(
    "resourceclaim_controller_resource_claims",
    "[ALPHA] Number of ResourceClaims, categorized by allocation status, admin access, and source. Source can be 'resource_claim_template' (created from a template), 'extended_resource' (extended resources), or empty (manually created by a user).",
    () => [...Map.groupBy(claims(), (claim) => JSON.stringify(labelsFor(claim)))].map(([labels, { length }]) => [JSON.parse(labels) as Labels, length] as const),
  );
  return { created: (status, { spec }) => creates.inc({ status, admin_access: hasAdminAccess(spec) }) };
}

function labelsFor({ spec, status, metadata: { annotations = {} } }: Readonly<ResourceClaim>): Labels {
  const source = annotations[EXTENDED_CLAIM] === "true" ? "extended_resource" : annotations[POD_CLAIM] ? "resource_claim_template" : "";
  return { allocated: String(status?.allocation !== undefined), admin_access: hasAdminAccess(spec), source };
}

function hasAdminAccess(spec: ResourceClaim["spec"]): "true" | "false" { return spec.devices?.requests?.some(({ exactly }) => exactly?.adminAccess === true) ? "true" : "false"; }
