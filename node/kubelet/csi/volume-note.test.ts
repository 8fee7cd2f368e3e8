import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { NOTE, readNote, writeNote } from "./volume-note.ts";

test("a note is there or not; one that was cut short is not, and may be written anew", async () => {
  const directory = mkdtempSync(join(tmpdir(), "note-"));
  try {
    expect(await readNote(join(directory, "none"))).toBeUndefined();
    writeFileSync(join(directory, NOTE), "");
    expect(await readNote(directory)).toBeUndefined();
    await writeNote(directory, { driverName: "d", volumeHandle: "v" });
    expect(await readNote(directory)).toEqual({ driverName: "d", volumeHandle: "v" });
  } finally {
    rmSync(directory, { recursive: true });
  }
});
