/**
 * JSON that keeps integers whole: those beyond 2^53, which a number would round, are bigints in a value and digits in its text.
 * Beyond 64 bits a whole number is a float, as in Go: 1e20 is written as digits, too, and must not come back as what no write takes.
 */

/** JSON.rawJSON is in every engine we run on, but not in TypeScript's library. */
const rawJson = (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON;
const LONG_INTEGER = /\d{16}/;
const INTEGER = /^-?\d+$/;

export function valueText(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch (error) { // a bigint somewhere; the replacer is four times as slow, so it waits for the one value in a million
    if (!(error instanceof TypeError)) throw error;
    return JSON.stringify(value, (_key, member: unknown) => (typeof member === "bigint" ? rawJson(String(member)) : member));
  }
}

/** Throws SyntaxError. */
export function parseValueText(text: string): unknown {
  if (!LONG_INTEGER.test(text)) return JSON.parse(text) as unknown;
  return JSON.parse(text, keepInteger as (key: string, value: unknown) => unknown);
}

function keepInteger(_key: string, value: unknown, { source }: { readonly source?: string }): unknown {
  if (typeof value !== "number" || Number.isSafeInteger(value) || source === undefined || !INTEGER.test(source)) return value;
  const exact = BigInt(source);
  return BigInt.asIntN(64, exact) === exact ? exact : value;
}
