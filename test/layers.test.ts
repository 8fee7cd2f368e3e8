/** Checks layers.ts against every import in the tree, type-only imports included. */
import { readFileSync } from "node:fs";
import { dirname, posix } from "node:path";
import { expect, test } from "vitest";
import ts from "typescript";
import { LAYERS, PACKAGES } from "./layers.ts";

const rows = Object.keys(LAYERS);

/** The row a path belongs to: the longest one it starts with. */
function rowOf(path: string): string | undefined {
  return rows.filter((row) => path.startsWith(`${row}/`)).sort((a, b) => b.length - a.length)[0];
}

test("a row names only rows above it", () => {
  for (const [i, row] of rows.entries())
    for (const other of LAYERS[row]!) expect(rows.slice(0, i), `${row} → ${other}`).toContain(other);
});

test("every import stays in its row or goes to an allowed one", async () => {
  const wrong: string[] = [];
  for await (const file of new Bun.Glob("{cmd,core,node,storage,installers}/**/*.ts").scan(".")) {
    const from = rowOf(file);
    if (from === undefined) { wrong.push(`${file}: belongs to no row of layers.ts`); continue; }
    const allowed = [from, ...LAYERS[from]!];
    for (const { fileName: name } of ts.preProcessFile(await Bun.file(file).text()).importedFiles) {
      if (/^(node:|bun:|bun$)/.test(name)) continue;
      if (file.endsWith(".test.ts") && name === "vitest") continue;
      const path = name.startsWith(".") ? posix.join(dirname(file), name) : undefined;
      if (path?.startsWith("test/") && file.endsWith(".test.ts")) continue; // contract suites and fixtures
      const fine = path ? allowed.includes(rowOf(path) ?? "") : PACKAGES[name]?.rows.includes(from);
      if (!fine) wrong.push(`${file} imports ${name}: ${from} may use ${allowed.join(", ")}`);
    }
  }
  expect(wrong).toEqual([]);
});

/** Files that need each other: a grammar that nests, and platforms behind one door. */
const ENTWINED: readonly string[] = [
  "core/registry/apiextensions/custom/json-path-filter.ts", "core/registry/apiextensions/custom/json-path.ts", "node/os/cgroup.ts", "node/os/cgroup.windows.ts", "node/os/machine.ts", "node/os/machine.windows.ts",
  "node/os/mount.linux.ts", "node/os/mount.ts", "node/os/mount.windows.ts",
];

test("no file imports itself by way of others", () => {
  const left = new Map<string, readonly string[]>();
  for (const file of new Bun.Glob("{cmd,core,node,storage,installers}/**/*.ts").scanSync(".")) if (!file.endsWith(".test.ts")) left.set(file, importsOf(file));
  for (let before = Infinity; left.size < before;) { // those at the bottom, and those at the top, until nothing is left but circles
    before = left.size;
    const imported = new Set([...left.values()].flat());
    for (const [file, imports] of left) if (!imported.has(file) || !imports.some((one) => left.has(one))) left.delete(file);
  }
  expect([...left.keys()].sort()).toEqual(ENTWINED);
});

/** Files of ours, those of types alone included. */
function importsOf(file: string): readonly string[] {
  const { importedFiles } = ts.preProcessFile(readFileSync(file, "utf8"));
  return importedFiles.filter(({ fileName }) => fileName.startsWith(".")).map(({ fileName }) => posix.join(dirname(file), fileName));
}
