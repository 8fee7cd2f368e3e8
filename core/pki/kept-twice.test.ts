import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { copiesIn, copyKept, type KeptFiles, mendKept } from "./kept-twice.ts";

let dir = "";
beforeEach(() => { dir = mkdtempSync(join(tmpdir(), "kept-")); });
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const write = (name: string, text: string): void => writeFileSync(join(dir, name), text);
const read = (name: string): string | undefined => (existsSync(join(dir, name)) ? readFileSync(join(dir, name), "utf8") : undefined);

/** Whole is what ends with a dot; what begins with the same letter goes together. */
const files = (extra: Partial<KeptFiles> = {}): KeptFiles => ({ dir, names: ["a.crt", "a.key"], isWhole: (_, text) => text.endsWith("."), ...extra });
const belong = ([a = "", b = ""]: readonly string[]): boolean => a[0] === b[0];

interface Case { readonly crt: string | undefined; readonly key: string | undefined; readonly together?: boolean; readonly becomes: readonly [string | undefined, string | undefined] }
const CASES: Readonly<Record<string, Case>> = {
  "what is whole stays": { crt: "1.", key: "1.", becomes: ["1.", "1."] },
  "one that is empty is as it was": { crt: "", key: "1.", becomes: ["1.", "1."] },
  "one that is gone is, too": { crt: "1.", key: undefined, becomes: ["1.", "1."] },
  "both of them": { crt: "1", key: "\0\0", becomes: ["1.", "1."] },
  "who took both away wants them away": { crt: undefined, key: undefined, becomes: [undefined, undefined] },
  "other files that are whole are somebody's, although they do not go together": { crt: "2.", key: "1.", becomes: ["2.", "1."] },
  "and a damaged one beside them is": { crt: "2.", key: "", becomes: ["2.", ""] },
  "where nobody else writes them, a pair of which one is older is as it was": { crt: "1.", key: "2.", together: true, becomes: ["1.", "1."] },
  "a pair that was renewed stays": { crt: "2.", key: "2.", together: true, becomes: ["2.", "2."] },
};
test.each(Object.entries(CASES))("%s", async (_, { crt, key, together = false, becomes }) => {
  write("a.crt", "1.");
  write("a.key", "1.");
  await copyKept(files());
  for (const [name, text] of [["a.crt", crt], ["a.key", key]] as const) {
    if (text === undefined) rmSync(join(dir, name));
    else write(name, text);
  }
  const told: unknown[] = [];
  await mendKept(files(together ? { belong } : {}), { error: (message) => void told.push(message) });
  expect([read("a.crt"), read("a.key")]).toEqual(becomes);
  expect(told).toHaveLength(becomes[0] === crt && becomes[1] === key ? 0 : 1);
});

test("what was damaged is kept; copies are as private as what they are of", async () => {
  write("a.crt", "1.");
  write("a.key", "1.");
  await copyKept(files());
  expect(readdirSync(copiesIn(dir)).sort().map((name) => (statSync(join(copiesIn(dir), name)).mode & 0o777).toString(8))).toEqual([(0o644 & ~process.umask()).toString(8), "600"]);
  write("a.key", "1");
  await mendKept(files(), undefined);
  expect([read("a.key"), read("a.key.damaged"), statSync(join(dir, "a.key")).mode & 0o777]).toEqual(["1.", "1", 0o600]);
});

test("what the disk cannot read is as it was, and does not take the place of its copy", async () => {
  write("a.crt", "1.");
  write("a.key", "1.");
  await copyKept(files());
  rmSync(join(dir, "a.key"));
  symlinkSync("/proc/self/mem", join(dir, "a.key")); // is opened, and answers as a bad sector does
  await copyKept(files());
  await mendKept(files(), undefined);
  expect([read("a.key"), read("copies/a.key")]).toEqual(["1.", "1."]);
});

test("a key of which a bit is another is as it was; one that somebody has put there is his", async () => {
  const key = (letter: string): string => `-----BEGIN PRIVATE KEY-----\n${letter.repeat(64)}.`, one = key("M");
  const kept = { ...files(), names: ["a.key"] };
  write("a.key", one);
  await copyKept(kept);
  write("a.key", one.replace("M", "O"));
  await mendKept(kept, undefined);
  expect(read("a.key")).toBe(one);
  write("a.key", key("N"));
  await mendKept(kept, undefined);
  expect(read("a.key")).toBe(key("N"));
});

test("without a copy, or with one that is damaged as well, nothing is touched", async () => {
  write("a.crt", "1.");
  write("a.key", "");
  await mendKept(files(), undefined);
  expect(read("a.key")).toBe("");
  write("a.key", "1.");
  await copyKept(files());
  for (const name of ["a.key", "copies/a.key"]) write(name, "");
  await mendKept(files(), undefined);
  expect(read("a.key")).toBe("");
});
