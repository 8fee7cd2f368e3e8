/**
 * Strings of which schemas and expressions ask whether they are a date, a UUID and the like.
 *
 * Source: kubernetes v1.36 kube-openapi/pkg/validation/strfmt
 */
import { parseUrl, UrlError } from "../api/meta/go-url.ts";

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$/;

/** An absolute URI or path. */
export function isRequestUri(text: string): boolean { return requestUriProblem(text) === undefined; }

/** What is wrong with it, in Go's words. */
export function requestUriProblem(text: string): string | undefined {
  try {
    parseUrl(text, { request: true });
    return undefined;
  } catch (error) {
    if (error instanceof UrlError) return error.message;
    throw error;
  }
}

export function isBase64(text: string): boolean { return BASE64.test(text); }

/** `version` and `variant`: patterns of the first digits of the third and fourth group. */
export function uuidPattern(version = "[0-9a-f]", variant = "[0-9a-f]"): RegExp {
  return new RegExp(`^[0-9a-f]{8}-?[0-9a-f]{4}-?${version}[0-9a-f]{3}-?${variant}[0-9a-f]{3}-?[0-9a-f]{12}$`, "i");
}

/** 2006-01-02, and such a day exists. */
export function isDate(text: string): boolean {
  const match = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text);
  if (!match) return false;
  const [year, month, day] = match.slice(1).map(Number) as [number, number, number];
  return month >= 1 && month <= 12 && day >= 1 && day <= daysIn(year, month);
}

function daysIn(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return [4, 6, 9, 11].includes(month) ? 30 : 31;
}

/** Lenient about the fraction's separator, strict about hours, minutes and seconds. */
export function isDateTime(text: string): boolean {
  const [date, time, ...rest] = text.toLowerCase().split("t");
  if (rest.length > 0 && time === undefined) return false;
  const match = /^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$/.exec(time ?? "");
  return isDate(date ?? "") && match !== null && match[1]! <= "23" && match[2]! <= "59" && match[3]! <= "59";
}
