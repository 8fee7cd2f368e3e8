import { expect, test } from "vitest";
import { corsHeaders, isPreflight } from "./cors.ts";
import type { CorsFilter } from "./gateway-types.ts";

const request = (method: string, headers: Record<string, string>) => ({ method, header: (name: string) => headers[name] });
const told = (cors: CorsFilter, method: string, headers: Record<string, string>): Record<string, string> => Object.fromEntries(corsHeaders(cors, request(method, headers)).map(({ name, value }) => [name.replace("access-control-", ""), value]));
const asking = { "origin": "https://a.test", "access-control-request-method": "PUT", "access-control-request-headers": "x-a,x-b" };

test.each([
  ["https://a.test", "https://a.test", true], ["https://a.test:443", "https://a.test", true], ["HTTPS://A.test", "https://a.test", true], ["http://a.test", "https://a.test", false], ["https://a.test:8443", "https://a.test", false], ["https://a.test.evil", "https://a.test", false],
  ["https://x.a.test", "https://*.a.test", true], ["https://x.y.a.test", "https://*.a.test", true], ["https://a.test", "https://*.a.test", false], ["https://.a.test", "https://*.a.test", false], ["https://evil-a.test", "https://*.a.test", false], ["http://any:1", "http://*:1", true], ["null", "*", true], ["null", "https://*", false], ["https://a.test/x", "https://*", false],
])("%s for %s: %s", (origin, allowed, may) => { expect(told({ allowOrigins: [allowed] }, "GET", { origin })["allow-origin"] !== undefined).toBe(may); });

test("a browser that asks is told everything, one that just does it what concerns the answer", () => {
  const cors: CorsFilter = { allowOrigins: ["https://b.test", "https://a.test"], allowMethods: ["GET", "PUT"], allowHeaders: ["x-a"], exposeHeaders: ["x-c", "x-d"], allowCredentials: true, maxAge: 60 };
  expect(told(cors, "OPTIONS", asking)).toEqual({ "allow-origin": "https://a.test", "allow-credentials": "true", "expose-headers": "x-c, x-d", "allow-methods": "GET, PUT", "allow-headers": "x-a", "max-age": "60" });
  expect(told(cors, "PUT", asking)).toEqual({ "allow-origin": "https://a.test", "allow-credentials": "true", "expose-headers": "x-c, x-d" });
  expect([told(cors, "OPTIONS", { ...asking, origin: "https://c.test" }), told(cors, "GET", {})]).toEqual([{}, {}]);
  expect([isPreflight(request("OPTIONS", asking)), isPreflight(request("OPTIONS", { origin: "x" })), isPreflight(request("PUT", asking))]).toEqual([true, false, false]);
});

test("stars are what was asked where there are credentials: to browsers they are none then", () => {
  const all: CorsFilter = { allowOrigins: ["*"], allowMethods: ["*"], allowHeaders: ["*"], exposeHeaders: ["*"] };
  expect(told(all, "OPTIONS", asking)).toEqual({ "allow-origin": "*", "expose-headers": "*", "allow-methods": "*", "allow-headers": "*", "max-age": "5" });
  expect(told({ ...all, allowCredentials: true }, "OPTIONS", asking)).toEqual({ "allow-origin": "https://a.test", "allow-credentials": "true", "allow-methods": "PUT", "allow-headers": "x-a,x-b", "max-age": "5" });
});
