import { existsSync, readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { fuzz, tried } from "./fuzz.ts";
import { targets } from "./targets.ts";

const corpusOf = (name: string): unknown[] => {
  const directory = new URL(`./corpus/${name}/`, import.meta.url);
  return existsSync(directory) ? readdirSync(directory).map((file) => JSON.parse(readFileSync(new URL(file, directory), "utf8")) as unknown) : [];
};

test.each(targets.map((target) => [target.name, target] as const))("%s takes what was once found, and half a second of what nobody wrote", (name, target) => {
  expect(corpusOf(name).map((value) => tried(target, value)).filter((why) => why !== undefined)).toEqual([]);
  expect(fuzz(target, { seed: 20_260_701, ms: 500, casesMax: 3000 }).findings).toEqual([]);
});
