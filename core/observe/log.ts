/** Structured log: a constant message, and the facts as fields. Written by pino, one JSON object a line. */
import pino from "pino";

export interface Log {
  debug(message: string, fields?: Record<string, unknown>): void;
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  error(message: string, fields?: Record<string, unknown>): void;
  /** The same log, with `fields` on every line. */
  with(fields: Record<string, unknown>): Log;
}

export type LogLevel = "debug" | "info" | "warn" | "error";

export function pinoLog({ level, write }: { level: LogLevel; write: (line: string) => void }): Log {
  const options: pino.LoggerOptions = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    serializers: { error: errorFields },
  };
  return wrap(pino(options, { write }));
}

/** Longer chains of causes than this are loops. */
const CAUSES_MAX = 16;

/** An error as fields. Unlike pino's own serializers it writes nothing into the error, nor into what that holds: those may be frozen. */
function errorFields(error: unknown, depth = 0): unknown {
  if (!(error instanceof Error) || depth > CAUSES_MAX) return error instanceof Error ? error.message : error;
  const { message, stack, cause, ...own } = error as Error & Record<string, unknown>;
  const errors = error instanceof AggregateError ? { aggregateErrors: error.errors.map((one) => errorFields(one, depth + 1)) } : {};
  return { type: error.constructor.name, message, stack, ...errors, ...own, ...(cause === undefined ? {} : { cause: errorFields(cause, depth + 1) }) };
}

function wrap(logger: pino.Logger): Log {
  return {
    debug: (message, fields) => logger.debug(fields ?? {}, message),
    info: (message, fields) => logger.info(fields ?? {}, message),
    warn: (message, fields) => logger.warn(fields ?? {}, message),
    error: (message, fields) => logger.error(fields ?? {}, message),
    with: (fields) => wrap(logger.child(fields)),
  };
}

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {}, with: () => silentLog };
