/**
 * Who may say what in the status of a ResourceClaim: its allocation and reservations are for those who may bind claims, what is known of a device for its
 * driver. A driver's ServiceAccount may be allowed to speak of devices on its own node only: the verb then begins with "associated-node:".
 *
 * Upstream asks in the registry, which here knows no authorizer. It cannot be switched off.
 *
 * Source: kubernetes v1.36 pkg/registry/resource/utils.go AuthorizedForBinding, AuthorizedForDeviceStatus
 */
import type { AllocatedDeviceStatus, AllocationResult, ResourceClaim, ResourceClaimStatus } from "../api/gen/resource.v1.ts";
import { type FieldError, forbidden } from "../api/meta/field-error.ts";
import { invalid, notAllowed } from "../api/meta/status-error.ts";
import type { Authorizer } from "../authz/authorizer.ts";
import type { AdmissionPlugin, AdmissionRequest } from "./plugin.ts";
import { isResource, sameValue } from "./refuse.ts";

const GROUP = "resource.k8s.io";
const VERB = "update";
const NODE_NAME = "authentication.kubernetes.io/node-name";

export function claimStatusAuthorization(authorizer: Authorizer): AdmissionPlugin {
  return {
    name: "ResourceClaimStatusAuthorization",
    handles: (request) => request.operation === "UPDATE" && isResource(request, `resourceclaims.${GROUP}`, "status"),
    async validate(request) {
      const next = (request.object as ResourceClaim).status ?? {};
      const old = (request.oldObject as Readonly<ResourceClaim>).status ?? {};
      const errors = [...await binding(request, next, old), ...(next.allocation ? await deviceStatus(request, next, old) : [])];
      if (errors.length > 0) throw invalid({ group: GROUP, kind: "ResourceClaim" }, request.name, errors);
    },
  };

  async function binding(request: AdmissionRequest, next: ResourceClaimStatus, old: Readonly<ResourceClaimStatus>): Promise<FieldError[]> {
    if (sameValue(next.allocation, old.allocation) && sameValue(next.reservedFor, old.reservedFor)) return [];
    const verb = VERB;
    const refused = await refusalOf(request, { verb, subresource: "binding", namespace: "", name: "" });
    return refused === undefined ? [] : [forbidden("status.allocation", `changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", verb="${verb}" permission: ${refused}`)];
  }

  async function deviceStatus(request: AdmissionRequest, next: ResourceClaimStatus, old: Readonly<ResourceClaimStatus>): Promise<FieldError[]> {
    const near = isOnNode(request, next.allocation);
    const verbs = [...(near ? [`associated-node:${VERB}`] : []), `arbitrary-node:${VERB}`];
    const errors: FieldError[] = [];
    for (const name of changedDrivers(next.devices ?? [], old.devices ?? [])) {
      const refusals = await Promise.all(verbs.map((verb) => refusalOf(request, { verb, subresource: "driver", namespace: request.namespace, name })));
      if (refusals.every((refused) => refused !== undefined)) errors.push(forbidden("status.devices", `changing status.devices requires resource="resourceclaims/driver", verb="[${verbs.join(" ")}]" permission: ${refusals[0]}`));
    }
    return errors;
  }

  /** undefined: allowed. Admission does not see whether it was a patch: who may do the one may do the other. */
  async function refusalOf({ user, version }: AdmissionRequest, asked: { readonly verb: string; readonly subresource: string; readonly namespace: string; readonly name: string }): Promise<string | undefined> {
    const attributes = { isResource: true as const, group: GROUP, version, resource: "resourceclaims", path: "", user, ...asked };
    const { decision, reason } = await authorizer.authorize(attributes);
    if (decision === "allow" || (await authorizer.authorize({ ...attributes, verb: asked.verb.replace(VERB, "patch") })).decision === "allow") return undefined;
    return notAllowed({ user: user.name, group: GROUP, resource: "resourceclaims", ...asked }, reason).message;
  }
}

/** A ServiceAccount of a pod on the one node that the devices are on. */
function isOnNode({ user }: AdmissionRequest, allocation: AllocationResult | undefined): boolean {
  const terms = allocation?.nodeSelector?.nodeSelectorTerms ?? [];
  const [field, ...more] = terms.length === 1 && (terms[0]!.matchExpressions ?? []).length === 0 ? terms[0]!.matchFields ?? [] : [];
  if (!field || more.length > 0 || field.key !== "metadata.name" || field.operator !== "In" || field.values?.length !== 1) return false;
  const nodes = user.extra?.[NODE_NAME] ?? [];
  return user.name.startsWith("system:serviceaccount:") && nodes.length === 1 && nodes[0] === field.values[0];
}

function changedDrivers(next: readonly AllocatedDeviceStatus[], old: readonly Readonly<AllocatedDeviceStatus>[]): string[] {
  const idOf = ({ driver, pool, device, shareID = "" }: Readonly<AllocatedDeviceStatus>): string => JSON.stringify([driver, pool, device, shareID]);
  const before = new Map(old.map((one) => [idOf(one), one]));
  const after = new Set(next.map(idOf));
  const changed = next.filter((one) => !before.has(idOf(one)) || !sameValue(before.get(idOf(one)), one));
  return [...new Set([...changed, ...old.filter((one) => !after.has(idOf(one)))].map(({ driver }) => driver))].sort();
}
