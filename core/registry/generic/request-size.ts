/** How large upstream's request to etcd would be that writes an object: built-in kinds are protobuf there, others JSON. */
import { protobufCodec } from "../../api/codec/protobuf.ts";
import { jsonText } from "../../api/codec/json.ts";
import { gvkOf } from "../../api/meta/gvk.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { builtInFacts } from "../../api/schema/facts.ts";
import { refuseLarge } from "../../../storage/request-size.ts";
import type { Revision, Value } from "../../../storage/store.ts";
import { etcdKey } from "./etcd-key.ts";

/** `key`: /registry/apps/deployments/default/web. Throws a StoreError "too-large". */
export function refuseLargeObject(key: string, value: Value, expected: Revision): void {
  const { metadata: { resourceVersion: _, ...metadata }, ...rest } = value as unknown as ApiObject;
  const [, , group = "", plural = "", ...path] = key.split("/");
  const object = { ...rest, metadata } as unknown as ApiObject;
  const place = etcdKey("/registry", { ...gvkOf(object), group: group === "core" ? "" : group, plural }, path.join("/"));
  refuseLarge({ keyBytes: Buffer.byteLength(place), valueBytes: bytesOf(object), expected });
}

function bytesOf(object: ApiObject): number {
  const gvk = gvkOf(object);
  if (!JSON_GROUPS.has(gvk.group) && builtInFacts.typeOf(gvk)) return protobufCodec.encode(object).length;
  return Buffer.byteLength(jsonText(gvk.group === "apiextensions.k8s.io" ? withOneSchema(object) : object)) + 1; // a line
}

/** Of servers within upstream's that keep JSON. */
const JSON_GROUPS: ReadonlySet<string> = new Set(["apiextensions.k8s.io", "apiregistration.k8s.io"]);

/** Upstream keeps definitions as v1beta1, where versions that have one schema share it. */
function withOneSchema(object: ApiObject): object {
  const { spec } = object as ApiObject & { readonly spec: { readonly versions: readonly { readonly schema?: unknown }[] } };
  const [first, ...others] = spec.versions;
  if (!first || !others.every(({ schema }) => Bun.deepEquals(schema, first.schema))) return object;
  return { ...object, spec: { ...spec, versions: [first, ...others.map(({ schema: _, ...version }) => version)] } };
}
