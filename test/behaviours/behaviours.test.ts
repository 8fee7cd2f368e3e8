/** Each behaviour in these tables names a test that exists: a line is `- behaviour: path "quotation"`. */
import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const ROW = /^- (.+): ([\w./-]+\.(?:test\.ts|txt)) "(.+)"$/;

test("every behaviour names a test that holds it", () => {
  const wrong: string[] = [];
  const texts = new Map<string, string | undefined>();
  for (const table of new Bun.Glob("*.md").scanSync("test/behaviours")) {
    if (table === "README.md") continue;
    const lines = readFileSync(`test/behaviours/${table}`, "utf8").split("\n");
    for (const [at, line] of lines.entries()) {
      if (line === "" || line.startsWith("#")) continue;
      const problem = row(line, texts);
      if (problem !== undefined) wrong.push(`${table}:${at + 1}: ${problem}`);
    }
  }
  expect(wrong).toEqual([]);
});

/** What is wrong with a line, if anything. */
function row(line: string, texts: Map<string, string | undefined>): string | undefined {
  const [, , path, quotation] = ROW.exec(line) ?? [];
  if (path === undefined || quotation === undefined) return `not "- behaviour: path "quotation"": ${line}`;
  if (!texts.has(path)) texts.set(path, existsSync(path) ? readFileSync(path, "utf8") : undefined);
  const text = texts.get(path);
  if (text === undefined) return `no such test: ${path}`;
  const count = text.split(quotation).length - 1;
  return count === 1 ? undefined : `${path} ${count === 0 ? "does not say" : "says more than once"} "${quotation}"`;
}
