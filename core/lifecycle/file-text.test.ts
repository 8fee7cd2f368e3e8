import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { fileText, fileTextSync } from "./file-text.ts";

test("a file that the disk cannot read is empty, one that is not there is none; who may not read it is told", async () => {
  const directory = mkdtempSync(join(tmpdir(), "text-"));
  try {
    writeFileSync(join(directory, "a"), "text");
    const paths = [join(directory, "a"), join(directory, "none"), "/proc/self/mem" /* answers as a bad sector does */];
    expect([await Promise.all(paths.map(fileText)), paths.map(fileTextSync)]).toEqual([["text", undefined, ""], ["text", undefined, ""]]);
    await expect(fileText(directory)).rejects.toThrow("EISDIR");
    expect(() => fileTextSync(directory)).toThrow("EISDIR");
  } finally {
    rmSync(directory, { recursive: true });
  }
});
