/**
 * RoleBinding and ClusterRoleBinding (rbac.authorization.k8s.io/v1): who has a role. Which role cannot be changed: that would change who may do what behind the binding's back.
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/authorization-resources/cluster-role-binding-v1/
 * Source: kubernetes v1.36 pkg/registry/rbac/{rolebinding,clusterrolebinding}/strategy.go, pkg/apis/rbac/{v1/defaults,validation/validation}.go
 */
import { child, type FieldError, index, invalid, notSupported, required } from "../../api/meta/field-error.ts";
import type { ClusterRoleBinding, RoleBinding, RoleRef, Subject } from "../../api/gen/rbac.v1.ts";
import { dns1123Subdomain, pathSegmentName } from "../../api/meta/names.ts";
import { problems } from "../core/checks/values.ts";
import { defineResource, type Resource } from "../generic/resource.ts";

type Binding = RoleBinding | ClusterRoleBinding;
const GROUP = "rbac.authorization.k8s.io";

export const roleBindings: Resource<RoleBinding> = binding<RoleBinding>("RoleBinding", "rolebindings", ["Role", "ClusterRole"]);
export const clusterRoleBindings: Resource<ClusterRoleBinding> = binding<ClusterRoleBinding>("ClusterRoleBinding", "clusterrolebindings", ["ClusterRole"]);

function binding<T extends Binding>(kind: string, plural: string, roleKinds: readonly string[]): Resource<T> {
  return defineResource<T>({
    group: GROUP, version: "v1", kind, plural,
    createOnUpdate: true, generation: false, updateOrder: "change last", validateName: pathSegmentName,

    defaults({ roleRef, subjects }) {
      if (roleRef) roleRef.apiGroup ||= GROUP;
      for (const subject of subjects ?? []) if (subject.kind === "User" || subject.kind === "Group") subject.apiGroup ||= GROUP;
    },
    *validate({ roleRef, subjects }) {
      yield* validateRoleRef("roleRef", roleRef, roleKinds);
      for (const [i, subject] of (subjects ?? []).entries()) yield* validateSubject(index("subjects", i), subject, roleKinds.includes("Role"));
    },
    *validateUpdate(next, old) {
      const [ref, before] = [spelledAsInGo(next.roleRef), spelledAsInGo(old.roleRef)];
      if (!Bun.deepEquals(ref, before)) yield invalid("roleRef", ref, "cannot change roleRef");
    },
  });
}

function* validateRoleRef(path: string, { apiGroup = "", kind = "", name = "" }: RoleRef, kinds: readonly string[]): Iterable<FieldError> {
  if (apiGroup !== GROUP) yield notSupported(child(path, "apiGroup"), apiGroup, [GROUP]);
  if (!kinds.includes(kind)) yield notSupported(child(path, "kind"), kind, kinds);
  if (name === "") yield required(child(path, "name"));
  else yield* problems(child(path, "name"), name, pathSegmentName(name));
}

function* validateSubject(path: string, { kind = "", apiGroup = "", name = "", namespace = "" }: Subject, isNamespaced: boolean): Iterable<FieldError> {
  if (name === "") yield required(child(path, "name"));
  switch (kind) {
    case "ServiceAccount":
      if (name !== "") yield* problems(child(path, "name"), name, dns1123Subdomain(name));
      if (apiGroup !== "") yield notSupported(child(path, "apiGroup"), apiGroup, [""]);
      if (!isNamespaced && namespace === "") yield required(child(path, "namespace"));
      break;
    case "User":
    case "Group":
      if (apiGroup !== GROUP) yield notSupported(child(path, "apiGroup"), apiGroup, [GROUP]);
      break;
    default:
      yield notSupported(child(path, "kind"), kind, ["ServiceAccount", "User", "Group"]);
  }
}

/** As upstream's message shows it. */
function spelledAsInGo({ apiGroup = "", kind = "", name = "" }: Readonly<RoleRef>): unknown {
  return { APIGroup: apiGroup, Kind: kind, Name: name };
}
