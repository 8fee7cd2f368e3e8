/**
 * Timestamps as the API writes them: RFC 3339 in UTC, `2026-01-02T03:04:05Z` for Time and six more digits for MicroTime.
 *
 * Reading accepts what Go's time.Parse(time.RFC3339) does: an offset, and any number of fraction digits.
 *
 * Source: kubernetes v1.36 apimachinery/pkg/apis/meta/v1/{time,micro_time}.go
 */
export function formatTime(ms: number): string { return `${new Date(ms).toISOString().slice(0, 19)}Z`; }

/** Microseconds are only as true as the milliseconds given. */
export function formatMicroTime(ms: number): string { return `${new Date(Math.floor(ms)).toISOString().slice(0, 23)}${micros(ms)}Z`; }

function micros(ms: number): string { return String(Math.floor((ms - Math.floor(ms)) * 1000)).padStart(3, "0"); }

const RFC3339 = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,]\d+)?(?:Z|[+-]\d\d:\d\d)$/;

/** Milliseconds since 1970, or undefined if `text` is no RFC 3339 time. */
export function parseTime(text: string): number | undefined {
  const parts = RFC3339.exec(text);
  if (!parts) return undefined;
  const [year, month, day, hour, minute, second] = parts.slice(1).map(Number) as [number, number, number, number, number, number];
  if (month < 1 || month > 12 || day < 1 || day > daysIn(year, month) || hour > 23 || minute > 59 || second > 59) return undefined;
  const ms = Date.parse(text.replace(",", "."));
  return Number.isNaN(ms) ? undefined : ms;
}

function daysIn(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}
