/**
 * Structured log: a constant message, and the facts as fields. Written by pino, one JSON object a line, with the keys that upstream's components write with --logging-format=json
 * (ts, v of what is informational, msg, err), and for people the level, the time as they read it, and the whole of an error.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/component-base/logs/json/json.go
 */
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
    timestamp() {
      const now = new Date();
      return `,"time":"${now.toISOString()}","ts":${now.getTime()}`;
    },
    formatters: { level: (label) => ({ level: label, ...(label in VERBOSITY ? { v: VERBOSITY[label] } : {}) }) },
    serializers: { error: errorFields },
  };
  return wrap(pino(options, { write }));
}

/** Of what is no warning. Source: client-go's and the controllers' own use of klog's levels */
const VERBOSITY: Readonly<Record<string, number>> = { info: 0, debug: 4 };

/** Longer chains of causes than this are loops. */
const CAUSES_MAX = 16;

/** An error as fields. Unlike pino's own serializers it writes nothing into the error, nor into what that holds: those may be frozen. */
function errorFields(error: unknown, depth = 0): unknown {
  if (!(error instanceof Error) || depth > CAUSES_MAX) return error instanceof Error ? error.message : error;
  const { message, stack, cause, ...own } = error as Error & Record<string, unknown>;
  const errors = error instanceof AggregateError ? { aggregateErrors: error.errors.map((one) => errorFields(one, depth + 1)) } : {};
  return { type: error.constructor.name, message, stack, ...errors, ...own, ...(cause === undefined ? {} : { cause: errorFields(cause, depth + 1) }) };
}

/** In one line, as Go joins what went wrong to why. */
function errorText(error: unknown, depth = 0): string {
  if (!(error instanceof Error)) return String(error);
  const { message, cause } = error;
  return cause === undefined || depth > CAUSES_MAX ? message : `${message}: ${errorText(cause, depth + 1)}`;
}

function facts(fields: Record<string, unknown> = {}): Record<string, unknown> {
  return fields["error"] === undefined ? fields : { ...fields, err: errorText(fields["error"]) };
}

function wrap(logger: pino.Logger): Log {
  return {
    debug: (message, fields) => logger.debug(facts(fields), message),
    info: (message, fields) => logger.info(facts(fields), message),
    warn: (message, fields) => logger.warn(facts(fields), message),
    error: (message, fields) => logger.error(facts(fields), message),
    with: (fields) => wrap(logger.child(fields)),
  };
}

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {}, with: () => silentLog };
