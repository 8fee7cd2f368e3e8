import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { writeDurably } from "./durable-file.ts";

test("a file is the old one or the new one; what cannot be written is named", async () => {
  const dir = mkdtempSync(join(tmpdir(), "durable-"));
  try {
    writeFileSync(join(dir, "a.next"), "left by a power cut");
    await writeDurably(join(dir, "a"), "one");
    await writeDurably(join(dir, "a"), "two");
    expect(readFileSync(join(dir, "a"), "utf8")).toBe("two");
    await expect(writeDurably(join(dir, "a", "b"), "three")).rejects.toThrow(`${join(dir, "a", "b")} cannot be written`);
  } finally {
    rmSync(dir, { recursive: true });
  }
});
