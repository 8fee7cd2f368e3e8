import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { parseEnvFile, readEnvFile } from "./env-file.ts";

let directory = "";
beforeEach(() => { directory = mkdtempSync(join(tmpdir(), "env-file-")); });
afterEach(() => rmSync(directory, { recursive: true }));

test.each<[string, string]>([
  ["A='x'", "x"], ["  A='a b $C \\n \"q\"'  # why\n", "a b $C \\n \"q\""], ["# A='no'\n\nB='1'\nA='2'\nA='3'", "2"], ["A='one\ntwo'\n", "one\ntwo"], ["A='one\r\ntwo\r\n\r\nthree' # a\rb\r\n", "one\ntwo\n\nthree"], ["A= 'x'", ""], ["B='1'", ""], ["\u00a0='1'\nA='2'", "2"],
])("%j has A = %j", (text, value) => expect(parseEnvFile(text, "A")).toBe(value));

test.each<[string, string]>([
  ["A=x", "invalid environment variable format at line 1: value must be enclosed in single quotes"], ["\nA", "invalid environment variable format at line 2: missing '='"],
  ["='x'", "invalid environment variable format at line 1: empty variable name"], ["A ='x'", "invalid environment variable format at line 1: whitespace before '=' is not allowed"],
  ["B='1' 2\nA='x'", "invalid environment variable format at line 1: unexpected content after closing quote"], ["B='1'\nA='x\n", "invalid environment variable format starting at line 2: unclosed single quote"],
])("%j is refused: %s", (text, message) => expect(() => parseEnvFile(text, "A")).toThrow(message));

test("a link in the volume leads nowhere outside it", async () => {
  const volume = join(directory, "volume");
  mkdirSync(join(volume, "etc"), { recursive: true });
  writeFileSync(join(directory, "secret"), "A='host'\n");
  writeFileSync(join(volume, "secret"), "A='mine'\n");
  writeFileSync(join(volume, "etc/env"), "A='inner'\n");
  symlinkSync("../../secret", join(volume, "up"));
  symlinkSync("/etc/env", join(volume, "root"));
  symlinkSync(join(directory, "secret"), join(volume, "out"));
  expect(await Promise.all([readEnvFile(volume, "up", "A"), readEnvFile(volume, "root", "A"), readEnvFile(volume, "../secret", "A"), readEnvFile(volume, "etc/env", "B")])).toEqual(["mine", "inner", "mine", undefined]);
  await expect(readEnvFile(volume, "out", "A")).rejects.toThrow("couldn't parse env file");
});

test.skipIf(process.platform !== "linux")("what is no file is not waited for, and what is too large for one not read", async () => {
  execFileSync("mkfifo", [join(directory, "pipe")]);
  symlinkSync("pipe", join(directory, "link"));
  writeFileSync(join(directory, "large"), `B='${"x\n".repeat(200_000)}'\nA='1'\n`);
  const why = async (path: string): Promise<string> => { try { return `${await readEnvFile(directory, path, "A")}`; } catch (error) { return ((error as Error).cause as Error).message; } };
  expect(await Promise.all(["pipe", "link", "large", "."].map(why))).toEqual(["pipe is no regular file", "link is no regular file", "large has more than 262144 bytes", ". is no regular file"]);
});
