/**
 * Cron schedules: when a CronJob is due next.
 *
 *   minute hour day-of-month month day-of-week     each * ? n a-b a-b/n a,b or a name; both days given: either will do
 *   @yearly @annually @monthly @weekly @daily @midnight @hourly, @every 1h30m
 *   TZ=Europe/Berlin before any of them            not supported by Kubernetes, but there are clusters that use it
 *
 * Source: github.com/robfig/cron v3 parser.go, spec.go
 */
import { parseDurationNs } from "../../api/meta/duration.ts";
import { parseGoInteger } from "../../api/meta/go-integer.ts";
import { instantOf, wallClock, type Zone, zoneNamed } from "./zone.ts";

export interface Schedule {
  /** The first time after `ms`; undefined: not within five years. */
  next(ms: number): number | undefined;
}

interface Field { readonly values: ReadonlySet<number>; readonly any: boolean }
interface Bounds { readonly min: number; readonly max: number; readonly names?: readonly string[] }

const MINUTE: Bounds = { min: 0, max: 59 };
const HOUR: Bounds = { min: 0, max: 23 };
const DAY: Bounds = { min: 1, max: 31 };
const MONTH: Bounds = { min: 1, max: 12, names: ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"] };
const WEEKDAY: Bounds = { min: 0, max: 6, names: ["sun", "mon", "tue", "wed", "thu", "fri", "sat"] };

const DESCRIPTORS: ReadonlyMap<string, string> = new Map([
  ["@yearly", "0 0 1 1 *"], ["@annually", "0 0 1 1 *"], ["@monthly", "0 0 1 * *"], ["@weekly", "0 0 * * 0"], ["@daily", "0 0 * * *"], ["@midnight", "0 0 * * *"], ["@hourly", "0 * * * *"],
]);
const EVERY = "@every ";
const MINUTE_MS = 60_000;
const YEARS_MAX = 5;

/** `zone` holds where the schedule names none. Throws for what is no schedule. */
export function parseSchedule(text: string, zone: Zone): Schedule {
  const named = /^(?:CRON_)?TZ=(\S+)\s+(?!\s)(.*)$/.exec(text);
  const where = named === null ? zone : zoneNamed(named[1] ?? "");
  const spec = (named?.[2] ?? text).trim();
  if (spec.startsWith(EVERY)) return every(Number(parseDurationNs(spec.slice(EVERY.length)) / 1_000_000n));
  const fields = (DESCRIPTORS.get(spec) ?? spec).split(/\s+/);
  if (spec.startsWith("@") && !DESCRIPTORS.has(spec)) throw new Error(`unrecognized descriptor: ${spec}`);
  if (fields.length !== 5) throw new Error(`expected exactly 5 fields, found ${fields.length}: [${fields.join(" ")}]`);
  const [minute, hour, day, month, weekday] = [MINUTE, HOUR, DAY, MONTH, WEEKDAY].map((bounds, i) => parseField(fields[i] ?? "", bounds)) as [Field, Field, Field, Field, Field];
  return { next: (ms) => nextMatch(ms, where, { minute, hour, day, month, weekday }) };
}

/** In whole seconds, at least one. */
function every(delayMs: number): Schedule {
  const stepMs = Math.max(1000, Math.floor(delayMs / 1000) * 1000);
  return { next: (ms) => Math.floor(ms / 1000) * 1000 + stepMs };
}

/** What is empty between two commas is nothing. */
function parseField(text: string, bounds: Bounds): Field {
  const ranges = text.split(",").filter((range) => range !== "").map((range) => parseRange(range, bounds));
  return { values: new Set(ranges.flatMap(({ values }) => values)), any: ranges.some(({ any }) => any) };
}

function parseRange(text: string, bounds: Bounds): { readonly values: readonly number[]; readonly any: boolean } {
  const [range = "", step, ...moreSteps] = text.split("/");
  const [low = "", high, ...moreLimits] = range.split("-");
  const isAny = low === "*" || low === "?"; // whatever it goes to
  if (moreSteps.length > 0 || (!isAny && moreLimits.length > 0)) throw new Error(`failed to parse range ${text}`);
  const start = isAny ? bounds.min : valueOf(low, bounds);
  const end = isAny || (high === undefined && step !== undefined) ? bounds.max : high === undefined ? start : valueOf(high, bounds);
  const by = step === undefined ? 1 : numberOf(step);
  if (start < bounds.min || end > bounds.max || start > end || by === 0) throw new Error(`range out of bounds: ${text}`);
  const values: number[] = [];
  for (let value = start; value <= end; value += by) values.push(value);
  return { values, any: isAny && by === 1 };
}

function valueOf(text: string, { min, names }: Bounds): number {
  const index = names?.indexOf(text.toLowerCase()) ?? -1;
  return index >= 0 ? index + min : numberOf(text);
}

function numberOf(text: string): number {
  const value = Number(parseGoInteger(text, "Atoi"));
  if (value < 0) throw new Error(`negative number (${value}) not allowed: ${text}`);
  return value;
}

interface Fields { readonly minute: Field; readonly hour: Field; readonly day: Field; readonly month: Field; readonly weekday: Field }

/** Goes forward in steps as large as the first field that does not fit allows. */
function nextMatch(fromMs: number, zone: Zone, { minute, hour, day, month, weekday }: Fields): number | undefined {
  if (minute.values.size === 0 || hour.values.size === 0) return undefined; // "," is a field: not to be looked for minute by minute
  let ms = (Math.floor(fromMs / MINUTE_MS) + 1) * MINUTE_MS;
  const lastYear = wallClock(ms, zone).getUTCFullYear() + YEARS_MAX;
  const dayFits = (wall: Date): boolean => {
    const [byDate, byWeekday] = [day.values.has(wall.getUTCDate()), weekday.values.has(wall.getUTCDay())];
    return day.any || weekday.any ? byDate && byWeekday : byDate || byWeekday;
  };
  for (;;) {
    const wall = wallClock(ms, zone);
    const [year, m, d] = [wall.getUTCFullYear(), wall.getUTCMonth(), wall.getUTCDate()];
    if (year > lastYear) return undefined;
    if (!month.values.has(m + 1)) ms = forward(ms, instantOf(Date.UTC(year, m + 1, 1), zone));
    else if (!dayFits(wall)) ms = forward(ms, instantOf(Date.UTC(year, m, d + 1), zone));
    else if (!hour.values.has(wall.getUTCHours())) ms += (60 - wall.getUTCMinutes()) * MINUTE_MS;
    else if (!minute.values.has(wall.getUTCMinutes())) ms += MINUTE_MS;
    else return ms;
  }
}

/** A clock that is put back must not take us back. */
function forward(ms: number, next: number): number { return next > ms ? next : ms + MINUTE_MS; }
