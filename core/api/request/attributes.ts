/** What a request asks for, as authorization, admission, flow control and audit see it. */
import type { FieldSelectorRequirement, LabelSelectorRequirement } from "../gen/meta.v1.ts";
import type { UserInfo } from "./user.ts";

export type Verb =
  | "get" | "list" | "watch" | "create" | "update" | "patch" | "delete" | "deletecollection" | "proxy" // resource requests
  | "post" | "put" | "head" | "options" | "connect" | string; // non-resource requests, and virtual verbs such as "bind" and "impersonate"

export interface ResourceAttributes {
  readonly isResource: true;
  readonly verb: Verb;
  readonly group: string;
  readonly version: string;
  /** Plural, lower case. */
  readonly resource: string;
  readonly subresource: string;
  /** "" for cluster scope, or for a list across namespaces. */
  readonly namespace: string;
  /** "" for collections. */
  readonly name: string;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  /** What the selectors say, where a review gave it in an order of its own. */
  readonly requirements?: { readonly labels?: readonly LabelSelectorRequirement[]; readonly fields?: readonly FieldSelectorRequirement[] } | undefined;
  readonly path: string;
}

export interface PathAttributes {
  readonly isResource: false;
  readonly verb: Verb;
  readonly path: string;
}

export type Attributes = (ResourceAttributes | PathAttributes) & { readonly user: UserInfo };

/** What is asked beside a request, of whoever makes it: whether it might refer to something, or change a part. What is left out is "". */
export type Asked = Pick<ResourceAttributes, "verb" | "group" | "version" | "resource"> & Partial<Pick<ResourceAttributes, "subresource" | "namespace" | "name">>;

export function askedOf(user: UserInfo, asked: Asked): Attributes { return { isResource: true, subresource: "", namespace: "", name: "", path: "", user, ...asked }; }
