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
const ZERO = "0001-01-01T00:00:00";

/** undefined for what is no RFC 3339 time, and for the zero time, which is written as null. */
export function canonicalTime(text: string): string | undefined {
  const ms = parseTime(text);
  if (ms === undefined) return undefined;
  return nonZero(CANONICAL.test(text) ? text : timestamp(ms));
}

/** Exactly six digits of fraction, and a time at all. */
export function isMicroTime(text: string): boolean { return MICRO.test(text) && parseTime(text) !== undefined; }

/** Exactly six digits of fraction, as Go's layout asks for. */
export function canonicalMicroTime(text: string): string | undefined {
  if (CANONICAL_MICRO.test(text)) return parseTime(`${text.slice(0, SECONDS_LENGTH)}Z`) === undefined ? undefined : nonZero(text);
  const fraction = MICRO.exec(text)?.[1];
  const ms = fraction === undefined ? undefined : parseTime(text);
  if (ms === undefined) return undefined;
  return nonZero(`${timestamp(ms).slice(0, -1)}.${fraction}Z`);
}

function nonZero(time: string): string | undefined { return time.startsWith(ZERO) ? undefined : time; }
