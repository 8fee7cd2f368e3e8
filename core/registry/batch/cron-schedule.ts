/**
 * Schedules of CronJobs: what is wrong with one, in the words of the parser upstream uses.
 *
 *   ┌ minute  ┌ hour  ┌ day of the month  ┌ month or name  ┌ day of the week or name, from Sunday
 *   0-59      0-23    1-31                1-12             0-6            each:  *  ?  5  1-5  1-9/2  a,b
 *   or @yearly @annually @monthly @weekly @daily @midnight @hourly, @every 1h30m
 *
 * Source: github.com/robfig/cron v3 parser.go (ParseStandard)
 */
import { parseDurationNs } from "../../api/meta/duration.ts";
import { parseGoInteger } from "../../api/meta/go-integer.ts";
import { isTimeZone } from "./time-zone.ts";

interface Bounds { readonly min: number; readonly max: number; readonly names?: readonly string[] }

const FIELDS: readonly Bounds[] = [
  { min: 0, max: 59 },
  { min: 0, max: 23 },
  { min: 1, max: 31 },
  { min: 1, max: 12, names: ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"] },
  { min: 0, max: 6, names: ["sun", "mon", "tue", "wed", "thu", "fri", "sat"] },
];
const DESCRIPTORS = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];
const EVERY = "@every ";

/** Undefined: nothing is wrong. */
export function scheduleError(schedule: string): string | undefined {
  try {
    checkSchedule(schedule);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

function checkSchedule(schedule: string): void {
  if (schedule === "") throw new Error("empty spec string");
  const spec = withoutZone(schedule);
  if (spec.startsWith("@")) { checkDescriptor(spec); return; }
  const fields = spec.split(/\s+/).filter((field) => field !== "");
  if (fields.length !== FIELDS.length) throw new Error(`expected exactly ${FIELDS.length} fields, found ${fields.length}: [${fields.join(" ")}]`);
  for (const [i, field] of fields.entries()) for (const range of field.split(",")) if (range !== "") checkRange(range, FIELDS[i]!);
}

function withoutZone(schedule: string): string {
  if (!schedule.startsWith("TZ=") && !schedule.startsWith("CRON_TZ=")) return schedule;
  const [from, to] = [schedule.indexOf("=") + 1, schedule.indexOf(" ")];
  if (to < from) throw new Error(`invalid schedule format: runtime error: slice bounds out of range [${to < 0 ? `:${to}` : `${from}:${to}`}]`);
  const zone = schedule.slice(from, to);
  if (!isTimeZone(zone)) throw new Error(`provided bad location ${zone}: unknown time zone ${zone}`);
  return schedule.slice(to).trim();
}

function checkDescriptor(text: string): void {
  if (DESCRIPTORS.includes(text)) return;
  if (!text.startsWith(EVERY)) throw new Error(`unrecognized descriptor: ${text}`);
  try {
    parseDurationNs(text.slice(EVERY.length));
  } catch (error) {
    throw new Error(`failed to parse duration ${text}: ${(error as Error).message}`, { cause: error });
  }
}

function checkRange(text: string, { min, max, names }: Bounds): void {
  const [range = "", step, ...moreSteps] = text.split("/");
  const [low = "", high, ...moreLimits] = range.split("-");
  const isAny = low === "*" || low === "?";
  const start = isAny ? min : parseValue(low, min, names);
  if (!isAny && moreLimits.length > 0) throw new Error(`too many hyphens: ${text}`);
  let end = isAny ? max : high === undefined ? start : parseValue(high, min, names);
  if (moreSteps.length > 0) throw new Error(`too many slashes: ${text}`);
  const every = step === undefined ? 1 : parseNumber(step);
  if (step !== undefined && high === undefined) end = max;
  if (start < min) throw new Error(`beginning of range (${start}) below minimum (${min}): ${text}`);
  if (end > max) throw new Error(`end of range (${end}) above maximum (${max}): ${text}`);
  if (start > end) throw new Error(`beginning of range (${start}) beyond end of range (${end}): ${text}`);
  if (every === 0) throw new Error(`step of range should be a positive number: ${text}`);
}

function parseValue(text: string, min: number, names: readonly string[] | undefined): number {
  const named = names?.indexOf(text.toLowerCase()) ?? -1;
  return named < 0 ? parseNumber(text) : named + min;
}

function parseNumber(text: string): number {
  const value = readNumber(text);
  if (value < 0) throw new Error(`negative number (${value}) not allowed: ${text}`);
  return value;
}

function readNumber(text: string): number {
  try {
    return Number(parseGoInteger(text, "Atoi"));
  } catch (error) {
    throw new Error(`failed to parse int from ${text}: ${(error as Error).message}`, { cause: error });
  }
}
