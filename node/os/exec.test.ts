import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { exec, execOk } from "./exec.ts";

test("an exit code is an answer; input and both outputs go through", async () => {
  expect(await exec("sh", ["-c", "cat; echo no >&2; exit 3"], { stdin: "hello" })).toEqual({ exitCode: 3, stdout: "hello", stderr: "no\n" });
});

test.each([
  ["a program that is not there", () => exec("/no/such/program", []), "not-found"],
  ["a program that takes too long", () => exec("sleep", ["10"], { timeoutMs: 50 }), "timeout"],
  ["a caller who lost interest", () => exec("sleep", ["10"], { signal: AbortSignal.timeout(50) }), "aborted"],
  ["a program killed by someone else", () => exec("sh", ["-c", "kill -9 $$"]), "killed"],
  ["a failure nobody has a branch for", () => execOk("sh", ["-c", "echo broken >&2; exit 1"]), "failed"],
])("%s throws", async (_, run, code) => {
  await expect(run()).rejects.toMatchObject({ name: "ExecError", code });
});

test("what a program has started, and left behind with its outputs, is not waited for longer than the program", async () => {
  const left = "sleep 1000 & echo $!", timeoutMs = 3_000; // by then a busy machine, too, has started it
  const { exitCode, stdout } = await exec("sh", ["-c", left], { timeoutMs });
  process.kill(Number(stdout));
  expect(exitCode).toBe(0);
  const pidFile = join(mkdtempSync(join(tmpdir(), "exec-")), "pid");
  await expect(exec("sh", ["-c", `${left} > "$0"; exec sleep 1000`, pidFile], { timeoutMs })).rejects.toMatchObject({ code: "timeout" });
  process.kill(Number(readFileSync(pidFile, "utf8")));
  rmSync(dirname(pidFile), { recursive: true });
});

test("input nobody reads is no error", async () => {
  expect((await exec("true", [], { stdin: "x".repeat(1 << 20) })).exitCode).toBe(0);
  const stream = Readable.from((function* () { for (;;) yield Buffer.alloc(1 << 16); })());
  expect((await exec("true", [], { stdin: stream })).exitCode).toBe(0);
  expect(stream.destroyed).toBe(true);
});

test("input may be a stream; one that fails ends the program", async () => {
  expect((await exec("wc", ["-c"], { stdin: Readable.from([Buffer.alloc(1 << 20), Buffer.alloc(1)]) })).stdout.trim()).toBe(String((1 << 20) + 1));
  const torn = Readable.from((function* () { yield Buffer.from("half"); throw new Error("torn"); })());
  await expect(exec("cat", [], { stdin: torn })).rejects.toMatchObject({ code: "failed", cause: { message: "torn" } });
});
