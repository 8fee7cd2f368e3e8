import { expect, test } from "vitest";
import { raw, type RawAnswer } from "./answer.ts";
import { crossOrigin, originPatternProblem } from "./cross-origin.ts";
import type { ServerRequest } from "./request.ts";

async function asked(method: string, origin: string | undefined, allowed: string | undefined): Promise<{ readonly status: number; readonly set: Record<string, string>; readonly type: string | undefined }> {
  const set: Record<string, string> = {};
  const request = { method, header: (name: string) => (name === "origin" ? origin : undefined), setHeader: (name: string, value: string) => { set[name] = value; } } as unknown as ServerRequest;
  const answer = await crossOrigin(() => Promise.resolve(raw("x")), { isAllowed: allowed === undefined ? undefined : (one) => one === allowed, random: { uuid: () => "made" } })(request);
  const { status, headers } = answer as RawAnswer;
  return { status, set, type: headers["content-type"] };
}

const TEXT = "text/plain; charset=utf-8";
const PAGE = "https://page.test:8443";
const HEADERS = {
  "Access-Control-Allow-Origin": PAGE, "Access-Control-Allow-Methods": "POST, GET, OPTIONS, PUT, DELETE, PATCH", "Access-Control-Expose-Headers": "Date", "Access-Control-Allow-Credentials": "true",
  "Access-Control-Allow-Headers": "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since",
};

test("a page of an origin that may ask is told so, and its preflight request goes no further, with a name as any request", async () => {
  expect(await asked("GET", PAGE, PAGE)).toEqual({ status: 200, set: HEADERS, type: TEXT });
  expect(await asked("OPTIONS", PAGE, PAGE)).toEqual({ status: 204, set: { ...HEADERS, "Audit-Id": "made" }, type: undefined });
});

test.each([["GET", undefined, PAGE], ["GET", "", PAGE], ["OPTIONS", "https://other.test", PAGE], ["OPTIONS", PAGE, undefined]])("%s of %s, where %s may ask, is a request like any", async (method, origin, allowed) => {
  expect(await asked(method, origin, allowed)).toEqual({ status: 200, set: {}, type: TEXT });
});

test.each([["//example\\.com(:|$)", undefined], ["^https://a$", undefined], ["example.com", "does not pin"], [".*", "does not pin"], ["", "empty value"]])("a pattern %s: %s", (pattern, told) => {
  if (told === undefined) expect(originPatternProblem(pattern)).toBeUndefined();
  else expect(originPatternProblem(pattern)).toContain(told);
});
