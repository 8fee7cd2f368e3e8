import { expect, test } from "vitest";
import { stored } from "../../../test/scheduling-cluster.ts";
import type { ResourceClaim } from "../../api/gen/resource.v1.ts";
import { metricsRegistry } from "../../observe/metrics.ts";
import { claimMeter } from "./metrics.ts";

test("claims are counted by what they are of, and those that are made from templates as they are", () => {
  const metrics = metricsRegistry();
  const claim = (name: string, { annotations = {}, adminAccess = false, status = {} }): ResourceClaim => stored("resource.k8s.io/v1", "ResourceClaim", `n/${name}`, { metadata: { annotations }, spec: { devices: { requests: [{ name: "r", exactly: { deviceClassName: "c", ...(adminAccess ? { adminAccess } : {}) } }] } }, status });
  const own = claim("own", { adminAccess: true });
  const all = [own, claim("a", { annotations: { "resource.kubernetes.io/pod-claim-name": "gpu" }, status: { allocation: {} } }), claim("b", { annotations: { "resource.kubernetes.io/pod-claim-name": "gpu" }, status: { allocation: {} } }), claim("c", { annotations: { "resource.kubernetes.io/extended-resource-claim": "true" } })];
  const meter = claimMeter(metrics, () => all);
  meter.created("failure", own);
  meter.created("success", all[1]!);
  expect(metrics.render().split("\n").filter((line) => line.startsWith("resourceclaim_")).sort()).toEqual([
    'resourceclaim_controller_creates_total{admin_access="false",status="success"} 1',
    'resourceclaim_controller_creates_total{admin_access="true",status="failure"} 1',
    'resourceclaim_controller_resource_claims{admin_access="false",allocated="false",source="extended_resource"} 1',
    'resourceclaim_controller_resource_claims{admin_access="false",allocated="true",source="resource_claim_template"} 2',
    'resourceclaim_controller_resource_claims{admin_access="true",allocated="false",source=""} 1',
  ]);
});
