import { spawnSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { lineFile } from "./line-file.ts";

const directory = mkdtempSync(join(tmpdir(), "line-file-"));
afterAll(() => rmSync(directory, { recursive: true }));

/** A disk that answers when told to. */
function slowDisk() {
  const asked: { text: string; done: (error: unknown, written: number) => void }[] = [];
  const lines = lineFile(-1, (_, bytes, done) => void asked.push({ text: Buffer.from(bytes).toString(), done }));
  return { asked, lines };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("while the disk hangs nobody waits, and all that was said is written once it answers, in order", async () => {
  const { asked, lines } = slowDisk();
  lines.write("one\n");
  lines.write("two\n");
  await turn();
  lines.write("three\n");
  lines.write("four\n");
  await turn();
  expect(asked.map(({ text }) => text)).toEqual(["one\ntwo\n"]);
  asked[0]!.done(null, 5); // a part
  asked[1]!.done(null, 3);
  expect(asked.map(({ text }) => text)).toEqual(["one\ntwo\n", "wo\n", "three\nfour\n"]);
  asked[2]!.done(new Error("ENOSPC"), 0);
  lines.write("five\n");
  await turn();
  expect(asked[3]?.text).toBe("five\n");
});

test("a disk that never answers does not take the memory", async () => {
  const { asked, lines } = slowDisk();
  lines.write("first\n");
  await turn();
  for (let i = 0; i < 100; i++) lines.write(`${"x".repeat(100_000)}\n`);
  asked[0]!.done(null, 6);
  expect(asked[1]!.text.length).toBeGreaterThan(4_000_000);
  expect(asked[1]!.text.length).toBeLessThan(4_200_000);
});

test.skipIf(process.platform === "win32")("a log that goes to a file has each line once, also those of a process that ends at once", () => {
  const path = join(directory, "log"), file = openSync(path, "w");
  const say = `
    import { stderrLog } from "${import.meta.dirname}/stderr-log.ts";
    const log = stderrLog("info");
    for (let i = 0; i < 3; i++) log.info("told " + i);
    setTimeout(() => { log.error("last words"); process.exit(42); }, 50);
  `;
  expect(spawnSync(process.execPath, ["-e", say], { stdio: ["ignore", "ignore", file], timeout: 60_000 }).status).toBe(42);
  closeSync(file);
  expect(readFileSync(path, "utf8").trim().split("\n").map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual(["told 0", "told 1", "told 2", "last words"]);
});
