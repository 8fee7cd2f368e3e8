import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { removeButMessages } from "./remove-but-messages.ts";

test("of an ended pod's directory what its containers said stays, and nothing of one that said nothing", async () => {
  const directory = mkdtempSync(join(tmpdir(), "messages-"));
  const [spoke, silent] = [join(directory, "spoke"), join(directory, "silent")];
  for (const pod of [spoke, silent]) {
    for (const name of ["volumes/kubernetes.io~empty-dir/e/deep", "plugins", "containers/app", "containers/side"]) mkdirSync(join(pod, name), { recursive: true });
    for (const name of ["etc-hosts", "volumes/kubernetes.io~empty-dir/e/file", "containers/side/0a"]) writeFileSync(join(pod, name), name.startsWith("containers") ? "" : "x");
  }
  writeFileSync(join(spoke, "containers/app/0b"), "last words");
  await removeButMessages(spoke);
  await removeButMessages(silent);
  await removeButMessages(spoke); // at each later look
  expect(readdirSync(spoke, { recursive: true }).sort()).toEqual(["containers", "containers/app", "containers/app/0b"]);
  expect(existsSync(silent)).toBe(false);
  await removeButMessages(join(directory, "never there"));
  rmSync(directory, { recursive: true });
});
