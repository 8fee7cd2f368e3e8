/** Properties of the source itself. Each row says what to write instead. */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
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

const FOLDERS = "{cmd,core,node,storage,installers,test}";
const found = (pattern: string): readonly string[] => [...new Bun.Glob(pattern).scanSync(".")].sort();

test("tidy", () => {
  const untidy: string[] = [];
  for (const path of found("{cmd,core,node,storage}/**/*.ts")) {
    if (/\/gen\/|\.test\.ts$/.test(path)) continue;
    const text = readFileSync(path, "utf8");
    if (NAMES_BANNED.test(path)) untidy.push(`${path}: name it after its topic`);
    if (text.split("\n").length > LINES_MAX) untidy.push(`${path}: more than ${LINES_MAX} lines`);
    for (const [pattern, instead, exempt] of BANNED)
      if (!exempt?.test(path) && pattern.test(text)) untidy.push(`${path}: ${pattern.exec(text)?.[0]} → ${instead}`);
  }
  expect(untidy).toEqual([]);
});

test("what is exported is used: by another file, by its own, or by a test", () => {
  const count = new Map<string, number>();
  const exported: [path: string, name: string][] = [];
  for (const path of found(`${FOLDERS}/**/*.ts`)) {
    const text = readFileSync(path, "utf8");
    for (const [word] of text.matchAll(/[\w$]+/g)) count.set(word, (count.get(word) ?? 0) + 1);
    if (!path.includes("/gen/")) for (const [, name] of text.matchAll(/^export (?:async )?(?:function\*?|const|class|interface|type) (\w+)/gm)) exported.push([path, name!]);
  }
  expect(exported.filter(([, name]) => count.get(name) === 1).map((one) => one.join(": "))).toEqual([]);
});

test("what documents link to and what comments name is there", () => {
  const missing: string[] = [];
  const check = (from: string, path: string): void => void (existsSync(path) || missing.push(`${from}: ${path}`));
  for (const path of [...found("*.md"), ...found(`${FOLDERS}/**/*.md`)]) {
    const text = readFileSync(path, "utf8");
    for (const [, link] of text.matchAll(/\]\(([^)#\s]+)/g)) if (!/^https?:/.test(link!)) check(path, join(dirname(path), link!));
    for (const [named] of text.matchAll(PATH)) check(path, named);
  }
  for (const path of found(`${FOLDERS}/**/*.{ts,sh,c,ps1}`)) for (const [comment] of readFileSync(path, "utf8").matchAll(COMMENT)) for (const [named] of comment.matchAll(PATH)) check(path, named);
  expect(missing).toEqual([]);
});

/** A file of ours, from the root of the tree. */
const PATH = /(?<![\w./*-])(?:cmd|core|node|storage|installers|test)\/[\w./-]*\.(?:ts|md|txt|sh|js|mjs|c|ps1|yaml)\b/g;
const COMMENT = /^\s*(?:\/\*\*|\*|\/\/|#) .*$|\/\/ .*$/gm;
