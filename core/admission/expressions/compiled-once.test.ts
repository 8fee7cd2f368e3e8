import { expect, test } from "vitest";
import { CompiledOnce } from "./compiled-once.ts";

test("of many that are compiled when a write first asks for them others have their turn between; each is compiled once, however many wait for it", async () => {
  let upMs = 0, others = 0, isOver = false, compiled = 0;
  const turn = (): void => { others++; if (!isOver) setImmediate(turn); };
  setImmediate(turn);
  const worked: number[] = []; // by turns that others had before
  const once = new CompiledOnce((of: { readonly name: string }) => {
    compiled++;
    upMs += 50;
    worked[others] = (worked[others] ?? 0) + 1;
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
