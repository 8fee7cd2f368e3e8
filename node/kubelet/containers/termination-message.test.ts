import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { RuntimeContainer } from "../runtime-pod.ts";
import { terminationMessage } from "./termination-message.ts";

test("last words", async () => {
  const directory = mkdtempSync(join(tmpdir(), "words-"));
  const [file, log] = [join(directory, "message"), join(directory, "0.log")];
  writeFileSync(file, "from the file");
  writeFileSync(log, ["2026-01-01T00:00:00.1Z stdout F one", "2026-01-01T00:00:00.2Z stderr P tw", "2026-01-01T00:00:00.2Z stderr F o", ""].join("\n"));
  const words = (policy: string, { exitCode = 1, path = file, message = "" } = {}) => terminationMessage({
    exitCode, message, reason: "Error", logPath: log, mounts: [{ container_path: "/dev/termination-log", host_path: path }],
    spec: { hash: "", restartCount: 0, terminationMessagePath: "/dev/termination-log", terminationMessagePolicy: policy, gracePeriodSeconds: undefined, preStop: undefined },
  } as unknown as RuntimeContainer);
  try {
    expect(await words("File")).toBe("from the file");
    expect(await words("File", { message: "oom" })).toBe("oom: from the file");
    writeFileSync(file, "");
    expect(await words("File")).toBe("");
    expect(await words("FallbackToLogsOnError")).toBe("one\ntwo\n");
    expect(await words("FallbackToLogsOnError", { exitCode: 0 })).toBe("");
    const logged = async (...lines: string[]) => {
      writeFileSync(log, lines.map((line) => `2026-01-01T00:00:00.1Z stdout ${line}\n`).join(""));
      return await words("FallbackToLogsOnError");
    };
    expect(await logged("F first", `F ${"a".repeat(12_000)}end`)).toBe(`${"a".repeat(2_044)}end\n`);
    expect(await logged("F first", `F ${"a".repeat(40_000)}end`, "F last")).toBe(`${"a".repeat(2_039)}end\nlast\n`);
    expect(await logged(`P ${"a".repeat(16_384)}`, "F end")).toBe(`${"a".repeat(2_044)}end\n`);
    expect(await logged(...Array<string>(200).fill("F line"))).toBe("line\n".repeat(80));
    expect(await logged(...Array.from({ length: 90 }, (_, i) => `F ${i + 1}`), "P last")).toBe(`${Array.from({ length: 79 }, (_, i) => `${i + 12}\n`).join("")}last`);
    expect(await logged(...Array<string>(81).fill("P x"))).toBe("x".repeat(80)); // parts of a line that the runtime has cut are lines of its file
    const unended = async (count: number) => {
      writeFileSync(log, `${Array.from({ length: count }, (_, i) => `2026-01-01T00:00:00.1Z stdout F ${i + 1}\n`).join("")}2026-01-01T00:00:00.1Z stdout F and th`);
      return await words("FallbackToLogsOnError");
    };
    expect(await unended(2)).toBe("1\n2\nand th"); // somebody is just writing it, or the machine went down with it
    expect(await unended(79)).toMatch(/^1\n2\n(?:.*\n){77}and th$/);
    for (const count of [80, 81, 200]) expect(await unended(count)).toBe(Array.from({ length: 80 }, (_, i) => `${count - 79 + i}\n`).join(""));
    writeFileSync(file, "x".repeat(5000));
    expect((await words("File")).length).toBe(4096);
    expect(await words("File", { path: join(directory, "none") })).toBe("");
    if (process.platform === "linux") execFileSync("mkfifo", [join(directory, "pipe")]);
    expect(await words("File", { path: process.platform === "linux" ? join(directory, "pipe") : directory })).toMatch(/^Error on reading termination log .*: is no regular file$/);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
