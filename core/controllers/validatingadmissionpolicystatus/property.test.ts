/** Type checks of policies: what is found does not hang on the order of rules, is of no more kinds than there is time for, and names an expression that is there. */
import { expect, test } from "vitest";
import { seededRandom } from "../../../test/simulator/seeded.ts";
import { atOnce } from "../../lifecycle/breather.ts";
import { expressionWarnings, type Kinds } from "./plan.ts";

/** Of every resource, the kind of that name, with one field: it is a number for resources of an even number, else text. */
const kinds: Kinds = {
  of: (group, version, resource) => (resource.startsWith("r") ? [{ group, version, kind: resource.toUpperCase() }] : []),
  schemaOf: ({ kind }) => ({ type: "object", properties: { spec: { type: "object", properties: { size: { type: Number(kind.slice(1)) % 2 === 0 ? "integer" : "string" } } } } }) as never,
};

test("warnings are of the kinds that rules name, at most ten, whatever the order", () => {
  for (let seed = 1; seed <= 60; seed++) {
    const random = seededRandom(seed);
    const at = `seed ${seed}`;
    const groups = () => [...new Set(Array.from({ length: random.integer(1, 2) }, () => random.pick(["", "apps", "example.org"])))];
    const rule = () => ({ apiGroups: random.integer(0, 6) === 0 ? ["*"] : groups(), apiVersions: random.pick([["v1"], ["v1", "v2"], ["*"]]), resources: Array.from({ length: random.integer(1, 4) }, () => random.pick(["r1", "r2", "r3", "r4", "r1/status", "*", "unknown"])), operations: ["CREATE"] });
    const resourceRules = Array.from({ length: random.integer(0, 3) }, rule);
    const validations = Array.from({ length: random.integer(1, 4) }, () => ({ expression: random.pick(["true", "object.spec.size > 1", "object.spec.size == 'a'", "object.nope"]), ...random.pick([{}, { messageExpression: "object.spec.size" }, { messageExpression: "'fine'" }]) }));
    const warnings = (rules: readonly object[]) => atOnce(expressionWarnings({ matchConstraints: { resourceRules: rules }, validations } as never, kinds));
    const found = warnings(resourceRules);

    const named = resourceRules.filter(({ apiGroups, apiVersions }) => ![...apiGroups, ...apiVersions].includes("*"))
      .flatMap(({ apiGroups, apiVersions, resources }) => apiGroups.flatMap((group) => apiVersions.flatMap((version) => resources.filter((one) => /^r\d$/.test(one)).map((one) => `${group}/${version}, Kind=${one.toUpperCase()}`))));
    const spoken = new Set<string>();
    for (const { fieldRef, warning } of found) {
      const [, number, field] = /^spec\.validations\[(\d+)\]\.(expression|messageExpression)$/.exec(fieldRef)!;
      expect(validations[Number(number)]![field as "expression"], at).toBeDefined();
      const ofKinds = [...warning.matchAll(/^(\S+, Kind=\S+): ERROR/gm)].map(([, kind]) => kind!);
      expect(ofKinds.length, at).toBeGreaterThan(0);
      expect(new Set(ofKinds).size, at).toBe(ofKinds.length);
      for (const kind of ofKinds) { expect(named, at).toContain(kind); spoken.add(kind); }
    }
    expect(spoken.size, at).toBeLessThanOrEqual(10);
    if (new Set(named).size > 0) expect(found.filter(({ fieldRef }) => fieldRef.endsWith(".expression")).map(({ fieldRef }) => fieldRef), at).toEqual(expect.arrayContaining(validations.flatMap(({ expression }, i) => (expression === "object.nope" ? [`spec.validations[${i}].expression`] : []))));
    expect(found.some(({ fieldRef }) => validations[Number(/\d+/.exec(fieldRef)![0])]!.expression === "true" && fieldRef.endsWith(".expression")), at).toBe(false);
    if (named.length <= 10) expect(warnings(resourceRules.map((one) => ({ ...one, resources: one.resources.toReversed() })).toReversed()), at).toEqual(found);
  }
});

test("three lists of thousands of names are billions of resources: not all of them are looked up", () => {
  let asked = 0;
  const many = Array.from({ length: 10_000 }, (_, i) => `x${i}`);
  const resourceRules = [{ apiGroups: many, apiVersions: many, resources: many, operations: ["CREATE"] }];
  atOnce(expressionWarnings({ matchConstraints: { resourceRules }, validations: [{ expression: "true" }] } as never, { ...kinds, of: () => { asked++; return []; } }));
  expect(asked).toBe(1_000);
});

test("others may have their turn after each expression, of each kind", () => {
  const validations = Array.from({ length: 20 }, () => ({ expression: "object.metadata.name == ''", messageExpression: "'x'" }));
  const work = expressionWarnings({ matchConstraints: { resourceRules: [{ apiGroups: [""], apiVersions: ["v1"], resources: ["a", "b"] }] }, validations, variables: [{ name: "v", expression: "1" }] } as never, {
    of: (group, version, resource) => [{ group, version, kind: resource.toUpperCase() }], schemaOf: () => ({ type: "object", properties: { metadata: { type: "object", properties: { name: { type: "string" } } } } }),
  });
  let pauses = 0;
  while (!work.next().done) pauses++;
  expect(pauses).toBe(2 * (1 + 20 * 2));
});
