import { expect, test } from "vitest";
import type { ResourceClaim, ResourceClaimStatus } from "../../api/gen/resource.v1.ts";
import { invalid, notAllowed } from "../../api/meta/status-error.ts";
import type { UserInfo } from "../../api/request/user.ts";
import type { Permissions } from "../generic/resource.ts";
import { claimPermissions } from "./claim-permissions.ts";

const allowing = (verb: string, ...allowed: string[]): Permissions => ({
  verb,
  refusal: async (asked) => (allowed.includes(`${asked.verb} ${asked.subresource} ${asked.namespace}/${asked.name}`) ? undefined : notAllowed({ user: driver.name, group: "resource.k8s.io", resource: "resourceclaims", ...asked }, "").message),
});
const driver: UserInfo = { name: "system:serviceaccount:default:driver", groups: [], extra: { "authentication.kubernetes.io/node-name": ["n1"] } };
const on = (node: string): ResourceClaimStatus => ({ allocation: { nodeSelector: { nodeSelectorTerms: [{ matchFields: [{ key: "metadata.name", operator: "In", values: [node] }] }] } } });
const claim = (status: ResourceClaimStatus) => ({ apiVersion: "resource.k8s.io/v1", kind: "ResourceClaim", metadata: { name: "c", namespace: "default" }, spec: {}, status }) as ResourceClaim;
const device = { driver: "d", pool: "p", device: "a", conditions: [] };
const FORBIDDEN = (verb: string, subresource: string, where: string): string => `User "system:serviceaccount:default:driver" cannot ${verb} resource "resourceclaims/${subresource}" in API group "resource.k8s.io" ${where}`;

test.each<[string, ResourceClaimStatus, ResourceClaimStatus, string[], string]>([
  ["nothing that matters", on("n1"), on("n1"), [], "ok"],
  ["an allocation, by who may bind", {}, on("n1"), ["update binding /"], "ok"],
  ["an allocation, by a driver", {}, on("n1"), ["associated-node:update driver default/d"],
    `422 ResourceClaim.resource.k8s.io "c" is invalid: status.allocation: Forbidden: changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", verb="update" permission: resourceclaims.resource.k8s.io is forbidden: ${FORBIDDEN("update", "binding", "at the cluster scope")}`],
  ["a device on its own node", on("n1"), { ...on("n1"), devices: [device] }, ["associated-node:update driver default/d"], "ok"],
  ["a device on another node", on("n2"), { ...on("n2"), devices: [device] }, ["associated-node:update driver default/d"],
    `422 ResourceClaim.resource.k8s.io "c" is invalid: status.devices: Forbidden: changing status.devices requires resource="resourceclaims/driver", verb="[arbitrary-node:update]" permission: resourceclaims.resource.k8s.io "d" is forbidden: ${FORBIDDEN("arbitrary-node:update", "driver", 'in the namespace "default"')}`],
  ["a device anywhere, by who may", on("n2"), { ...on("n2"), devices: [device] }, ["arbitrary-node:update driver default/d"], "ok"],
  ["another driver's device is taken away", { ...on("n1"), devices: [{ ...device, driver: "other" }, device] }, { ...on("n1"), devices: [device] }, ["associated-node:update driver default/d"],
    `422 ResourceClaim.resource.k8s.io "c" is invalid: status.devices: Forbidden: changing status.devices requires resource="resourceclaims/driver", verb="[associated-node:update arbitrary-node:update]" permission: resourceclaims.resource.k8s.io "other" is forbidden: ${FORBIDDEN("associated-node:update", "driver", 'in the namespace "default"')}`],
])("%s", async (_, old, next, allowed, expected) => {
  const errors = await claimPermissions(claim(next), claim(old), { permissions: allowing("update", ...allowed), user: driver, nowMs: 0, dryRun: false, uuid: () => "" });
  expect(errors.length === 0 ? "ok" : `422 ${invalid({ group: "resource.k8s.io", kind: "ResourceClaim" }, "c", errors).message}`).toBe(expected);
});

test("who patches needs the permission to patch", async () => {
  const refused = async (...allowed: string[]) => (await claimPermissions(claim(on("n1")), claim({}), { permissions: allowing("patch", ...allowed), user: driver, nowMs: 0, dryRun: false, uuid: () => "" })).map(({ detail }) => detail);
  expect([await refused("patch binding /"), await refused("update binding /")]).toEqual([[], [expect.stringContaining('verb="patch" permission: ')]]);
});
