/**
 * Whether an Accept-Encoding lets an answer be packed: one that says "gzip;q=0" does not want it.
 *
 * Source: github.com/NYTimes/gziphandler, which packs /openapi/v2 upstream
 */
export function takesGzip(accepted: string | readonly string[] | undefined): boolean {
  return String(accepted ?? "").split(",").some((one) => /^\s*gzip\s*(;(?!\s*q=0(\.0*)?\s*$)|$)/i.test(one));
}
