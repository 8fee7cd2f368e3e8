/**
 * The log of a command that runs for long: JSON lines on standard error, from --log-level up. The journal is told how grave each is, so that `journalctl -p warning` finds them.
 *
 * API: https://www.freedesktop.org/software/systemd/man/latest/sd-daemon.html (prefixes, which the journal takes off)
 */
import { fstatSync } from "node:fs";
import { type LogLevel, pinoLog, type VerboseLog } from "../core/observe/log.ts";
import { ConfigError } from "./config/config.ts";
import { lineFile } from "./line-file.ts";

const LOG_LEVELS: readonly string[] = ["debug", "info", "warn", "error"];

/** syslog's, by pino's first field. */
const PRIORITIES: readonly (readonly [start: string, priority: number])[] = [['{"level":"error"', 3], ['{"level":"warn"', 4], ['{"level":"debug"', 7]];
const INFORMATIONAL = 6;

export function stderrLog(level: string): VerboseLog {
  process.stderr.on("error", () => undefined); // a disk that is full, a reader that has gone: what is said then is lost, and nothing else
  if (isJournal(process.env, () => fstatSync(process.stderr.fd))) return leveledLog(level, (line) => void process.stderr.write(prioritized(line)));
  if (!isFile(process.stderr.fd)) return leveledLog(level, (line) => void process.stderr.write(line));
  const lines = lineFile(process.stderr.fd);
  process.on("exit", () => lines.flush());
  return leveledLog(level, (line) => lines.write(line));
}

/** Where a supervisor (OpenRC) or a shell has a file for it. */
function isFile(fd: number): boolean {
  try {
    return fstatSync(fd).isFile();
  } catch {
    return false; // closed
  }
}

/** systemd says which of its streams the journal reads: it may since be another's, as in `coracle server 2>file`. */
export function isJournal({ JOURNAL_STREAM: stream }: Readonly<Record<string, string | undefined>>, stderr: () => { readonly dev: number; readonly ino: number }): boolean {
  if (!stream) return false;
  const { dev, ino } = stderr();
  return stream === `${dev}:${ino}`;
}

export function prioritized(line: string): string { return `<${PRIORITIES.find(([start]) => line.startsWith(start))?.[1] ?? INFORMATIONAL}>${line}`; }

/** Throws ConfigError for a level that is none. */
export function leveledLog(level: string, write: (line: string) => void): VerboseLog {
  if (!LOG_LEVELS.includes(level)) throw new ConfigError(`--log-level must be one of ${LOG_LEVELS.join(", ")}, not ${JSON.stringify(level)}`);
  return pinoLog({ level: level as LogLevel, write });
}
