import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { systemLogs } from "./system-logs.ts";

test("a directory is listed as Go's file server lists it: a name is no query, no fragment and no scheme", async () => {
  const directory = mkdtempSync(join(tmpdir(), "system-logs-"));
  for (const name of ["a b", "a:b", "c?d#e", "<x>"]) writeFileSync(join(directory, name), "");
  mkdirSync(join(directory, "pods"));
  const { body } = await systemLogs(directory, "");
  expect(body).toBe('<!doctype html>\n<meta name="viewport" content="width=device-width">\n<pre>\n<a href="%3Cx%3E">&lt;x&gt;</a>\n<a href="a%20b">a b</a>\n<a href="./a:b">a:b</a>\n<a href="c%3Fd%23e">c?d#e</a>\n<a href="pods/">pods/</a>\n</pre>\n');
});
