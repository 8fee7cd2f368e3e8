/**
 * What a plain text in YAML 1.1 is read as by go-yaml, and would be, for those who write texts.
 *
 * Source: go.yaml.in/yaml/v2 {resolve,encode}.go
 */
const NAMES: ReadonlySet<string> = new Set([
  "~",
  ...["null", "y", "yes", "true", "on", "n", "no", "false", "off"].flatMap((name) => [name, name[0]!.toUpperCase() + name.slice(1), name.toUpperCase()]),
  ...["nan", "NaN", "NAN"].map((name) => `.${name}`), ...["inf", "Inf", "INF"].flatMap((name) => [`.${name}`, `+.${name}`, `-.${name}`]),
]);

/** Whether a text, written as it is, would be something else: a number, a truth value, nothing, a time or, to other readers, a number of base sixty. */
export function looksLikeOther(text: string): boolean {
  if (!STARTS.test(text)) return text === "";
  if (NAMES.has(text)) return true;
  if (text.startsWith(".")) return isFloat(text);
  return SIGNED.test(text) && (isTimestamp(text) || isInteger(text.replaceAll("_", "")) || isStyledFloat(text.replaceAll("_", "")) || BASE_60.test(text));
}

/** The first characters of what go-yaml looks at more closely. */
const STARTS = /^[-+.0-9yYnNtTfFoO~]/;
const SIGNED = /^[-+0-9]/;
const BASE_60 = /^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$/;

/** As strconv.ParseFloat reads what starts with a point. */
function isFloat(text: string): boolean {
  return /^\.[0-9]+(?:[eE][-+]?[0-9]+)?$/.test(text) && Number.isFinite(Number(text));
}

function isStyledFloat(text: string): boolean { return /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/.test(text) && Number.isFinite(Number(text)); }

/** Of 64 bits, with a sign or without. */
function isInteger(text: string): boolean { return integerIn(text) !== undefined; }

/** More are no number of 64 bits in any base, and would take long to read. */
const DIGITS_MAX = 128;

function integerIn(text: string): bigint | undefined {
  const [, sign = "", digits] = /^([-+]?)(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO][0-7]+|0[0-7]*|[1-9][0-9]*)$/.exec(text) ?? [];
  if (digits === undefined || digits.length > DIGITS_MAX) return undefined;
  const value = BigInt(/^0[0-7]+$/.test(digits) ? `0o${digits.slice(1)}` : digits);
  return (sign === "-" ? value <= 2n ** 63n : value < (sign === "+" ? 2n ** 63n : 2n ** 64n)) ? (sign === "-" ? -value : value) : undefined;
}

/** A whole number, a float, or undefined: neither. Those that are no numbers to anybody else, .inf and .nan, are not among them. */
export function numberIn(text: string): bigint | number | undefined {
  if (text.startsWith(".")) return isFloat(text) ? Number(text) : undefined;
  if (!SIGNED.test(text)) return undefined;
  const plain = text.replaceAll("_", "");
  return integerIn(plain) ?? (isStyledFloat(plain) ? Number(plain) : undefined);
}

function isTimestamp(text: string): boolean {
  const parts = /^(\d{4})-(\d\d?)-(\d\d?)(?:(?:[Tt](\d\d?):(\d\d?):(\d\d?)(?:[.,]\d+)?(?:Z|[-+](\d\d):(\d\d)))| (\d\d?):(\d\d?):(\d\d?)(?:[.,]\d+)?)?$/.exec(text);
  if (!parts) return false;
  const [year, month, day, hour = 0, minute = 0, second = 0, zoneHour = 0, zoneMinute = 0, hourAlone = 0, minuteAlone = 0, secondAlone = 0] = parts.slice(1).map((part) => (part === undefined ? undefined : Number(part)));
  const days = new Date(Date.UTC(2000 + (year! % 400), month!, 0)).getUTCDate();
  return month! >= 1 && month! <= 12 && day! >= 1 && day! <= days && [hour, hourAlone].every((value) => value < 24) && [minute, second, minuteAlone, secondAlone].every((value) => value < 60)
    && zoneHour <= 24 && zoneMinute < 60;
}
