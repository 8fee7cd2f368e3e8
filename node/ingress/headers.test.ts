import { expect, test } from "vitest";
import { askedByHead, askedOf } from "./headers.ts";

test.each([
  ["/a/b?c=/../d", "/a/b"], ["/public/../admin", "/admin"], ["/public/%2e%2E/admin", "/admin"], ["/%61dmin/x", "/admin/x"], ["/public/.%2e/%61%64min", "/admin"], ["/a/.", "/a/"],
  ["/a%2Fb/%20%7e%5F%2d", "/a%2Fb/%20~_-"], ["/%2561dmin", "/%2561dmin"], ["/%zz", "/%zz"], ["/%c3%a9", "/%c3%a9"], ["//a//", "//a//"],
])("the path %s is routed as %s, however it is asked for, and passed on as it came", (target, path) => {
  expect(askedOf({ method: "GET", url: target, headers: { ":authority": "x" } })).toMatchObject({ host: "x", path, target });
  expect(askedByHead({ method: "GET", target, host: "x", fields: [] })).toMatchObject({ host: "x", path, target });
});
