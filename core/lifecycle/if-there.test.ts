import { readdirSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ifThere, ifThereSync } from "./if-there.ts";

const GONE = join(tmpdir(), "nothing-is-called-so");

test("nothing there is an answer", async () => {
  expect([await ifThere(readdir(GONE)), ifThereSync(() => readdirSync(GONE))]).toEqual([undefined, undefined]);
  expect([await ifThere(Promise.resolve(1)), ifThereSync(() => 2)]).toEqual([1, 2]);
});

test("whatever else goes wrong is thrown", async () => {
  const file = import.meta.filename;
  await expect(ifThere(readdir(file))).rejects.toThrow("ENOTDIR");
  expect(() => ifThereSync(() => readdirSync(file))).toThrow("ENOTDIR");
});
