/**
 * containerd as a process of its own: started in a session of its own, it outlives us. A new `coracle` finds it by the process file, takes it over, and restarts it only
 * if its programs or its configuration have changed. Containers are children of their shims, so they outlive containerd in turn.
 *
 *   stopped ─start─▶ running ─ends─▶ back-off ─start─▶ …        stopping `coracle` leaves it as it is; one that hangs is ended
 */
import { spawn } from "node:child_process";
import { closeSync, existsSync, fstatSync, mkdirSync, openSync, readSync, renameSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { backoffMs } from "../../core/lifecycle/backoff.ts";
import { fileTextSync, isUnreadable } from "../../core/lifecycle/file-text.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Log } from "../../core/observe/log.ts";
import { bootId } from "../os/boot-id.ts";
import { trimLog } from "./log-file.ts";
import { identify, isAlive, type ProcessIdentity, signalProcess } from "./process-identity.ts";

export interface ContainerdOptions {
  readonly program: string;
  readonly configFile: string;
  readonly logFile: string;
  readonly processFile: string;
  /** Of everything that makes a restart necessary when it changes. */
  readonly fingerprint: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Resolves once the runtime answers. */
  readonly answers: (signal: AbortSignal) => Promise<void>;
  /** How long it may take to. */
  readonly answerMs?: number | undefined;
  /** Resolves, or throws what it is refused, once what containers are asked for is answered; when `signal` aborts, too. Asked again and again while it runs. */
  readonly alive: (signal: AbortSignal) => Promise<unknown>;
  /** How long that may take. */
  readonly silentMs?: number | undefined;
  /** What must be done with it before anyone else uses it. Repeated when it throws. */
  readonly prepare: (signal: AbortSignal) => Promise<void>;
  /** Called before one is started again, with how many in a row did not stay up and what the last said. Does not throw. */
  readonly heal?: ((failures: number, lines: readonly string[], signal: AbortSignal) => Promise<void>) | undefined;
}

interface Deps { readonly clock: Clock; readonly log: Log }

/** What the process file holds. */
interface Noted extends ProcessIdentity {
  readonly fingerprint: string;
  /** Of bootId: machines that start alike give the same numbers at the same moments. A version of before has not noted it. */
  readonly boot?: string | undefined;
}

interface Running extends Omit<Noted, "boot"> {
  /** Aborts when it ends. Absent: it is not our child, and nobody tells. */
  readonly ended?: AbortSignal | undefined;
}

/** How often a containerd that is not our child is looked at: reading one line of /proc. */
const LOOK_PERIOD_MS = 1_000;
/** And one that is, whose end the kernel tells: for its log. */
const OWN_LOOK_PERIOD_MS = 30_000;
const RESTART_BACKOFF = { minMs: 200, maxMs: 10_000 };
/** One that ran this long did not fail because of how it was started. */
const STABLE_MS = 60_000;
/** Of its log, a panic's stack and more. */
const TAIL_BYTES = 64 * 1024;
/** containerd has nothing to finish: requests under way are repeated by the kubelet. */
const STOP_TIMEOUT_MS = 10_000;
/** On a loaded single-core machine with hundreds of containers to find again; 0.1 s on an idle one with none. */
const ANSWER_TIMEOUT_MS = 120_000;
/** Between an answer and the next question. */
const ALIVE_PERIOD_MS = 60_000;
/** It waits for the disk in between, which may be a bad one; for so long only one that hangs is silent. */
const SILENT_MS_MAX = 600_000;

/**
 * Keeps containerd running until `signal` aborts, and then leaves it running. Calls `ready` once it answers for the first time and `prepare` has succeeded. Whatever goes wrong with
 * it is logged and tried again: the rest of the machine's cluster does not fall with its containers.
 */
export async function superviseContainerd(options: ContainerdOptions, { clock, log }: Deps, signal: AbortSignal, ready: () => void): Promise<void> {
  const preparing = prepareOnce(options, { clock, log }, ready);
  let failures = 0;
  let running = await takeOver(options, { clock, log });
  while (!signal.aborted) {
    const startedMs = clock.uptimeMs();
    running ??= start(options, log);
    if (running) {
      const over = new AbortController();
      const life = AbortSignal.any([signal, over.signal]);
      const works = [preparing(running, life), endIfSilent(options, running, { clock, log }, life)];
      await waitForEnd(running, { clock, log, logFile: options.logFile }, life);
      over.abort();
      await Promise.all(works);
    }
    if (signal.aborted) return;
    failures = clock.uptimeMs() - startedMs >= STABLE_MS ? 1 : failures + 1;
    const delayMs = backoffMs(failures, RESTART_BACKOFF);
    const lines = lastLines(options.logFile);
    log.warn("containerd ended, starting it again", { pid: running?.pid, delayMs, lastLines: telling(lines) });
    running = undefined;
    await clock.sleep(delayMs, signal);
    if (!signal.aborted) await options.heal?.(failures, lines, signal);
  }
}

/**
 * Waits for the first answer, and the first time prepares and says ready. One that never answers is ended, and so started again; so is one that only refuses: where there was
 * no room when it started it runs without what it could not make, CRI among that, and stays so.
 */
function prepareOnce({ answers, prepare, logFile, answerMs = ANSWER_TIMEOUT_MS }: ContainerdOptions, deps: Deps, ready: () => void): (running: Running, signal: AbortSignal) => Promise<void> {
  let isDone = false;
  return async (running, signal) => {
    const inTime = AbortSignal.any([signal, AbortSignal.timeout(answerMs)]);
    for (let failures = 1, hasAnswered = false; !(isDone && hasAnswered) && !signal.aborted; failures++) {
      try {
        if (!hasAnswered) await answers(inTime);
        hasAnswered = true;
        if (isDone) return;
        await prepare(signal);
        isDone = true;
        ready();
      } catch (error) {
        if (signal.aborted) return;
        deps.log.error("containerd is running but not usable", { pid: running.pid, error, logFile });
        if (!hasAnswered && inTime.aborted) return stop(running, deps, signal);
        await deps.clock.sleep(backoffMs(failures, RESTART_BACKOFF), signal);
      }
    }
  };
}

/** One that hangs would do so until somebody comes; another one finds its containers, which go on. */
async function endIfSilent({ alive, silentMs = SILENT_MS_MAX, logFile }: ContainerdOptions, running: Running, deps: Deps, signal: AbortSignal): Promise<void> {
  for (;;) {
    await deps.clock.sleep(Math.min(ALIVE_PERIOD_MS, silentMs), signal);
    const inTime = AbortSignal.any([signal, AbortSignal.timeout(silentMs)]);
    await alive(inTime).catch(() => undefined); // a refusal is an answer
    if (signal.aborted) return;
    if (!inTime.aborted) continue;
    deps.log.error("containerd runs and does not answer, ending it", { pid: running.pid, silentMs, logFile });
    return await stop(running, deps, signal);
  }
}

/** Ends containerd if it runs, and tells which process it was; containers go on without it. */
export async function stopContainerd(processFile: string, { clock, log }: Deps): Promise<ProcessIdentity | undefined> {
  const found = readProcessFile(processFile);
  const running = found && isAlive(found) ? found : undefined;
  if (running) await stop(running, { clock, log });
  rmSync(processFile, { force: true });
  return running;
}

async function takeOver(options: ContainerdOptions, deps: Deps): Promise<Running | undefined> {
  const running = readProcessFile(options.processFile);
  if (!running || !isAlive(running)) return undefined;
  if (running.fingerprint === options.fingerprint) {
    deps.log.info("containerd is already running", { pid: running.pid });
    return running;
  }
  deps.log.info("containerd is restarted: its programs or its configuration have changed", { pid: running.pid });
  await stop(running, deps);
  return undefined;
}

/** Undefined if it did not start, or ended at once. */
function start({ program, configFile, logFile, processFile, fingerprint, environment }: ContainerdOptions, log: Log): Running | undefined {
  mkdirSync(dirname(logFile), { recursive: true });
  const out = openSync(logFile, "a", 0o640); // a file, not a pipe: nobody may be there to read it when we are gone
  try {
    const child = spawn(program, ["--config", configFile], { detached: true, stdio: ["ignore", out, out], env: { ...environment } });
    child.on("error", (error: NodeJS.ErrnoException) => log.error(error.code === "EACCES" ? "containerd cannot be started: programs may not be run there (a file system mounted noexec?); choose another place with --data-dir" : "containerd cannot be started", { program, error }));
    const ended = new AbortController();
    child.on("exit", () => ended.abort());
    child.unref();
    const identity = child.pid === undefined ? undefined : identify(child.pid);
    if (!identity) return undefined;
    const running = { ...identity, fingerprint };
    noteProcess(processFile, JSON.stringify({ ...running, boot: bootId() } satisfies Noted), log);
    log.info("containerd started", { pid: running.pid });
    return { ...running, ended: ended.signal };
  } finally {
    closeSync(out);
  }
}

/** Whole or not at all; on a disk without room in the place of what is there, which takes none: it runs already, and whoever does not find it starts another one. */
function noteProcess(path: string, text: string, log: Log): void {
  try {
    writeFileSync(`${path}.new`, text);
    renameSync(`${path}.new`, path);
  } catch {
    try {
      writeFileSync(path, text, { flag: existsSync(path) ? "r+" : "w" });
      truncateSync(path, Buffer.byteLength(text));
    } catch (error) {
      log.error("which process containerd is cannot be noted: the next start of Coracle will not find it", { path, error });
    }
  }
}

async function waitForEnd(running: Running, { clock, log, logFile }: Deps & { readonly logFile: string }, signal: AbortSignal): Promise<void> {
  const { ended } = running;
  const quit = ended ? AbortSignal.any([signal, ended]) : signal;
  while (!quit.aborted && isAlive(running)) {
    await trimLog(logFile).catch((error: unknown) => log.warn("containerd's log cannot be cut", { logFile, error }));
    await clock.sleep(ended ? OWN_LOOK_PERIOD_MS : LOOK_PERIOD_MS, quit);
  }
}

/** Until it is gone, or `signal` aborts: one that waits for a disk that hangs goes when that answers, whatever it is sent. */
async function stop(running: Running, { clock }: Deps, signal: AbortSignal = new AbortController().signal): Promise<void> {
  signalProcess(running, "SIGTERM");
  for (const deadlineMs = clock.uptimeMs() + STOP_TIMEOUT_MS; isAlive(running) && clock.uptimeMs() < deadlineMs && !signal.aborted;) await clock.sleep(20, signal);
  if (signal.aborted) return;
  signalProcess(running, "SIGKILL");
  while (isAlive(running) && !signal.aborted) await clock.sleep(20, signal);
}

function readProcessFile(path: string): Running | undefined {
  const text = fileTextSync(path);
  if (text === undefined) return undefined;
  try {
    const { pid, startTicks, fingerprint, boot = bootId() } = JSON.parse(text) as Partial<Noted>;
    return boot === bootId() && typeof pid === "number" && typeof startTicks === "number" && typeof fingerprint === "string" ? { pid, startTicks, fingerprint } : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined; // cut off by a crash: what it named is started anew, and the lock on containerd's database settles it
    throw error;
  }
}

/** Of one that panics the log ends with hundreds of lines. */
function lastLines(logFile: string): string[] {
  return tailOf(logFile).trimEnd().split("\n").filter(Boolean);
}

function tailOf(path: string): string {
  if (!existsSync(path)) return "";
  const file = openSync(path, "r");
  try {
    const { size } = fstatSync(file), buffer = Buffer.alloc(Math.min(size, TAIL_BYTES));
    return buffer.toString("utf8", 0, readSync(file, buffer, 0, buffer.length, size - buffer.length));
  } catch (error) {
    if (isUnreadable(error)) return "";
    throw error;
  } finally {
    closeSync(file);
  }
}

/** Three of them: what it ended for where it said so, which stands before its stack. */
function telling(lines: readonly string[]): readonly string[] {
  const at = lines.findLastIndex((line) => /^(panic|fatal error|unexpected fault address|containerd): ?/.test(line));
  return at < 0 ? lines.slice(-3) : lines.slice(at, at + 3);
}
