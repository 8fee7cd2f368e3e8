/** What a request's trace says of the way to the store and the cache, by upstream's names, whichever store it is. */
import { goPackage } from "../../api/codec/body.ts";
import { etcdKey } from "../../registry/generic/etcd-key.ts";
import type { Scope } from "../scope.ts";
import type { Span } from "../tracing/tracer.ts";

/** Admission of the object `name` and its way into the store. A name that is yet to be made is "". */
export async function traced<T>(scope: Scope, what: string, name: string, work: (part: Span | undefined) => Promise<T>): Promise<T> {
  const { span, info: { group, resource }, served: { row, custom }, server: { tracer } } = scope;
  if (!span || !tracer) return await work(undefined);
  const type = custom ? "*unstructured.Unstructured" : `*${goPackage(row.group)}.${row.kind}`;
  const part = span.child(what, 1, { "audit-id": span.auditId, ...(name && { key: keyOf(scope, name) }), type, group, resource });
  try {
    return await tracer.within(part, () => work(part));
  } finally {
    part.end();
  }
}

/** Of many objects that the cache has: end it. Undefined: nothing is traced. */
export function cachePart({ span, served: { row } }: Scope, name: string): Span | undefined {
  return span?.child(name, 1, { "audit-id": span.auditId, type: row.group === "" ? row.plural : `${row.plural}.${row.group}` });
}

/** Where upstream keeps it. */
export function keyOf({ info: { namespace }, served: { row } }: Scope, name: string): string {
  return etcdKey("", row, row.namespaced ? `${namespace}/${name}` : name);
}
