/**
 * Runs a program to its end: output captured, bounded, with a time limit. For short-lived tools (nft, ip, ctr, runc, CNI plugins);
 * what lives on has a supervisor of its own.
 *
 * A program that answers with a non-zero exit code is an answer, not an error: `exec` returns it. `execOk` is for callers who have no branch
 * for it. What throws is a program that cannot be started, that was killed, or that did not end in time.
 */
import { spawn } from "node:child_process";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

export interface ExecOptions {
  /** The whole environment of the program. Absent: this process's own. */
  readonly env?: Readonly<Record<string, string>>;
  /** Of a stream that fails the program is killed, and what it failed with is thrown; one that the program does not want to its end is destroyed. */
  readonly stdin?: string | Uint8Array | Readable;
  readonly directory?: string;
  /** Killed after this long; what it has left behind is not waited for longer. Default: EXEC_TIMEOUT_MS. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export interface ExecResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

export type ExecErrorCode = "not-found" | "failed" | "killed" | "timeout" | "aborted";

export class ExecError extends Error {
  readonly code: ExecErrorCode;
  readonly result: ExecResult | undefined;
  /** The end of a program that could not be ended. */
  readonly left: Promise<void> | undefined;
  constructor(code: ExecErrorCode, message: string, { result, cause, left }: { result?: ExecResult; cause?: unknown; left?: Promise<void> | undefined } = {}) {
    super(message, { cause });
    this.name = "ExecError";
    this.code = code;
    this.result = result;
    this.left = left;
  }
}

export type Exec = (command: string, args: readonly string[], options?: ExecOptions) => Promise<ExecResult>;

/** Longer than any tool we run needs on a loaded single-core machine, shorter than what a sync loop may hang. */
const EXEC_TIMEOUT_MS = 120_000;
/** What is still there so long after it was killed waits in the kernel, for a disk or a server that does not answer: it ends when that does, and nobody waits for it. */
const KILLED_MS = 2_000;
/** Per stream; what comes after is dropped. A node's whole nftables ruleset as JSON is about a tenth of it. */
const OUTPUT_BYTES_MAX = 16 << 20;

/** Runs `command` (a path, or a name looked up in the PATH of `options.env`) and returns how it ended. */
export async function exec(command: string, args: readonly string[], options: ExecOptions = {}): Promise<ExecResult> {
  const what = [command, ...args].join(" ");
  const stop = AbortSignal.any([AbortSignal.timeout(options.timeoutMs ?? EXEC_TIMEOUT_MS), ...(options.signal ? [options.signal] : [])]);
  if (stop.aborted) throw new ExecError("aborted", `${what}: not started, already aborted`);

  const child = spawn(command, args, { stdio: ["pipe", "pipe", "pipe"], windowsHide: true, ...(options.env && { env: options.env }), ...(options.directory !== undefined && { cwd: options.directory }) });
  let giveUp = (): void => undefined, left: Promise<void> | undefined;
  const kill = (): void => {
    child.kill("SIGKILL");
    AbortSignal.timeout(KILLED_MS).addEventListener("abort", () => giveUp(), { once: true });
    for (const stream of [child.stdout, child.stderr]) stream.destroy(); // what it has left behind may hold them open for ever
  };
  stop.addEventListener("abort", kill, { once: true });
  try {
    const ended = new Promise<{ exitCode: number | null; signalName: string | null }>((resolve, reject) => {
      giveUp = () => {
        left = new Promise((gone) => child.once("close", () => gone()));
        resolve({ exitCode: null, signalName: null });
      };
      child.once("error", reject);
      child.once("close", (exitCode, signalName) => resolve({ exitCode, signalName }));
    });
    child.stdin.on("error", () => undefined); // EPIPE: the program did not want all of its input; its exit code tells whether that is a failure
    let broken: Error | undefined;
    if (options.stdin instanceof Readable) {
      options.stdin.on("error", (error) => {
        if (child.stdin.destroyed) return; // it is because the program wants no more
        broken = error;
        kill();
      });
      pipeline(options.stdin, child.stdin).catch(() => undefined); // told by either end
    } else child.stdin.end(options.stdin ?? "");
    const [{ exitCode, signalName }, stdout, stderr] = await Promise.all([ended, collect(child.stdout), collect(child.stderr)]);
    if (broken) throw new ExecError("failed", `${what}: its input cannot be read: ${broken.message}`, { cause: broken });
    if (exitCode !== null) return { exitCode, stdout, stderr };
    const result = { exitCode: -1, stdout, stderr };
    if (options.signal?.aborted) throw new ExecError("aborted", `${what}: aborted`, { result, cause: options.signal.reason, left });
    if (stop.aborted) throw new ExecError("timeout", `${what}: did not end in time`, { result, left });
    throw new ExecError("killed", `${what}: killed by ${signalName}: ${lastLine(stderr)}`, { result });
  } catch (cause) {
    if (cause instanceof ExecError) throw cause;
    const missing = (cause as NodeJS.ErrnoException).code === "ENOENT";
    throw new ExecError(missing ? "not-found" : "failed", missing ? `${command}: no such program` : `${what}: cannot be started`, { cause });
  } finally {
    stop.removeEventListener("abort", kill);
    if (options.stdin instanceof Readable) options.stdin.destroy();
  }
}

/** The same, but that what could not be ended is not started once more before it has: who asks a disk that does not answer again and again would fill the machine with programs that wait for it. */
export function sparing(run: Exec): Exec {
  const left = new Set<string>(); // command lines
  return async (command, args, options) => {
    const line = [command, ...args].join(" ");
    if (left.has(line)) throw new ExecError("timeout", `${line}: one of before has not ended`);
    try {
      return await run(command, args, options);
    } catch (error) {
      if (error instanceof ExecError && error.left) {
        left.add(line);
        void error.left.then(() => left.delete(line));
      }
      throw error;
    }
  };
}

/** Like `exec`, for callers to whom anything but exit code 0 is a failure. Returns standard output. */
export async function execOk(command: string, args: readonly string[], options: ExecOptions = {}): Promise<string> {
  const result = await exec(command, args, options);
  if (result.exitCode !== 0) throw new ExecError("failed", `${[command, ...args].join(" ")}: exit code ${result.exitCode}: ${lastLine(result.stderr || result.stdout)}`, { result });
  return result.stdout;
}

async function collect(stream: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const chunk of stream) {
      if (bytes + chunk.length <= OUTPUT_BYTES_MAX) chunks.push(chunk);
      bytes += chunk.length;
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_STREAM_PREMATURE_CLOSE") throw error; // we closed it
  }
  return Buffer.concat(chunks).toString("utf8");
}

function lastLine(text: string): string {
  return text.trim().split("\n").at(-1) ?? "";
}
