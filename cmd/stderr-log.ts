/** The log of a command that runs for long: JSON lines on standard error, from --log-level up. */
import { type Log, type LogLevel, pinoLog } from "../core/observe/log.ts";
import { ConfigError } from "./config/config.ts";

const LOG_LEVELS: readonly string[] = ["debug", "info", "warn", "error"];

export function stderrLog(level: string): Log { return leveledLog(level, (line) => void process.stderr.write(line)); }

/** Throws ConfigError for a level that is none. */
export function leveledLog(level: string, write: (line: string) => void): Log {
  if (!LOG_LEVELS.includes(level)) throw new ConfigError(`--log-level must be one of ${LOG_LEVELS.join(", ")}, not ${JSON.stringify(level)}`);
  return pinoLog({ level: level as LogLevel, write });
}
