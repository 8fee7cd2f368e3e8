/**
 * Where upstream keeps an object, which some refusals tell. Ours is another place.
 *
 * Source: kubernetes v1.36 pkg/kubeapiserver/default_storage_factory_builder.go SpecialDefaultResourcePrefixes
 */
import { builtInFacts } from "../../api/schema/facts.ts";

interface Keyed { readonly group: string; readonly version: string; readonly kind: string; readonly plural: string }

const PLACES: Readonly<Record<string, string>> = {
  replicationcontrollers: "controllers", endpoints: "services/endpoints", nodes: "minions", services: "services/specs", ingresses: "ingress",
  customresourcedefinitions: "apiextensions.k8s.io/customresourcedefinitions", apiservices: "apiregistration.k8s.io/apiservices",
};

/** `root`: where upstream's store begins. `path`: namespace/name, or the name. */
export function etcdKey(root: "/registry" | "", resource: Keyed, path: string): string {
  const { group, plural } = resource;
  const place = builtInFacts.typeOf(resource) ? PLACES[plural] ?? plural : `${group}/${plural}`;
  return `${root}/${place}/${path}`;
}
