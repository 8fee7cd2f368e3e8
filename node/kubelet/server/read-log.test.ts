import { appendFileSync, mkdtempSync, renameSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import { fixedLogTime, logTimeMs, parseLogLine } from "./log-line.ts";
import { openLog, readLog, type ReadLogOptions } from "./read-log.ts";

const LOG = [
  "2026-01-02T03:04:05.1Z stdout F one\n",
  "2026-01-02T03:04:06.123456789Z stderr P tw\n",
  "2026-01-02T03:04:06.2Z stderr F o\n",
  "rubbish\n",
  "2026-01-02T05:04:07.000000001+02:00 stdout F:tag three\n",
  "2026-01-02T03:04:08Z stdout F \n",
].join("");

function scratch(): { readonly path: string; [Symbol.dispose](): void } {
  const directory = mkdtempSync(join(tmpdir(), "read-log-"));
  return { path: join(directory, "0.log"), [Symbol.dispose]: () => rmSync(directory, { recursive: true }) };
}

async function read(path: string, options: ReadLogOptions): Promise<string> {
  let text = "";
  for await (const piece of readLog(path, await openLog(path), options, { running: () => false, clock: systemClock, signal: new AbortController().signal })) text += piece.toString();
  return text;
}

test.each<[string, ReadLogOptions, string]>([
  ["all of it", {}, "one\ntwo\nthree\n\n"],
  ["timestamps at the start of lines only", { timestamps: true }, "2026-01-02T03:04:05.100000000Z one\n2026-01-02T03:04:06.123456789Z two\n2026-01-02T05:04:07.000000001+02:00 three\n2026-01-02T03:04:08.000000000Z \n"],
  ["the last two", { tailLines: 2 }, "three\n\n"],
  ["none", { tailLines: 0 }, ""],
  ["more than there are", { tailLines: 99 }, "one\ntwo\nthree\n\n"],
  ["since a time", { sinceMs: Date.parse("2026-01-02T03:04:07Z") }, "three\n\n"],
  ["five bytes", { limitBytes: 5 }, "one\nt"],
  ["one stream", { stream: "Stderr" }, "two\n"],
])("%s", async (_, options, expected) => {
  using file = scratch();
  writeFileSync(file.path, LOG);
  expect(await read(file.path, options)).toBe(expected);
});

test("the tail is found across blocks, and a last line without its end is none of it", async () => {
  using file = scratch();
  const lines = Array.from({ length: 5_000 }, (_, i) => `2026-01-02T03:04:05Z stdout F ${"x".repeat(40)} ${i}`);
  writeFileSync(file.path, lines.join("\n"));
  expect((await read(file.path, { tailLines: 3_000 })).split("\n").map((line) => line.slice(41))).toEqual([...Array.from({ length: 3_000 }, (_, i) => String(i + 1_999)), ""]);
  expect((await read(file.path, {})).split("\n").at(-1)?.slice(41)).toBe("4999");
  writeFileSync(file.path, `${lines[0]}\n2026-01-02T03:0`); // cut off with the power
  expect([await read(file.path, { tailLines: 1 }), await read(file.path, { tailLines: 0 })]).toEqual([`${"x".repeat(40)} 0\n`, ""]);
});

test("a follower gets what is appended, survives rotation and truncation without loss, and ends with the container", async () => {
  using file = scratch();
  let running = true;
  const line = (text: string): string => `2026-01-02T03:04:05Z stdout F ${text}\n`;
  writeFileSync(file.path, line("a"));
  let text = "";
  const done = (async () => {
    for await (const piece of readLog(file.path, await openLog(file.path), { follow: true }, { running: () => running, clock: systemClock, signal: new AbortController().signal })) text += piece.toString();
  })();
  await expect.poll(() => text).toBe("a\n");
  appendFileSync(file.path, line("b").slice(0, 10));
  appendFileSync(file.path, line("b").slice(10));
  await expect.poll(() => text).toBe("a\nb\n");
  renameSync(file.path, `${file.path}.old`);
  appendFileSync(`${file.path}.old`, line("c")); // not reopened yet
  await expect.poll(() => text).toBe("a\nb\nc\n");
  appendFileSync(`${file.path}.old`, line("d"));
  writeFileSync(file.path, line("e") + line("e"));
  await expect.poll(() => text).toBe("a\nb\nc\nd\ne\ne\n");
  truncateSync(file.path, 0);
  appendFileSync(file.path, line("longer"));
  await expect.poll(() => text).toBe("a\nb\nc\nd\ne\ne\nlonger\n");
  appendFileSync(file.path, line("cut off").slice(0, 10));
  await systemClock.sleep(50, new AbortController().signal); // it is read, and waits for its end; where that takes longer, less is there than was read all the same
  truncateSync(file.path, 0);
  appendFileSync(file.path, line("g"));
  await expect.poll(() => text).toBe("a\nb\nc\nd\ne\ne\nlonger\ng\n");
  running = false;
  await done;
  expect(text).toBe("a\nb\nc\nd\ne\ne\nlonger\ng\n");
});

test("lines that are none, and times", () => {
  for (const text of ["", "2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z stdout", "2026-01-02T03:04:05Z stdin F x", "yesterday stdout F x"]) expect(parseLogLine(Buffer.from(text))).toBeUndefined();
  expect(logTimeMs("2026-01-02T03:04:06.123456789Z")).toBe(Date.parse("2026-01-02T03:04:06.123Z"));
  expect(fixedLogTime("2026-01-02T03:04:06Z")).toBe("2026-01-02T03:04:06.000000000Z");
});
