import { describe, expect, test } from "vitest";
import { fieldReader, readRequestHead, type RequestHead } from "../../core/net/http1-head.ts";
import { askedByHead, askedOf, requestHeaders, requestText, responseHeaders } from "./headers.ts";

test.each([
  ["/a/b?c=/../d", "/a/b"], ["/public/../admin", "/admin"], ["/public/%2e%2E/admin", "/admin"], ["/%61dmin/x", "/admin/x"], ["/public/.%2e/%61%64min", "/admin"], ["/a/.", "/a/"],
  ["/a%2Fb/%20%7e%5F%2d", "/a%2Fb/%20~_-"], ["/%2561dmin", "/%2561dmin"], ["/%zz", "/%zz"], ["/%c3%a9", "/%C3%A9"], ["//a//", "//a//"], ["/\xc3\xa9", "/%C3%A9"],
])("the path %s is routed as %s, however it is asked for, and passed on as it came", (target, path) => {
  expect(askedOf({ method: "GET", url: target, headers: { ":authority": "x" } })).toMatchObject({ host: "x", path, target });
  expect(askedByHead({ method: "GET", target, host: "x", fields: [] })).toMatchObject({ host: "x", path, target });
});

test("what is behind a # is no part of a request: some who answer would leave it out, so a route could be gone around", () => {
  for (const target of ["/admin#x", "http://x/admin?a#x"]) expect(askedByHead({ method: "GET", target, host: "x", fields: [] })).toBeUndefined();
  expect(askedOf({ method: "GET", url: "/admin#x", headers: { ":authority": "x" } })).toBeUndefined();
});

test.each(["X-Forwarded-For", "x_forwarded_for", "X-Forwarded_Proto", "X_Real_IP", "X-Forwarded-Prefix", "X-Forwarded-Client-Cert", "Forwarded"])("what a client says of itself in %s is not passed on", (name) => {
  const caller = { remoteAddress: "192.0.2.7", secure: false, door: 10_080, port: 80 }, said = "192.0.2.66";
  const head = readRequestHead(`GET / HTTP/1.1\r\nHost: x\r\nX_Other: 1\r\n${name}: ${said}\r\n`, fieldReader()) as RequestHead;
  const text = requestText(head, caller, { authority: "x", host: "x", target: "/", edits: [] });
  const pairs = requestHeaders({ host: "x", x_other: "1", [name.toLowerCase()]: said }, caller, { authority: "x", host: "x", upgrade: false });
  expect(text).not.toContain(said);
  expect(pairs.flat()).not.toContain(said);
  expect(text).toContain("X_Other: 1\r\n");
  expect(text).toContain("x-forwarded-for: 192.0.2.7\r\n");
  expect(pairs).toContainEqual(["x_other", "1"]);
  expect(pairs).toContainEqual(["x-real-ip", "192.0.2.7"]);
});

describe("what a route says of headers", () => {
  const caller = { remoteAddress: "192.0.2.7", secure: false, door: 10_080, port: 80 };
  const named = (...names: string[]) => names.map((name) => ({ name, value: "edited" }));
  const framing = ["content-length", "transfer-encoding", "connection", "upgrade"];

  test("goes for those that we say, too: each is there once, or not at all", () => {
    const edits = [{ on: "request", set: named("x-forwarded-proto", "x-new"), add: named("x-forwarded-for"), remove: ["x-real-ip", "x-gone"] }] as const;
    const head = readRequestHead("GET / HTTP/1.1\r\nHost: x\r\nX-Gone: 1\r\n", fieldReader()) as RequestHead;
    const pairs = [["host", "x"], ["x-forwarded-for", "192.0.2.7"], ["x-forwarded-host", "x"], ["x-forwarded-port", "80"], ["x-forwarded-proto", "edited"], ["x-new", "edited"], ["x-forwarded-for", "edited"]];
    expect(requestHeaders({ host: "x", "x-gone": "1" }, caller, { authority: "x", host: "x", upgrade: false, edits })).toEqual(pairs);
    expect(requestText(head, caller, { authority: "x", host: "x", target: "/", edits })).toBe(`GET / HTTP/1.1\r\n${pairs.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`);
  });

  test("changes neither where a body ends nor the host's line", () => {
    const edits = (["request", "response"] as const).map((on) => ({ on, set: named(...framing, ...(on === "request" ? ["host"] : [])), add: named(...framing), remove: framing }));
    const head = readRequestHead("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n", fieldReader()) as RequestHead;
    expect(requestText(head, caller, { authority: "x", host: "y", target: "/", edits })).toMatch(/^POST \/ HTTP\/1\.1\r\nhost: y\r\ncontent-length: 3\r\nx-forwarded-for: (?![\s\S]*edited)/);
    expect(requestHeaders({ host: "x", "content-length": "3" }, caller, { authority: "x", host: "y", upgrade: false, edits }).filter(([name]) => ["host", ...framing].includes(name))).toEqual([["host", "y"], ["content-length", "3"]]);
    expect({ ...responseHeaders([["Content-Length", "3"], ["X-A", "1"]], edits) }).toEqual({ "content-length": "3", "x-a": "1" });
  });
});
