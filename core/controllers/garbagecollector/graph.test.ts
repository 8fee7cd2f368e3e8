import { expect, test } from "vitest";
import type { ApiObject, OwnerReference } from "../../api/meta/object-meta.ts";
import { identityOf, OwnerGraph } from "./graph.ts";

const MAP = { apiVersion: "v1", kind: "ConfigMap" };
const map = (name: string, ownerReferences: readonly OwnerReference[]): ApiObject => ({ ...MAP, metadata: { name, namespace: "default", uid: `uid-${name}`, ownerReferences: [...ownerReferences] } }) as ApiObject;

/** References that count how often one looks whom they name. */
function counted(length: number): { readonly references: readonly OwnerReference[]; readonly looks: () => number } {
  let looks = 0;
  const references = Array.from({ length }, (_, i) => ({ ...MAP, name: `n${i}`, get uid() { looks++; return `u${i}`; } }));
  return { references, looks: () => looks };
}

test("of an object whose owners are all gone each reference is looked at a few times, however many there are", () => {
  const graph = new OwnerGraph(), { references, looks } = counted(2000);
  const object = map("a", references);
  const { look } = graph.put(identityOf(object, MAP), object, undefined);
  expect(look).toHaveLength(2000);
  for (const { identity } of look) expect(graph.absent(identity)).toMatchObject({ gone: [identity], look: [{ identity: { name: "a" } }] });
  expect(looks()).toBeLessThan(2000 * 10);
});

test("what an informer of its kind does not show is asked for at the source, be it that it was on its way already", () => {
  const graph = new OwnerGraph(), of = { group: "", kind: "ConfigMap" };
  for (const name of ["shown", "going", "there"]) {
    const object = map(name, []);
    graph.put(identityOf(object, MAP), name === "going" ? { ...object, metadata: { ...object.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } } : object, undefined);
  }
  expect(graph.doubt(of, ({ name }) => name === "shown").look).toMatchObject([{ beingDeleted: false, identity: { name: "going" } }, { identity: { name: "there" } }]);
  expect(graph.doubt({ group: "apps", kind: "ConfigMap" }, () => false).look).toEqual([]);
});
