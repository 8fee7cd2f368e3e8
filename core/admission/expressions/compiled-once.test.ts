import { expect, test } from "vitest";
import type { ValidatingAdmissionPolicy } from "../../api/gen/admissionregistration.v1.ts";
import { compileValidating } from "../policy/compiled-policy.ts";
import { CompiledOnce } from "./compiled-once.ts";

test("of many that are compiled when a write first asks for them others have their turn between; each is compiled once, however many wait for it", async () => {
  let upMs = 0, others = 0, isOver = false, compiled = 0;
  const turn = (): void => { others++; if (!isOver) setImmediate(turn); };
  setImmediate(turn);
  const worked: number[] = []; // by turns that others had before
  const once = new CompiledOnce(function* (of: { readonly name: string }) {
    compiled++;
    upMs += 50;
    worked[others] = (worked[others] ?? 0) + 1;
    yield;
    return of.name;
  }, { uptimeMs: () => upMs });
  const all = Array.from({ length: 20 }, (_, i) => ({ name: `p${i}` }));
  const write = async (): Promise<string[]> => {
    const names: string[] = [];
    for (const one of all) names.push(await once.of(one));
    return names;
  };
  const names = await Promise.all([write(), write(), write()]);
  isOver = true;
  expect(names).toEqual(Array.from({ length: 3 }, () => all.map(({ name }) => name)));
  expect(compiled).toBe(20);
  expect(worked.filter((times) => times > 1)).toEqual([]);
});

test("of a policy of many expressions others have their turn between them, too, and who comes meanwhile has what is being made", async () => {
  let upMs = 0, turns = 0, isOver = false, begun = 0;
  const turn = (): void => { turns++; if (!isOver) setImmediate(turn); };
  setImmediate(turn);
  const spec = { validations: Array.from({ length: 50 }, () => ({ expression: "object.a == 1" })) } as ValidatingAdmissionPolicy["spec"];
  const policy: ValidatingAdmissionPolicy = { apiVersion: "admissionregistration.k8s.io/v1", kind: "ValidatingAdmissionPolicy", metadata: { name: "p", resourceVersion: "1", uid: "1", creationTimestamp: "" }, spec };
  const once = new CompiledOnce((one: ValidatingAdmissionPolicy) => {
    begun++;
    return compileValidating(one);
  }, { uptimeMs: () => (upMs += 2) });
  const [first, second] = await Promise.all([once.of(policy), once.of(policy)]);
  isOver = true;
  expect([first.validations.length, second === first, begun]).toEqual([50, true, 1]);
  expect(turns).toBeGreaterThan(5);
});
