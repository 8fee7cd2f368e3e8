/** Properties of the source itself. Each row says what to write instead. */
import { expect, test } from "vitest";

const BANNED: readonly [pattern: RegExp, instead: string, exempt?: RegExp][] = [
  [/\bDate\.now\(|\bset(Timeout|Interval)\(/, "a Clock that is passed in", /lifecycle\/clock\.ts$/],
  [/\bMath\.random\(/, "a Random that is passed in", /lifecycle\/random\.ts$/],
  [/\bprocess\.(env|argv|exit)\b/, "Config, read once in cmd/config", /^cmd\//],
  [/\bconsole\./, "the Log that is passed in", /^cmd\//],
  [/catch\s*(\([^)]*\))?\s*\{\s*\}|\.catch\(\(\) => \{\}\)/, "say why the error can be ignored"],
  [/^export (let|var) /m, "state inside a function or class: modules hold none"],
];
const NAMES_BANNED = /(^|\/)(utils?|helpers?|common|misc|shared|lib|types|index)(\.ts$|\/)/; // name it after its topic
const LINES_MAX = 500;

test("tidy", async () => {
  const untidy: string[] = [];
  for await (const path of new Bun.Glob("{cmd,core,node,storage}/**/*.ts").scan(".")) {
    if (/\/gen\/|\.test\.ts$/.test(path)) continue;
    const text = await Bun.file(path).text();
    if (NAMES_BANNED.test(path)) untidy.push(`${path}: name it after its topic`);
    if (text.split("\n").length > LINES_MAX) untidy.push(`${path}: more than ${LINES_MAX} lines`);
    for (const [pattern, instead, exempt] of BANNED)
      if (!exempt?.test(path) && pattern.test(text)) untidy.push(`${path}: ${pattern.exec(text)?.[0]} → ${instead}`);
  }
  expect(untidy).toEqual([]);
});
