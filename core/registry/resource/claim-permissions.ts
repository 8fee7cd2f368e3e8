/**
 * Who may say what in the status of a ResourceClaim: its allocation and reservations are for those who may bind claims, what is known of a device for its
 * driver. A driver's ServiceAccount may be allowed to speak of devices on its own node only: the verb then begins with "associated-node:".
 *
 * Source: kubernetes v1.36 pkg/registry/resource/utils.go AuthorizedForBinding, AuthorizedForDeviceStatus
 */
import type { AllocatedDeviceStatus, AllocationResult, ResourceClaim, ResourceClaimStatus } from "../../api/gen/resource.v1.ts";
import { type FieldError, forbidden } from "../../api/meta/field-error.ts";
import type { UserInfo } from "../../api/request/user.ts";
import { semanticEqual } from "../core/checks/equal.ts";
import type { Permissions, WriteContext } from "../generic/resource.ts";

const NODE_NAME = "authentication.kubernetes.io/node-name";

export async function claimPermissions({ status: next = {}, metadata }: Readonly<ResourceClaim>, { status: old = {} }: Readonly<ResourceClaim>, { permissions, user }: WriteContext): Promise<readonly FieldError[]> {
  if (!permissions) return [];
  return [...await binding(permissions, next, old), ...(next.allocation ? await deviceStatus(permissions, { next, old, user, namespace: metadata.namespace ?? "" }) : [])];
}

async function binding({ verb, refusal }: Permissions, next: Readonly<ResourceClaimStatus>, old: Readonly<ResourceClaimStatus>): Promise<FieldError[]> {
  if (semanticEqual(next.allocation, old.allocation) && semanticEqual(next.reservedFor, old.reservedFor)) return [];
  const refused = await refusal({ verb, subresource: "binding", namespace: "", name: "" });
  return refused === undefined ? [] : [forbidden("status.allocation", `changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", verb="${verb}" permission: ${refused}`)];
}

interface Change { readonly next: Readonly<ResourceClaimStatus>; readonly old: Readonly<ResourceClaimStatus>; readonly user: UserInfo; readonly namespace: string }

async function deviceStatus({ verb, refusal }: Permissions, { next, old, user, namespace }: Change): Promise<FieldError[]> {
  const verbs = [...(isOnNode(user, next.allocation) ? [`associated-node:${verb}`] : []), `arbitrary-node:${verb}`];
  const errors: FieldError[] = [];
  for (const name of changedDrivers(next.devices ?? [], old.devices ?? [])) {
    const refusals = await Promise.all(verbs.map((one) => refusal({ verb: one, subresource: "driver", namespace, name })));
    if (refusals.every((refused) => refused !== undefined)) errors.push(forbidden("status.devices", `changing status.devices requires resource="resourceclaims/driver", verb="[${verbs.join(" ")}]" permission: ${refusals[0]}`));
  }
  return errors;
}

/** A ServiceAccount of a pod on the one node that the devices are on. */
function isOnNode(user: UserInfo, allocation: Readonly<AllocationResult> | undefined): boolean {
  const terms = allocation?.nodeSelector?.nodeSelectorTerms ?? [];
  const [field, ...more] = terms.length === 1 && (terms[0]!.matchExpressions ?? []).length === 0 ? terms[0]!.matchFields ?? [] : [];
  if (!field || more.length > 0 || field.key !== "metadata.name" || field.operator !== "In" || field.values?.length !== 1) return false;
  const nodes = user.extra?.[NODE_NAME] ?? [];
  return user.name.startsWith("system:serviceaccount:") && nodes.length === 1 && nodes[0] === field.values[0];
}

function changedDrivers(next: readonly Readonly<AllocatedDeviceStatus>[], old: readonly Readonly<AllocatedDeviceStatus>[]): string[] {
  const idOf = ({ driver, pool, device, shareID = "" }: Readonly<AllocatedDeviceStatus>): string => JSON.stringify([driver, pool, device, shareID]);
  const before = new Map(old.map((one) => [idOf(one), one]));
  const after = new Set(next.map(idOf));
  const changed = next.filter((one) => !before.has(idOf(one)) || !semanticEqual(before.get(idOf(one)), one));
  return [...new Set([...changed, ...old.filter((one) => !after.has(idOf(one)))].map(({ driver }) => driver))].sort();
}
