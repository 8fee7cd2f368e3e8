/**
 * Points in time and spans of it.
 *
 *   parseTimestamp("2020-01-01T00:00:00+01:00")      undefined for what is none
 *   inZone(timestamp, "America/New_York").hours      "-05:00" is a zone too; throws an Error for one that is none
 *
 * Source: cel-go common/types/{timestamp,duration,overflow}.go; Go's time package
 */
import { Duration, EvalError, Timestamp } from "./value.ts";

interface ZonedTime { readonly timeZoneId: string; readonly offsetNanoseconds: number }
/** What is used of ECMAScript's own, which TypeScript does not know yet. */
declare const Temporal: {
  readonly Instant: { fromEpochMilliseconds(ms: number): { toZonedDateTimeISO(zone: string): ZonedTime } };
  readonly Now: { timeZoneId(): string };
};

const SECOND = 1_000_000_000n;
const [SECONDS_MIN, SECONDS_MAX] = [-62_135_596_800n, 253_402_300_799n];
const [INT_MIN, INT_MAX] = [-(2n ** 63n), 2n ** 63n - 1n];
/** As Go reads it: an hour may have one digit. */
const RFC3339 = /^(\d{4})-(\d\d)-(\d\d)T(\d\d?):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))$/;

export const TIMESTAMP_OVERFLOW = "timestamp overflow";

/** Undefined for what is not written as RFC 3339 asks. */
export function parseTimestamp(text: string): Timestamp | undefined {
  const match = RFC3339.exec(text);
  if (!match) return undefined;
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map(Number) as [number, number, number, number, number, number];
  const [zoneHours, zoneMinutes] = [Number(match[9] ?? 0), Number(match[10] ?? 0)];
  if (month < 1 || month > 12 || day < 1 || day > daysIn(year, month) || hour > 23 || minute > 59 || second > 59 || zoneHours > 24 || zoneMinutes > 60) return undefined;
  const offset = (match[8] === "-" ? -1 : 1) * (zoneHours * 60 + zoneMinutes);
  const midnight = new Date(0);
  midnight.setUTCFullYear(year, month - 1, day);
  const seconds = BigInt(midnight.getTime() / 1000) + BigInt(hour * 3600 + minute * 60 + second - offset * 60);
  return new Timestamp(seconds * SECOND + BigInt((match[7] ?? "").slice(0, 9).padEnd(9, "0")), offset);
}

function daysIn(year: number, month: number): number { return new Date(Date.UTC(2000 + (year % 400), month, 0)).getUTCDate(); }

/** A timestamp in the years 1 to 9999. */
export function timestampOf(nanos: bigint, offsetMinutes = 0): Timestamp | EvalError {
  const seconds = secondsOf(nanos);
  return seconds < SECONDS_MIN || seconds > SECONDS_MAX ? new EvalError(TIMESTAMP_OVERFLOW) : new Timestamp(nanos, offsetMinutes);
}

export function durationOf(nanos: bigint): Duration | EvalError { return nanos < INT_MIN || nanos > INT_MAX ? new EvalError("integer overflow") : new Duration(nanos); }

/** Whole seconds since 1970, rounded down. */
export function secondsOf(nanos: bigint): bigint { return nanos / SECOND - (nanos % SECOND < 0n ? 1n : 0n); }

/** RFC 3339 with as many decimals as it takes, in the zone it was written in. */
export function formatTimestamp({ nanos, offsetMinutes }: Timestamp): string {
  const { year, month, date, hours, minutes, seconds } = fields(nanos, offsetMinutes * 60);
  const two = (value: number): string => String(value).padStart(2, "0");
  const fraction = String(nanos - secondsOf(nanos) * SECOND).padStart(9, "0").replace(/0+$/, "");
  const away = Math.abs(offsetMinutes);
  const zone = offsetMinutes === 0 ? "Z" : `${offsetMinutes < 0 ? "-" : "+"}${two(Math.floor(away / 60))}:${two(away % 60)}`;
  return `${String(year).padStart(4, "0")}-${two(month + 1)}-${two(date)}T${two(hours)}:${two(minutes)}:${two(seconds)}${fraction ? `.${fraction}` : ""}${zone}`;
}

export interface TimeFields {
  readonly year: number;
  /** From 0, as the day of the week and of the year are. */
  readonly month: number;
  /** From 1. */
  readonly date: number;
  readonly dayOfWeek: number;
  readonly dayOfYear: number;
  readonly hours: number;
  readonly minutes: number;
  readonly seconds: number;
  readonly milliseconds: number;
}

export function inZone({ nanos }: Timestamp, zone: string): TimeFields { return fields(nanos, zoneOffset(zone, nanos)); }

function fields(nanos: bigint, offsetSeconds: number): TimeFields {
  const seconds = secondsOf(nanos);
  const local = new Date((Number(seconds) + offsetSeconds) * 1000);
  const newYear = new Date(local);
  newYear.setUTCMonth(0, 1);
  newYear.setUTCHours(0, 0, 0, 0);
  return {
    year: local.getUTCFullYear(), month: local.getUTCMonth(), date: local.getUTCDate(), dayOfWeek: local.getUTCDay(),
    dayOfYear: Math.floor((local.getTime() - newYear.getTime()) / 86_400_000), hours: local.getUTCHours(), minutes: local.getUTCMinutes(), seconds: local.getUTCSeconds(),
    milliseconds: Number((nanos - seconds * SECOND) / 1_000_000n),
  };
}

/** Seconds east of Greenwich. "Local" is the zone of this machine. */
function zoneOffset(zone: string, nanos: bigint): number {
  if (zone === "" || zone === "UTC") return 0;
  const colon = zone.indexOf(":");
  if (colon >= 0) {
    const [hours, minutes] = [atoi(zone.slice(0, colon)), atoi(zone.slice(colon + 1))];
    return (zone.startsWith("-") ? hours * 60 - minutes : hours * 60 + minutes) * 60;
  }
  if (/^[/\\]|\.\./.test(zone)) throw new Error("time: invalid location name");
  return namedOffset(zone === "Local" ? Temporal.Now.timeZoneId() : zone, Number(secondsOf(nanos)));
}

/** A formatter of dates takes a hundred times as long to make, and a loop may ask of another zone each time. */
function namedOffset(zone: string, seconds: number): number {
  let at: ZonedTime;
  try {
    at = Temporal.Instant.fromEpochMilliseconds(seconds * 1000).toZonedDateTimeISO(zone);
  } catch (error) {
    throw new Error(`unknown time zone ${zone}`, { cause: error });
  }
  if (at.timeZoneId !== zone) throw new Error(`unknown time zone ${zone}`); // small and large letters count
  return at.offsetNanoseconds / 1e9;
}

function atoi(text: string): number {
  if (!/^[+-]?\d+$/.test(text)) throw new Error(`strconv.Atoi: parsing ${JSON.stringify(text)}: invalid syntax`);
  return Number(text);
}
