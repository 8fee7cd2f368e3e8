/**
 * The compiled binary as a benchmark runs it: its processes in a directory of their own, what they use, and how to wait for what they do.
 *
 *   await using bench = compiledBench();                   // ends its processes, removes its directory
 *   const server = bench.start("server", ["server", …]);
 *   await bench.until("the server is ready", async () => …);
 */
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface ProcessUse {
  /** Of all threads, so far. */
  cpuMs(): number;
  memoryMb(): number;
  /** To its disk, so far. */
  writtenMb(): number;
}

export interface Process extends ProcessUse {
  readonly name: string;
  readonly child: Bun.Subprocess;
  log(): string;
}

export interface CompiledBench {
  readonly directory: string;
  /** Runs the binary, or the source with `CORACLE_PROFILE=<directory>`: then a .cpuprofile is there in the end. */
  start(name: string, args: readonly string[]): Process;
  /** Without a word (SIGKILL). */
  kill(process: Process): Promise<void>;
  /** Throws when a process ends before that, or it takes too long. */
  until(what: string, holds: () => boolean | Promise<boolean>, withinMs?: number): Promise<void>;
}

const ROOT = join(import.meta.dirname, "../..");
const TICK_MS = 10; // of /proc/…/stat
const POLL_MS = 50;
const UNTIL_MS = 600_000;

export function compiledBench(): CompiledBench & AsyncDisposable {
  const directory = mkdtempSync(join(tmpdir(), "coracle-bench-"));
  const started: Process[] = [];
  const profiles = process.env["CORACLE_PROFILE"];
  const command = profiles === undefined ? [process.env["CORACLE_BINARY"] ?? join(ROOT, "dist/coracle")] : [process.execPath, "--cpu-prof", "--cpu-prof-dir", profiles, join(ROOT, "cmd/main.ts")];
  return {
    directory,
    start(name, args) {
      const logFile = join(directory, `${name}-${started.length}.log`);
      const child = Bun.spawn([...command, ...args], { stdout: "ignore", stderr: Bun.file(logFile), env: { ...process.env, CORACLE_DATA_DIR: join(directory, name) } });
      const one = processOf(name, child, logFile);
      started.unshift(one);
      return one;
    },
    async kill(one) {
      started.splice(started.indexOf(one), 1);
      one.child.kill("SIGKILL");
      await one.child.exited;
    },
    async until(what, holds, withinMs = UNTIL_MS) {
      const endMs = performance.now() + withinMs;
      while (!(await holds())) {
        for (const { name, child, log } of started) if (child.exitCode !== null) throw new Error(`${name} ended before: ${what}\n${log().slice(-2000)}`);
        if (performance.now() > endMs) throw new Error(`not within ${withinMs / 1000} s: ${what}`);
        await Bun.sleep(POLL_MS);
      }
    },
    async [Symbol.asyncDispose]() {
      for (const { child } of started) {
        child.kill("SIGCONT");
        child.kill("SIGTERM");
        await child.exited;
      }
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

function processOf(name: string, child: Bun.Subprocess, logFile: string): Process {
  return { name, child, ...processUse([child.pid]), log: () => readFileSync(logFile, "utf8") };
}

/** Of all these together. */
export function processUse(pids: readonly number[]): ProcessUse {
  const proc = (pid: number, file: string): string => readFileSync(`/proc/${pid}/${file}`, "utf8");
  const sum = (of: (pid: number) => number): number => pids.reduce((total, pid) => total + of(pid), 0);
  return {
    cpuMs: () => sum((pid) => {
      const fields = proc(pid, "stat").replace(/^.*\) /, "").split(" ");
      return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
    }),
    memoryMb: () => sum((pid) => Number(/^Pss:\s+(\d+)/m.exec(proc(pid, "smaps_rollup"))![1]) / 1024),
    writtenMb: () => sum((pid) => Number(/^write_bytes: (\d+)/m.exec(proc(pid, "io"))![1]) / 1e6),
  };
}

/** Whether the file is there, and not empty. */
export function isWritten(path: string): boolean { return (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0; }

/** Of numbers in ascending order. */
export function percentile(sorted: readonly number[], p: number): number { return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * p) / 100))] ?? 0; }
