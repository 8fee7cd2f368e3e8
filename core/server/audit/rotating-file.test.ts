import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../lifecycle/clock.ts";
import { silentLog } from "../../observe/log.ts";
import { RotatingFile } from "./rotating-file.ts";

function given(): { directory: string; path: string; file: RotatingFile; lost: number[] } {
  const lost: number[] = [];
  const directory = mkdtempSync(join(tmpdir(), "rotating-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const path = join(directory, "audit.log");
  return { directory, path, lost, file: new RotatingFile({ path, bytesMax: 13, filesMax: 1, ageMaxMs: 0, clock: systemClock, log: silentLog, lost: (lines) => lost.push(lines) }) };
}

test("a line that a power cut left half is a line of its own", async () => {
  const { path, file } = given();
  writeFileSync(path, `{"hal`);
  await file.write("{}");
  await file.close();
  expect(readFileSync(path, "utf8")).toBe(`{"hal\n{}\n`);
});

test.runIf(process.platform === "linux")("what could not be written to is opened anew", async () => {
  const { directory, path, lost, file } = given();
  symlinkSync("/dev/full", path);
  await file.write("lost");
  expect(lost).toEqual([1]);
  unlinkSync(path);
  symlinkSync(join(directory, "other"), path);
  await file.write("written");
  await file.close();
  expect([lost, readFileSync(path, "utf8")]).toEqual([[1], "written\n"]);
});

test("what was put aside and cannot be cleared away costs no line", async () => {
  const { directory, path, lost, file } = given();
  for (const day of ["01", "02"]) mkdirSync(join(directory, `audit-2026-01-${day}T00-00-00.000.log`));
  for (const line of ["first line", "second line"]) await file.write(line);
  await file.close();
  expect([lost, readFileSync(path, "utf8")]).toEqual([[], "second line\n"]);
});

test("what was put aside is compressed where that is asked for, also what was left when the machine went down, and counts once among those kept", async () => {
  const { directory, path } = given();
  const file = new RotatingFile({ path, bytesMax: 13, filesMax: 2, ageMaxMs: 0, compress: true, clock: systemClock, log: silentLog });
  for (const name of ["audit-2026-01-01T00-00-00.000.log.gz", "audit-2026-01-02T00-00-00.000.log", "audit-2026-01-02T00-00-00.000.log.gz"]) writeFileSync(join(directory, name), "old\n");
  await file.write("first line");
  await expect.poll(() => readdirSync(directory).filter((name) => name.endsWith(".log")).length).toBe(1);
  expect(readdirSync(directory).sort()).toEqual(["audit-2026-01-01T00-00-00.000.log.gz", "audit-2026-01-02T00-00-00.000.log.gz", "audit.log"]);
  await file.write("second line");
  await expect.poll(() => readdirSync(directory).filter((name) => name.endsWith(".log")).length).toBe(1);
  await file.close();
  const aside = readdirSync(directory).filter((name) => name.endsWith(".gz")).sort();
  expect(aside.map((name) => gunzipSync(readFileSync(join(directory, name))).toString())).toEqual(["old\n", "first line\n"]);
});

test("after a clock was set back what was put aside last is kept, not what was before", async () => {
  const { directory, path } = given();
  for (const day of ["01", "02"]) writeFileSync(join(directory, `audit-2126-01-${day}T00-00-00.000.log`), "old\n");
  const file = new RotatingFile({ path, bytesMax: 13, filesMax: 2, ageMaxMs: 0, clock: { ...systemClock, nowMs: () => Date.UTC(2026, 0, 1) }, log: silentLog });
  for (const line of ["first line", "second line"]) await file.write(line);
  await file.close();
  expect(readdirSync(directory).sort()).toEqual(["audit-2026-01-01T00-00-00.000.log", "audit-2126-01-02T00-00-00.000.log", "audit.log"]);
});
