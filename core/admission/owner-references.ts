/**
 * OwnerReferencesPermissionEnforcement (off unless asked for): who changes owners must be allowed to delete the object, and who blocks an
 * owner's deletion must be allowed to change that owner's finalizers.
 *
 * Source: kubernetes v1.36 plugin/pkg/admission/gc/gc_admission.go
 */
import { parseApiVersion } from "../api/meta/gvk.ts";
import type { ApiObject, OwnerReference } from "../api/meta/object-meta.ts";
import { type Asked, askedOf } from "../api/request/attributes.ts";
import type { Authorizer } from "../authz/authorizer.ts";
import type { AdmissionPlugin, AdmissionRequest } from "./plugin.ts";
import { refusal, sameValue } from "./refuse.ts";

export interface OwnerReferencesDeps {
  readonly authorizer: Authorizer;
  /** The resources a kind may be, from discovery or the registry. Empty: there is no such kind. */
  resourcesOf(kind: { readonly group: string; readonly version: string; readonly kind: string }): readonly { readonly plural: string; readonly namespaced: boolean }[];
}

/** "group.resource/subresource" of what keeps owners as they are. */
const EXEMPT: ReadonlySet<string> = new Set([".pods/status"]);

export function ownerReferencesPermissionEnforcement({ authorizer, resourcesOf }: OwnerReferencesDeps): AdmissionPlugin {
  /** Undefined: yes. Else why not. */
  async function may(request: AdmissionRequest, asked: Asked): Promise<string | undefined> {
    const { decision, reason, error = "<nil>" } = await authorizer.authorize(askedOf(request.user, asked));
    return decision === "allow" ? undefined : `${reason}, ${error}`;
  }

  return {
    name: "OwnerReferencesPermissionEnforcement",
    handles: ({ operation, group, resource, subresource }) => (operation === "CREATE" || operation === "UPDATE") && !EXEMPT.has(`${group}.${resource}/${subresource}`),
    async validate(request) {
      const { operation, group, version, resource, subresource, namespace, name, object, oldObject } = request;
      if (!changesOwners(object, oldObject)) return;
      if (operation !== "CREATE") {
        const reason = await may(request, { verb: "delete", group, version, resource, subresource, namespace, name });
        if (reason !== undefined) throw refusal(request, `cannot set an ownerRef on a resource you can't delete: ${reason}`);
      }
      const blocking = newlyBlocking(ownersOf(object), ownersOf(oldObject));
      if (blocking.length === 0) return;
      if (await may(request, { verb: "update", group: "*", version: "*", resource: "*", subresource: "finalizers", namespace: "", name: "*" }) === undefined) return;
      for (const owner of blocking) {
        const kind = { ...parseApiVersion(owner.apiVersion), kind: owner.kind };
        const resources = resourcesOf(kind);
        if (resources.length === 0)
          throw refusal(request, `cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion ${owner.apiVersion} Kind ${owner.kind}: no matches for kind "${owner.kind}" in version "${owner.apiVersion}"`);
        for (const { plural, namespaced } of resources) {
          const reason = await may(request, { verb: "update", group: kind.group, version: kind.version, resource: plural, subresource: "finalizers", namespace: namespaced ? namespace : "", name: owner.name });
          if (reason !== undefined) throw refusal(request, `cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: ${reason}`);
        }
      }
    },
  };
}

function ownersOf(object: Readonly<ApiObject> | undefined): readonly OwnerReference[] { return object?.metadata?.ownerReferences ?? []; }

function changesOwners(next: Readonly<ApiObject> | undefined, old: Readonly<ApiObject> | undefined): boolean { return !sameValue(ownersOf(next), ownersOf(old)); }

function newlyBlocking(next: readonly OwnerReference[], old: readonly OwnerReference[]): OwnerReference[] {
  const before = new Set(old.filter(({ blockOwnerDeletion }) => blockOwnerDeletion === true).map(({ uid }) => uid));
  return next.filter(({ uid, blockOwnerDeletion }) => blockOwnerDeletion === true && !before.has(uid));
}
