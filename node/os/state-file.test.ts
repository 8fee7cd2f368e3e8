import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readStateFile, writeStateFile } from "./state-file.ts";

test("what was written is read; what a crash or a disk made of it is put aside, once, and told", () => {
  const directory = mkdtempSync(join(tmpdir(), "state-"));
  try {
    const path = join(directory, "deep/er/state");
    const told: unknown[] = [];
    const log = { error: (message: string) => void told.push(message) };
    expect(readStateFile(path, log)).toBeUndefined();
    writeStateFile(path, { a: [1] });
    expect([readStateFile(path, log), statSync(path).mode & 0o777]).toEqual([{ a: [1] }, 0o600]);
    for (const text of ["", "\0\0\0", `{"a":[`]) {
      writeFileSync(path, text);
      expect([readStateFile(path, log), existsSync(path), readFileSync(`${path}.corrupt`, "utf8"), readStateFile(path, log)]).toEqual([undefined, false, text, undefined]);
    }
    expect(told).toEqual(Array(3).fill("a state file is corrupted and was put aside, going on without it"));
  } finally {
    rmSync(directory, { recursive: true });
  }
});
