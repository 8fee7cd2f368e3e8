import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readStateFile, stateFile, writeStateFile } from "./state-file.ts";

test("what was written is read; what a crash or a disk made of it is put aside, once, and told", async () => {
  const directory = mkdtempSync(join(tmpdir(), "state-"));
  try {
    const path = join(directory, "deep/er/state");
    const told: unknown[] = [];
    const log = { error: (message: string) => void told.push(message) };
    expect(readStateFile(path, log)).toBeUndefined();
    await writeStateFile(path, { a: [1] });
    expect([readStateFile(path, log), statSync(path).mode & 0o777]).toEqual([{ a: [1] }, 0o600]);
    for (const text of ["", "\0\0\0", `{"a":[`]) {
      writeFileSync(path, text);
      expect([readStateFile(path, log), existsSync(path), readFileSync(`${path}.corrupt`, "utf8"), readStateFile(path, log)]).toEqual([undefined, false, text, undefined]);
    }
    expect(told).toEqual(Array(3).fill("a state file is corrupted and was put aside, going on without it"));
    rmSync(`${path}.corrupt`);
    mkdirSync(`${path}.corrupt`); // in its way
    writeFileSync(path, "");
    expect([readStateFile(path, log), told.pop()]).toEqual([undefined, "a state file is corrupted and cannot be put aside, as on a disk that takes no writes any more: going on without it"]);
    await writeStateFile(path, { a: 2 });
    expect(readStateFile(path, log)).toEqual({ a: 2 });
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("what was saved last stands, however fast it changes; who waits for it is told that it could not be written, and it is written once it can", async () => {
  const directory = mkdtempSync(join(tmpdir(), "state-"));
  try {
    const path = join(directory, "below/state");
    const held = (): unknown => JSON.parse(readFileSync(path, "utf8"));
    const file = stateFile(path);
    await file.written(); // there is nothing to write
    expect(existsSync(path)).toBe(false);
    let made = 0;
    for (let i = 0; i < 100; i++) file.save(() => ({ i, made: ++made }));
    await file.written();
    expect(held()).toEqual({ i: 99, made: 2 }); // those between the first and the last are not even made
    await Promise.all([..."abc"].map((text) => writeStateFile(path, { text })));
    expect(held()).toEqual({ text: "c" });

    rmSync(join(directory, "below"), { recursive: true });
    writeFileSync(join(directory, "below"), "in the way");
    file.save(() => ({ late: true }));
    await expect(file.written()).rejects.toThrow();
    await expect(file.written()).rejects.toThrow();
    rmSync(join(directory, "below"));
    await file.written();
    expect(held()).toEqual({ late: true });
  } finally {
    rmSync(directory, { recursive: true });
  }
});
