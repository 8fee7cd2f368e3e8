/**
 * Reads a container's log as `kubectl logs` wants it: from the nth line from the end, from a time on, up to so many bytes, with or without
 * timestamps, and on and on while the container runs.
 *
 * A follower that has read a file to its end looks whether another file has its name by now: then the runtime has reopened its log after a
 * rotation, so what the old file holds is complete. It is read to its end before the new one is begun: nothing is lost or told twice.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/cri-client/pkg/logs/logs.go
 */
import { type FSWatcher, watch } from "node:fs";
import { type FileHandle, open, stat } from "node:fs/promises";
import { dirname } from "node:path";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import { ifThere, isNotThere } from "../../../core/lifecycle/if-there.ts";
import { fixedLogTime, logTimeMs, parseLogLine } from "./log-line.ts";

export interface ReadLogOptions {
  readonly tailLines?: number | undefined;
  readonly limitBytes?: number | undefined;
  readonly sinceMs?: number | undefined;
  readonly timestamps?: boolean | undefined;
  readonly follow?: boolean | undefined;
  readonly stream?: "All" | "Stdout" | "Stderr" | undefined;
}

interface Deps {
  /** Whether more may be written. */
  readonly running: () => boolean;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

const READ_BYTES = 64 * 1024;
/** Notifications may be lost: look again after this long. Source: logForceCheckPeriod */
const CHECK_MS = 1_000;
/** Runtimes cut lines at 16 kB; what is longer is no line of theirs. */
const LINE_BYTES_MAX = 1024 * 1024;
const LINE_FEED = 10;

/** Throws what open throws. */
export async function openLog(path: string): Promise<FileHandle> {
  return await open(path, "r");
}

/** Yields pieces of the answer. Takes the file over: it is closed when this ends. */
export async function* readLog(path: string, first: FileHandle, options: ReadLogOptions, { running, clock, signal }: Deps): AsyncGenerator<Buffer> {
  let file = first;
  const changes = options.follow ? changesIn(dirname(path), clock) : undefined;
  try {
    const select = selector(options);
    let position = await tailStart(file, options.tailLines);
    let rest: Buffer = Buffer.alloc(0);
    for (;;) {
      const wasRunning = running(); // before reading: what was written until then is read below
      const replaced = options.follow === true && (await isReplaced(path, file));
      for (;;) {
        const chunk = Buffer.allocUnsafe(READ_BYTES);
        const { bytesRead } = await file.read(chunk, 0, READ_BYTES, position);
        if (signal.aborted) return;
        if (bytesRead === 0) break;
        position += bytesRead;
        const bytes = rest.length === 0 ? chunk.subarray(0, bytesRead) : Buffer.concat([rest, chunk.subarray(0, bytesRead)]);
        const end = bytes.lastIndexOf(LINE_FEED) + 1;
        rest = bytes.length - end > LINE_BYTES_MAX ? Buffer.alloc(0) : bytes.subarray(end);
        const { text, done } = select(bytes.subarray(0, end));
        if (text.length > 0) yield text;
        if (done) return;
      }
      if (replaced) {
        const next = await ifThere(openLog(path));
        if (next) {
          await file.close();
          file = next;
          position = 0;
          rest = Buffer.alloc(0);
          continue;
        }
      }
      if (!options.follow || !wasRunning) {
        const { text } = select(rest);
        if (text.length > 0) yield text;
        return;
      }
      if ((await file.stat()).size < position) { // copied and truncated: of half a line the rest will not come
        position = 0;
        rest = Buffer.alloc(0);
      } else await changes!.next(signal);
      if (signal.aborted) return;
    }
  } finally {
    changes?.close();
    await file.close();
  }
}

/** Turns whole lines of the file into what is shown of them. */
function selector({ tailLines, limitBytes, sinceMs, timestamps, follow, stream }: ReadLogOptions): (lines: Buffer) => { readonly text: Buffer; readonly done: boolean } {
  const wanted = stream === undefined || stream === "All" ? undefined : stream.toLowerCase();
  let linesLeft = tailLines !== undefined && !follow ? tailLines : Number.POSITIVE_INFINITY;
  let bytesLeft = limitBytes ?? Number.POSITIVE_INFINITY;
  let atLineStart = true;
  return (lines) => {
    const out: Buffer[] = [];
    for (let at = 0; at < lines.length && linesLeft > 0 && bytesLeft > 0; ) {
      const end = lines.indexOf(LINE_FEED, at);
      const bytes = lines.subarray(at, end < 0 ? lines.length : end + 1);
      at += bytes.length;
      const line = parseLogLine(bytes);
      if (!line) continue;
      linesLeft--;
      const isStart = atLineStart;
      atLineStart = line.content.length === 0 || line.content[line.content.length - 1] === LINE_FEED;
      if ((sinceMs !== undefined && logTimeMs(line.time) < sinceMs) || (wanted !== undefined && line.stream !== wanted)) continue;
      const shown = timestamps && isStart ? Buffer.concat([Buffer.from(`${fixedLogTime(line.time)} `), line.content]) : line.content;
      out.push(shown.length > bytesLeft ? shown.subarray(0, bytesLeft) : shown);
      bytesLeft -= Math.min(shown.length, bytesLeft);
    }
    return { text: out.length === 1 ? out[0]! : Buffer.concat(out), done: linesLeft <= 0 || bytesLeft <= 0 };
  };
}

/** Where the last so many lines begin. One that is not written to its end (after a power cut it stays so) is none of them. */
async function tailStart(file: FileHandle, lines: number | undefined): Promise<number> {
  if (lines === undefined) return 0;
  const { size } = await file.stat();
  const chunk = Buffer.allocUnsafe(READ_BYTES);
  let found = 0;
  for (let end = size; end > 0; ) {
    const start = Math.max(0, end - READ_BYTES);
    const { bytesRead } = await file.read(chunk, 0, end - start, start);
    for (let i = bytesRead - 1; i >= 0; i--) {
      if (chunk[i] === LINE_FEED && found++ === lines) return start + i + 1; // the end of the line before them
    }
    end = start;
  }
  return 0;
}

async function isReplaced(path: string, file: FileHandle): Promise<boolean> {
  try {
    const [there, ours] = await Promise.all([stat(path), file.stat()]);
    return there.ino !== ours.ino;
  } catch (error) {
    if (isNotThere(error)) return false; // renamed, and not reopened yet
    throw error;
  }
}

interface Changes {
  /** Resolves at the next change since the last call, or after a while. */
  next(signal: AbortSignal): Promise<void>;
  close(): void;
}

function changesIn(directory: string, clock: Clock): Changes {
  let changed = false;
  let wake: AbortController | undefined;
  let watcher: FSWatcher | undefined;
  try {
    watcher = watch(directory, () => {
      changed = true;
      wake?.abort();
    });
    watcher.on("error", () => undefined); // it is looked at every second anyway
  } catch {
    watcher = undefined; // no more watches to be had: it is looked at every second
  }
  return {
    async next(signal) {
      if (!changed) {
        wake = new AbortController();
        await clock.sleep(CHECK_MS, AbortSignal.any([signal, wake.signal]));
      }
      changed = false;
    },
    close: () => watcher?.close(),
  };
}
