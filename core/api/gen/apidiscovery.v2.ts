// Written by core/api/schema/generate.ts from facts.txt.
import type { ObjectMeta } from "../meta/object-meta.ts";
import type { GroupVersionKind } from "./meta.v1.ts";
export interface APIGroupDiscovery {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  versions?: APIVersionDiscovery[] | undefined;
}
export interface APIResourceDiscovery {
  resource: string;
  responseKind?: GroupVersionKind | undefined;
  scope: ResourceScope;
  singularResource: string;
  verbs: string[];
  shortNames?: string[] | undefined;
  categories?: string[] | undefined;
  subresources?: APISubresourceDiscovery[] | undefined;
}
export interface APISubresourceDiscovery {
  subresource: string;
  responseKind?: GroupVersionKind | undefined;
  acceptedTypes?: GroupVersionKind[] | undefined;
  verbs: string[];
}
export interface APIVersionDiscovery {
  version: string;
  resources?: APIResourceDiscovery[] | undefined;
  freshness?: DiscoveryFreshness | undefined;
}
export type DiscoveryFreshness = string;
export type ResourceScope = string;
