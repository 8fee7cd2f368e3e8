import { spawnSync } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { expect, test } from "vitest";
import { isJournal, leveledLog, prioritized } from "./stderr-log.ts";

test("the journal is told how grave a line is", () => {
  const lines: string[] = [];
  const log = leveledLog("debug", (line) => void lines.push(prioritized(line)));
  for (const level of ["error", "warn", "info", "debug"] as const) log.with({ part: "node" })[level]("told", { level: "odd" });
  expect(lines.map((line) => line.slice(0, 3))).toEqual(["<3>", "<4>", "<6>", "<7>"]);
  expect(JSON.parse(lines[0]!.slice(3))).toMatchObject({ part: "node", msg: "told" });
});

test("it is the journal when standard error is the stream that systemd opened", () => {
  const stderr = () => ({ dev: 9, ino: 1234 });
  expect(isJournal({ JOURNAL_STREAM: "9:1234" }, stderr)).toBe(true);
  expect(isJournal({ JOURNAL_STREAM: "9:1235" }, stderr)).toBe(false);
  expect(isJournal({}, () => { throw new Error("not asked for"); })).toBe(false);
});

test.skipIf(process.platform !== "linux")("a disk without room for the log does not end the process", () => {
  const full = openSync("/dev/full", "w");
  const say = `
    import { lastWords } from "${import.meta.dirname}/last-words.ts";
    import { stderrLog } from "${import.meta.dirname}/stderr-log.ts";
    const log = stderrLog("info");
    lastWords(process, log);
    for (let i = 0; i < 5; i++) log.info("all is well");
    setTimeout(() => process.exit(42), 100);
  `;
  expect(spawnSync(process.execPath, ["-e", say], { stdio: ["ignore", "ignore", full], timeout: 60_000 }).status).toBe(42);
  closeSync(full);
});
