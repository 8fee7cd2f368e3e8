/**
 * Structured log: a constant message, and the facts as fields. Written by pino, one JSON object a line, with the keys that upstream's components write with --logging-format=json
 * (ts, v of what is informational, msg, err), and for people the level, the time as they read it, and the whole of an error.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/component-base/logs/json/json.go
 */
import pino from "pino";
import { type Clock, systemClock } from "../lifecycle/clock.ts";
import { Repeats } from "./repeats.ts";

export interface Log {
  debug(message: string, fields?: Record<string, unknown>): void;
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  error(message: string, fields?: Record<string, unknown>): void;
  /** The same log, with `fields` on every line. */
  with(fields: Record<string, unknown>): Log;
}

export type LogLevel = "debug" | "info" | "warn" | "error";

/** How much is logged, as klog has it: 4 and more tells all there is. */
export interface Verbosity { set(verbosity: number): void }

/** `verbosity` is of the log and of all that are made of it. */
export interface VerboseLog extends Log { readonly verbosity: Verbosity }

const RANKS: Readonly<Record<LogLevel, number>> = { debug: 0, info: 1, warn: 2, error: 3 };

interface LogOptions { readonly level: LogLevel; readonly write: (line: string) => void; readonly clock?: Pick<Clock, "uptimeMs" | "after"> }

/** Warnings and errors that are said again and again are kept back (repeats.ts) but for the debug level. */
export function pinoLog({ level, write, clock = systemClock }: LogOptions): VerboseLog {
  const given = RANKS[level];
  const least = { rank: given };
  const options: pino.LoggerOptions = {
    level: "debug", // which lines are shown is decided here: pino's own children would keep the level they were made with
    base: null,
    timestamp() {
      const now = new Date();
      return `,"time":"${now.toISOString()}","ts":${now.getTime()}`;
    },
    formatters: { level: (label) => ({ level: label, ...(label in VERBOSITY ? { v: VERBOSITY[label] } : {}) }) },
    serializers: { error: errorFields },
  };
  return { ...wrap(pino(options, { write }), { least, repeats: new Repeats(clock) }, {}), verbosity: { set(verbosity) { least.rank = verbosity >= DEBUG_VERBOSITY ? RANKS.debug : Math.max(given, RANKS.info); } } };
}

/** Of what is no warning. Source: client-go's and the controllers' own use of klog's levels */
const DEBUG_VERBOSITY = 4;
const VERBOSITY: Readonly<Record<string, number>> = { info: 0, debug: DEBUG_VERBOSITY };

/** Longer chains of causes than this are loops. */
const CAUSES_MAX = 16;

/** An error that tells its own fields: one that is somebody's answer is no place in our code, and its line may come again for hours. */
export interface TellsFields { logFields(): Record<string, unknown> }

/** An error as fields. Unlike pino's own serializers it writes nothing into the error, nor into what that holds: those may be frozen. */
function errorFields(error: unknown, depth = 0): unknown {
  if (!(error instanceof Error) || depth > CAUSES_MAX) return error instanceof Error ? error.message : error;
  const { message, stack, cause, ...own } = error as Error & Record<string, unknown>;
  const told = "logFields" in error ? (error as Error & TellsFields).logFields() : { message, stack, ...own };
  const errors = error instanceof AggregateError ? { aggregateErrors: error.errors.map((one) => errorFields(one, depth + 1)) } : {};
  return { type: error.constructor.name, ...told, ...errors, ...(cause === undefined ? {} : { cause: errorFields(cause, depth + 1) }) };
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

/** What is longer is not remembered. */
const SAME_LENGTH_MAX = 8 * 1024;

/** The same for what is said a second time: no stacks, which tell nothing more. undefined: who knows, as of what holds itself. */
function same(level: LogLevel, message: string, fields: Record<string, unknown>): string | undefined {
  try {
    const text = JSON.stringify([level, message, fields], (_, value: unknown) => (value instanceof Error ? whatItSays(value) : typeof value === "bigint" ? `${value}` : value));
    return text.length > SAME_LENGTH_MAX ? undefined : text;
  } catch {
    return undefined;
  }
}

function whatItSays(error: Error): unknown {
  const { message, cause } = error;
  return { message, cause, errors: error instanceof AggregateError ? error.errors : undefined };
}

interface Shown {
  /** Which lines are. */
  readonly least: { readonly rank: number };
  readonly repeats: Repeats;
}

/** `bound`: on every line. */
function wrap(logger: pino.Logger, shown: Shown, bound: Record<string, unknown>): Log {
  const at = (level: LogLevel): Log["info"] => {
    const rank = RANKS[level];
    return (message, fields) => { if (rank >= shown.least.rank) logger[level](facts(fields), message); };
  };
  const debug = at("debug");
  const seldom = (level: "warn" | "error"): Log["info"] => {
    const say = at(level);
    return (message, fields = {}) => {
      const what = same(level, message, { ...bound, ...fields });
      if (what === undefined) say(message, fields);
      else if (!shown.repeats.tell(what, (repeated, agoMs) => say(message, repeated === 0 ? fields : { ...fields, repeated, secondsAgo: Math.round(agoMs / 1000) }))) debug(message, fields);
    };
  };
  return { debug, info: at("info"), warn: seldom("warn"), error: seldom("error"), with: (fields) => wrap(logger.child(fields), shown, { ...bound, ...fields }) };
}

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {}, with: () => silentLog };
