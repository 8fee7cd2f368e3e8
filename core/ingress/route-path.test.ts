import { expect, test } from "vitest";
import { requestPath, routePath } from "./route-path.ts";

test.each([
  ["/%7Euser/%2D%2e_x", "/~user/-._x"], ["/caf%c3%a9", "/caf%C3%A9"], ["/a/./b/../c", "/a/c"], ["/a/%2e%2E/b", "/b"], ["/a/..", "/"], ["/a/.", "/a/"], ["/a%2fb", "/a%2Fb"], ["/a%zz", "/a%zz"], ["//a", "//a"], ["/.well-known", "/.well-known"],
])("%s is %s, in a route and in a request", (path, comparable) => {
  expect([routePath(path), requestPath(path)]).toEqual([comparable, comparable]);
});

test("what is no sign of a URL is written as its bytes are: a route's text, and a request's bytes", () => {
  expect([routePath("/café au lait"), requestPath(Buffer.from("/café").toString("latin1"))]).toEqual(["/caf%C3%A9%20au%20lait", "/caf%C3%A9"]);
});
