import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { manifestDirectory } from "./manifest-directory.ts";

test("manifests are files of the right endings, at any depth, that are not skipped; a stamp changes with its file; no directory is no files", async () => {
  const directory = mkdtempSync(join(tmpdir(), "manifests-"));
  const files = manifestDirectory(directory);
  for (const name of ["a.yaml", "b.yml", "c.json", "d.txt", ".e.yaml", "f.yaml", "f.yaml.skip", "g.yaml.swp"]) writeFileSync(join(directory, name), name);
  for (const below of ["h.yaml", "i/j", ".k", "l"]) {
    mkdirSync(join(directory, below), { recursive: true });
    writeFileSync(join(directory, below, "deep.yaml"), below);
  }
  writeFileSync(join(directory, "l.skip"), "");
  const before = await files.stamps();
  expect([...before.keys()]).toEqual(["a.yaml", "b.yml", "c.json", "h.yaml/deep.yaml", "i/j/deep.yaml"]);
  writeFileSync(join(directory, "a.yaml"), "longer than it was");
  const after = await files.stamps();
  expect(after.get("a.yaml")).not.toBe(before.get("a.yaml"));
  expect(after.get("b.yml")).toBe(before.get("b.yml"));
  expect(await files.read("c.json")).toBe("c.json");
  expect(await files.read("i/j/deep.yaml")).toBe("i/j");
  expect(await files.read("z.yaml")).toBeUndefined();
  rmSync(directory, { recursive: true });
  expect(await files.stamps()).toEqual(new Map());
});
