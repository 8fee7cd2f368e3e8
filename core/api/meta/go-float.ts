/** Numbers as Go prints them. */

const INT64_END = 2 ** 63;

/** %v of a number out of JSON: a whole one that fits an int64 is kept as such, any other is a float64. */
export function goNumber(value: number | bigint): string {
  if (typeof value === "bigint") return String(value);
  return Number.isInteger(value) && value >= -INT64_END && value < INT64_END ? String(BigInt(value)) : goFloat(value);
}

/** %g and %v: as few digits as tell it from every other, with an exponent below 1e-4 and from 1e6 on. */
export function goFloat(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "+Inf" : "-Inf";
  if (value === 0) return Object.is(value, -0) ? "-0" : "0";
  const [mantissa, exponentText] = value.toExponential().split("e") as [string, string];
  const exponent = Number(exponentText);
  if (exponent < -4 || exponent >= 6) return `${mantissa}e${exponentText[0]}${exponentText.slice(1).padStart(2, "0")}`;
  return goFixed(value);
}

/** %f with as many digits as it takes. */
export function goFixed(value: number): string {
  const text = Object.is(value, -0) ? "-0" : String(value);
  if (!text.includes("e")) return text;
  const [mantissa, exponentText] = text.split("e") as [string, string];
  const exponent = Number(exponentText);
  const sign = mantissa.startsWith("-") ? "-" : "";
  const digits = mantissa.replace(/[-.]/g, "");
  return exponent < 0 ? `${sign}0.${"0".repeat(-exponent - 1)}${digits}` : `${sign}${digits}${"0".repeat(exponent + 1 - digits.length)}`;
}
