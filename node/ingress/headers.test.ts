import { expect, test } from "vitest";
import { fieldReader, readRequestHead, type RequestHead } from "../../core/net/http1-head.ts";
import { askedByHead, askedOf, requestHeaders, requestText } from "./headers.ts";

test.each([
  ["/a/b?c=/../d", "/a/b"], ["/public/../admin", "/admin"], ["/public/%2e%2E/admin", "/admin"], ["/%61dmin/x", "/admin/x"], ["/public/.%2e/%61%64min", "/admin"], ["/a/.", "/a/"],
  ["/a%2Fb/%20%7e%5F%2d", "/a%2Fb/%20~_-"], ["/%2561dmin", "/%2561dmin"], ["/%zz", "/%zz"], ["/%c3%a9", "/%c3%a9"], ["//a//", "//a//"],
])("the path %s is routed as %s, however it is asked for, and passed on as it came", (target, path) => {
  expect(askedOf({ method: "GET", url: target, headers: { ":authority": "x" } })).toMatchObject({ host: "x", path, target });
  expect(askedByHead({ method: "GET", target, host: "x", fields: [] })).toMatchObject({ host: "x", path, target });
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
