import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { fileLog } from "./file-log.ts";

test("a log in a file is cut into a few, and none grows without end", () => {
  const directory = mkdtempSync(join(tmpdir(), "file-log-"));
  try {
    const path = join(directory, "sub", "coracle.log");
    for (let start = 0; start < 2; start++) {
      const log = fileLog(path, "info", 500); // the second time it goes on where the first left off
      for (let i = 0; i < 60; i++) log.info("something has happened", { start, i });
      log.debug("nobody wants to know", {});
    }
    expect(readdirSync(join(directory, "sub")).sort()).toEqual(["coracle.log", "coracle.log.1", "coracle.log.2", "coracle.log.3", "coracle.log.4"]);
    const lines = readFileSync(path, "utf8").trim().split("\n");
    expect(JSON.parse(lines.at(-1)!)).toMatchObject({ msg: "something has happened", start: 1, i: 59 });
    expect(readFileSync(`${path}.1`, "utf8").length).toBeLessThan(800);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("a log that cannot be written to ends nothing, and goes on when it can", () => {
  const full = fileLog("/dev/full", "info");
  full.info("the disk is full");
  const directory = mkdtempSync(join(tmpdir(), "file-log-"));
  try {
    const path = join(directory, "coracle.log");
    const log = fileLog(path, "info", 100);
    mkdirSync(`${path}.4`); // so that the oldest cannot be removed
    for (let i = 0; i < 10; i++) log.info("something has happened", { i });
    expect(JSON.parse(readFileSync(path, "utf8").trim().split("\n").at(-1)!)).toMatchObject({ i: 9 });
  } finally {
    rmSync(directory, { recursive: true });
  }
});
