/** What webhooks need to know of the API's resources: their versions, and objects in each of them. Made by core/server, over the registry. */
import type { GroupVersionKind, GroupVersionResource } from "../../api/meta/gvk.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import type { JsonMap } from "../../api/patch/json-value.ts";
import type { ObjectSchema } from "../../api/patch/schema.ts";

export interface ObjectVersions {
  /** The same objects under other versions or groups. */
  equivalents(resource: GroupVersionResource): Iterable<GroupVersionResource>;
  /** What the resource, or its subresource, takes. */
  kindOf(resource: GroupVersionResource, subresource: string): GroupVersionKind | undefined;
  /** What patches must know of that kind. */
  schemaOf(resource: GroupVersionResource, subresource: string): ObjectSchema | undefined;
  /** An object as that resource shows it. May be the object itself. */
  shown(object: Readonly<ApiObject>, resource: GroupVersionResource, signal: AbortSignal): Promise<Readonly<ApiObject>>;
  /** With its fields in the order upstream writes them in, wherever a default or a plug-in has put them. May be the object itself. */
  inOrder(object: Readonly<ApiObject>): Readonly<ApiObject>;
  /** What a webhook has made of a `shown` object: decoded, in the form of the request's own resource as plug-ins see it, and defaulted. Throws if it is no object of its kind. */
  restored(value: JsonMap, from: GroupVersionResource, to: GroupVersionResource, signal: AbortSignal): Promise<ApiObject>;
}
