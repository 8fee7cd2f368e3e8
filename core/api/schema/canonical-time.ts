/**
 * Times as they are stored and sent: UTC, `2006-01-02T15:04:05Z`, or with six digits of fraction for MicroTime.
 *
 * Nearly every time that arrives is spelled that way already, so those are only checked.
 */
import { parseTime } from "../meta/time.ts";
import { timestamp } from "../../lifecycle/clock.ts";

const CANONICAL = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;
const CANONICAL_MICRO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;
const MICRO = /^\d{4}-\d\d-\d\dT\d\d?:\d\d:\d\d[.,](\d{6})(?:Z|[+-]\d\d:\d\d)$/;
const SECONDS_LENGTH = "2006-01-02T15:04:05".length;
const ZERO = "0001-01-01T00:00:00Z", ZERO_MICRO = "0001-01-01T00:00:00.000000Z";

/** 0000-01-01T00:00:00Z to 9999-12-31T23:59:59Z: what can be read again. An offset leads past it; upstream writes what its own clients do not read then. */
const MS_MIN = -62_167_219_200_000, MS_MAX = 253_402_300_799_000;

/** The nearest time of a year of four digits. */
export function writableTime(ms: number): string { return timestamp(Math.min(Math.max(ms, MS_MIN), MS_MAX)); }

/** undefined for what is no RFC 3339 time, null for the zero time, wherever it is told. */
export function canonicalTime(text: string): string | null | undefined {
  const ms = parseTime(text);
  if (ms === undefined) return undefined;
  const time = CANONICAL.test(text) ? text : writableTime(ms);
  return time === ZERO ? null : time;
}

/** The same of six digits of fraction, as Go's layout asks for. */
export function canonicalMicroTime(text: string): string | null | undefined {
  if (CANONICAL_MICRO.test(text)) return parseTime(`${text.slice(0, SECONDS_LENGTH)}Z`) === undefined ? undefined : text === ZERO_MICRO ? null : text;
  const fraction = MICRO.exec(text)?.[1];
  const ms = fraction === undefined ? undefined : parseTime(text);
  if (ms === undefined) return undefined;
  const time = `${writableTime(ms).slice(0, -1)}.${fraction}Z`;
  return time === ZERO_MICRO ? null : time;
}
