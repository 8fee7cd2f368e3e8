/**
 * Timestamps as the API reads them: what Go's time.Parse(time.RFC3339) accepts, an offset and any number of fraction digits among it. They are written by
 * core/lifecycle/clock.ts.
 *
 * Source: kubernetes v1.36 apimachinery/pkg/apis/meta/v1/{time,micro_time}.go
 */
const RFC3339 = /^(\d{4})-(\d\d)-(\d\d)T(\d\d?):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))$/;

/** Milliseconds since 1970, or undefined if `text` is no RFC 3339 time. */
export function parseTime(text: string): number | undefined {
  return text.length === PLAIN_LENGTH && PLAIN.test(text) ? parsePlain(text) : parseAny(text);
}

const PLAIN = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;
const PLAIN_LENGTH = "2006-01-02T15:04:05Z".length;
const TIME_AT = "2006-01-02T".length;

/** As nearly all are spelled. */
function parsePlain(text: string): number | undefined {
  const two = (at: number): number => text.charCodeAt(at) * 10 + text.charCodeAt(at + 1) - 528; // the digits' codes begin at 48
  const year = two(0) * 100 + two(2), month = two(5), day = two(8), hour = two(11), minute = two(14), second = two(17);
  if (!isDate(year, month, day) || !isTimeOfDay(hour, minute, second)) return undefined;
  return year < 100 ? Date.parse(text) : Date.UTC(year, month - 1, day, hour, minute, second); // UTC takes 99 for 1999
}

function isDate(year: number, month: number, day: number): boolean { return month >= 1 && month <= 12 && day >= 1 && day <= daysIn(year, month); }
function isTimeOfDay(hour: number, minute: number, second: number): boolean { return hour <= 23 && minute <= 59 && second <= 59; }

function parseAny(text: string): number | undefined {
  const parts = RFC3339.exec(text);
  if (!parts) return undefined;
  const [year, month, day, hour, minute, second] = parts.slice(1, 7).map(Number) as [number, number, number, number, number, number];
  const [, , , , , , , fraction = "", sign, zoneHours, zoneMinutes] = parts;
  if (!isDate(year, month, day) || !isTimeOfDay(hour, minute, second) || Number(zoneHours ?? 0) > 24 || Number(zoneMinutes ?? 0) > 60) return undefined; // as some people write them
  const ms = parsePlain(`${text.slice(0, TIME_AT)}${String(hour).padStart(2, "0")}:${parts[5]}:${parts[6]}Z`)! + Number(fraction.slice(0, 3).padEnd(3, "0"));
  const offsetMs = (Number(zoneHours ?? 0) * 60 + Number(zoneMinutes ?? 0)) * 60_000;
  return sign === "-" ? ms + offsetMs : ms - offsetMs;
}

function daysIn(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}
