/** What admission webhooks see of the registry: the versions of resources, and objects in each of them. */
import type { ObjectVersions } from "../admission/webhook/object-versions.ts";
import { inKeyOrder, type JsonObject, jsonNodeOf } from "../api/codec/json-document.ts";
import { copyOf } from "../api/meta/copy.ts";
import { type GroupVersionKind, type GroupVersionResource, gvkOf } from "../api/meta/gvk.ts";
import type { ApiObject } from "../api/meta/object-meta.ts";
import { builtInSchemas } from "../api/patch/facts-schema.ts";
import { canonical } from "../api/schema/canonical.ts";
import { diagnose } from "../api/schema/diagnose.ts";
import { builtInFacts } from "../api/schema/facts.ts";
import type { Registry, ServedResource } from "../registry/registry.ts";

export function objectVersions(registry: Registry): ObjectVersions {
  const servedOf = ({ group, version, resource }: GroupVersionResource): ServedResource | undefined => registry.known(group, version, resource);
  return {
    *equivalents({ group, version, resource }) {
      for (const row of registry.knownRowsNamed(resource)) {
        if (row.group === group && row.version === version) continue;
        if (row.group === group || areOne(resource, group, row.group)) yield { group: row.group, version: row.version, resource };
      }
    },
    kindOf: (resource, subresource) => kindOf(servedOf(resource), subresource),
    schemaOf(resource, subresource) {
      const served = servedOf(resource);
      const kind = kindOf(served, subresource);
      return kind && (served?.custom && kind.group === resource.group && kind.kind === served.row.kind ? served.custom.schema : builtInSchemas.schemaOf(kind));
    },
    async shown(object, resource, signal) {
      const served = servedOf(resource);
      if (!served || object.kind !== served.row.kind || object.apiVersion === served.apiVersion) return object;
      const copy = copyOf(object); // conversions are remembered by object, and this one may still change
      await served.ready([copy], signal);
      return served.fromStorage(copy);
    },
    inOrder(object) {
      const type = builtInFacts.typeOf(gvkOf(object));
      return (type ? canonical(type, object as unknown as JsonObject).object : inKeyOrder(object)) as unknown as ApiObject;
    },
    async restored(value, from, to, signal) {
      const object = decoded(value as JsonObject, servedOf(from));
      const served = servedOf(to);
      if (!served || object.kind !== served.row.kind) return object;
      const own = await inForm(object, served, signal);
      served.applyDefaults(own);
      return own;
    },
  };
}

function kindOf(served: ServedResource | undefined, subresource: string): GroupVersionKind | undefined {
  const row = served?.row;
  if (!row || subresource === "") return row && { group: row.group, version: row.version, kind: row.kind };
  return row.subresources.find(({ name }) => name === subresource)?.kind;
}

/** Events are one resource under two groups. */
function areOne(resource: string, a: string, b: string): boolean {
  return resource === "events" && ["", "events.k8s.io"].includes(a) && ["", "events.k8s.io"].includes(b);
}

/** As plug-ins see the objects of a resource: built-in ones as they are stored, custom ones in the version of the request. */
async function inForm(object: ApiObject, served: ServedResource, signal: AbortSignal): Promise<ApiObject> {
  if (!served.custom) return copyOf(served.toStorage(object));
  if (object.apiVersion === served.apiVersion) return object;
  await served.ready([object], signal);
  return copyOf(served.fromStorage(object)) as ApiObject;
}

/** Throws an Error that says why it is no object of its kind. */
function decoded(value: JsonObject, from: ServedResource | undefined): ApiObject {
  const type = builtInFacts.typeOf(gvkOf(value as unknown as ApiObject));
  if (type) {
    const { object, clean } = canonical(type, value);
    const wrong = clean ? undefined : diagnose(type, jsonNodeOf(value)).error;
    if (wrong !== undefined) throw new Error(wrong);
    return object as unknown as ApiObject;
  }
  return from?.custom ? from.custom.decode(value, { report: () => undefined }) : (value as unknown as ApiObject); // unknown fields are dropped without a word, as upstream does it
}
