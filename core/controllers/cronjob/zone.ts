/** Time zones: what a wall clock shows at an instant, and at which instant it shows something. Offsets come from the ICU data of the runtime. */

export interface Zone {
  readonly name: string;
  /** Milliseconds to add to UTC for the wall clock's time at `ms`. */
  offsetMs(ms: number): number;
}

export const UTC: Zone = { name: "UTC", offsetMs: () => 0 };

/** Throws RangeError for a name nobody knows. */
export function zoneNamed(name: string): Zone {
  if (name === "" || name === "UTC") return UTC;
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone: name, hourCycle: "h23", year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric", second: "numeric",
  });
  return {
    name,
    offsetMs(ms) {
      const wholeMs = Math.floor(ms / 1000) * 1000;
      const part = Object.fromEntries(format.formatToParts(wholeMs).map(({ type, value }) => [type, Number(value)]));
      return Date.UTC(part["year"] ?? 0, (part["month"] ?? 1) - 1, part["day"], part["hour"], part["minute"], part["second"]) - wholeMs;
    },
  };
}

/** The machine's own. */
export function localZone(): Zone { return zoneNamed(new Intl.DateTimeFormat().resolvedOptions().timeZone); }

/** The wall clock's time as if it were UTC: read it with getUTC…(). */
export function wallClock(ms: number, zone: Zone): Date { return new Date(ms + zone.offsetMs(ms)); }

/** The instant at which the wall clock shows this. In the hour that a summer time skips: the same time by the offset before it. */
export function instantOf(wallMs: number, zone: Zone): number {
  const guess = wallMs - zone.offsetMs(wallMs);
  const second = wallMs - zone.offsetMs(guess);
  return second + zone.offsetMs(second) === wallMs ? second : guess;
}

/** RFC 3339 with the zone's offset. */
export function formatInZone(ms: number, zone: Zone): string {
  const offset = Math.round(zone.offsetMs(ms) / 60_000);
  const text = wallClock(ms, zone).toISOString().slice(0, 19);
  if (offset === 0) return `${text}Z`;
  const digits = (n: number): string => String(n).padStart(2, "0");
  return `${text}${offset < 0 ? "-" : "+"}${digits(Math.floor(Math.abs(offset) / 60))}:${digits(Math.abs(offset) % 60)}`;
}
