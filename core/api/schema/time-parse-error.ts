/** The error Go's time.Parse has for a text that is not the time that is asked for. */

interface Element { readonly layout: string; readonly pattern: RegExp; readonly max?: number; readonly min?: number; readonly what?: string }

const DIGITS_2 = /^\d\d/;
const DATE: readonly Element[] = [
  { layout: "2006", pattern: /^\d{4}/ }, { layout: "-", pattern: /^-/ },
  { layout: "01", pattern: DIGITS_2, min: 1, max: 12, what: "month" }, { layout: "-", pattern: /^-/ },
  { layout: "02", pattern: DIGITS_2 }, { layout: "T", pattern: /^T/ },
  { layout: "15", pattern: /^\d\d?/, max: 23, what: "hour" }, { layout: ":", pattern: /^:/ },
  { layout: "04", pattern: DIGITS_2, max: 59, what: "minute" }, { layout: ":", pattern: /^:/ },
  { layout: "05", pattern: DIGITS_2, max: 59, what: "second" },
];
const ZONE: Element = { layout: "Z07:00", pattern: /^(?:Z|[+-]\d\d:\d\d)/ };
const MICROS: Element = { layout: ".000000", pattern: /^[.,]\d{6}/ };
const FRACTION = /^[.,]\d+/;

/** As Go's time package quotes: beyond ASCII byte by byte. */
function quoted(text: string): string {
  return `"${[...Buffer.from(text)].map((byte) => (byte < 0x20 || byte >= 0x80 ? `\\x${byte.toString(16).padStart(2, "0")}` : byte === 0x22 || byte === 0x5c ? `\\${String.fromCharCode(byte)}` : String.fromCharCode(byte))).join("")}"`;
}

/** A day; a time without a zone; RFC 3339, and the same with exactly six digits of fraction. */
export type TimeLayout = "day" | "local" | "plain" | "micro";

const DAY_ELEMENTS = 5;
const LAYOUTS: Readonly<Record<TimeLayout, { readonly shown: string; readonly elements: readonly Element[] }>> = {
  day: { shown: "2006-01-02", elements: DATE.slice(0, DAY_ELEMENTS) }, local: { shown: "2006-01-02T15:04:05", elements: DATE },
  plain: { shown: "2006-01-02T15:04:05Z07:00", elements: [...DATE, ZONE] }, micro: { shown: "2006-01-02T15:04:05.000000Z07:00", elements: [...DATE, MICROS, ZONE] },
};

/** undefined if Go would accept it. */
export function timeParseError(text: string, layout: TimeLayout): string | undefined {
  const { shown, elements } = LAYOUTS[layout];
  const problem = (message: string): string => `parsing time ${quoted(text)}${message}`;
  let rest = text;
  let outOfRange: string | undefined;
  for (const element of elements) {
    if (element === ZONE && layout === "plain") rest = rest.replace(FRACTION, ""); // a fraction after the seconds is always allowed
    const zone = element === ZONE ? zoneOutOfRange(rest) : undefined;
    if (zone !== undefined) return problem(`: time zone offset ${zone} out of range`);
    const found = element.pattern.exec(rest)?.[0];
    if (found === undefined) return problem(` as ${quoted(shown)}: cannot parse ${quoted(rest)} as ${quoted(element.layout)}`);
    rest = rest.slice(found.length);
    if (element.what !== undefined && (Number(found) > element.max! || Number(found) < (element.min ?? 0))) outOfRange ??= element.what;
    if (outOfRange !== undefined) return problem(`: ${outOfRange} out of range`);
  }
  if (layout === "local") rest = rest.replace(FRACTION, "");
  if (rest !== "") return problem(`: extra text: ${quoted(rest)}`);
  const [year = 0, month = 1, day = 1] = text.slice(0, 10).split("-").map(Number);
  return day < 1 || day > new Date(Date.UTC(year, month, 0)).getUTCDate() ? problem(": day out of range") : undefined;
}

/** Of which sign it is, is looked at later. */
function zoneOutOfRange(text: string): string | undefined {
  const [, hours, minutes] = /^[^Z](\d\d):(\d\d)/.exec(text) ?? [];
  return Number(minutes) > 60 ? "minute" : Number(hours) > 24 ? "hour" : undefined;
}
