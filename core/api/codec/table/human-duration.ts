/**
 * Ages as people read them: two or three significant figures, `5s`, `3m20s`, `47h`, `5d3h`, `2y14d`.
 *
 * Source: kubernetes v1.36 apimachinery/pkg/util/duration/duration.go
 */
import { parseTime } from "../../meta/time.ts";

const SECOND_MS = 1000;
/** Clocks of two machines may differ by this much before an age looks wrong. */
const SKEW_SECONDS = 1;
/** 292 years: no more fits in the nanoseconds that Go has for a duration. */
const SECONDS_MAX = 9_223_372_036;

export function humanDuration(ms: number): string {
  const seconds = Math.min(Math.trunc(ms / SECOND_MS), SECONDS_MAX);
  if (seconds < -SKEW_SECONDS) return "<invalid>";
  if (seconds < 0) return "0s";
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.trunc(seconds / 60);
  if (minutes < 10) return `${minutes}m${nonZero(seconds % 60, "s")}`;
  if (minutes < 180) return `${minutes}m`;
  const hours = Math.trunc(minutes / 60);
  if (hours < 8) return `${hours}h${nonZero(minutes % 60, "m")}`;
  if (hours < 48) return `${hours}h`;
  const days = Math.trunc(hours / 24);
  if (hours < 24 * 8) return `${days}d${nonZero(hours % 24, "h")}`;
  if (days < 365 * 2) return `${days}d`;
  const years = Math.trunc(days / 365);
  return days < 365 * 8 ? `${years}y${nonZero(days % 365, "d")}` : `${years}y`;
}

function nonZero(value: number, unit: string): string { return value === 0 ? "" : `${value}${unit}`; }

/** How long ago a timestamp was; `<unknown>` for one that is not there. */
export function since(timestamp: string | undefined, nowMs: number): string {
  const ms = timestamp ? parseTime(timestamp) : undefined;
  return ms === undefined ? "<unknown>" : humanDuration(nowMs - ms);
}
