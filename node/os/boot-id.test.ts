import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { bootId } from "./boot-id.ts";

test.skipIf(process.platform !== "linux")("a machine whose disk was unplugged is for notes on it another one each time, as after a reboot", () => {
  const directory = mkdtempSync(join(tmpdir(), "boot-id-"));
  const lostDisk = join(directory, "lost-disk");
  const ids = [undefined, undefined, "one\n", "one\n", "two\n"].map((text) => {
    if (text !== undefined) writeFileSync(lostDisk, text);
    return bootId(lostDisk);
  });
  expect(ids.map((id) => ids.indexOf(id))).toEqual([0, 0, 2, 2, 4]);
  rmSync(directory, { recursive: true });
});
