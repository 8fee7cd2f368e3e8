import { expect, test } from "vitest";
import { environmentProxy } from "./environment-proxy.ts";

const PROXY = "http://proxy.example.com:3128/";

/** Where a request goes through with these variables. */
function through(env: Record<string, string>, url: string): string | undefined { return environmentProxy(env)(new URL(url))?.href; }

test.each<[noProxy: string, url: string, straight: boolean]>([
  ["", "https://example.org", false],
  ["", "https://127.0.0.7:6443", true],
  ["", "https://[::1]:6443", true],
  ["", "https://localhost:6443", true],
  ["*", "https://example.org", true],
  ["a,*,b", "https://example.org", true],
  ["10.0.0.0/8", "https://10.2.3.4", true],
  ["10.0.0.7/8", "https://10.2.3.4", true],
  ["10.0.0.0/8", "https://11.2.3.4", false],
  ["10.0.0.0/8", "https://10.2.3.4.example.org", false],
  ["fd00::/8", "https://[fd00::7]", true],
  ["192.168.0.7", "https://192.168.0.7:6443", true],
  ["192.168.0.7:6443", "https://192.168.0.7:6443", true],
  ["192.168.0.7:6443", "https://192.168.0.7", false],
  ["[fd00::7]:443", "https://[fd00::7]", true],
  ["example.org", "https://example.org", true],
  ["example.org", "https://a.b.example.org:8443", true],
  ["example.org", "https://badexample.org", false],
  [".example.org", "https://example.org", false],
  [".example.org", "https://a.example.org", true],
  ["*.example.org", "https://a.example.org", true],
  ["*.example.org", "https://example.org", false],
  ["example.org:8443", "https://a.example.org:8443", true],
  ["example.org:8443", "https://a.example.org", false],
  [" EXAMPLE.org , 10.0.0.0/8", "https://example.ORG", true],
  [":443,,/8", "https://example.org", false],
  [".svc", "https://hook.ns.svc", true],
])("NO_PROXY=%s: %s goes straight: %s", (noProxy, url, straight) => {
  expect(through({ HTTPS_PROXY: PROXY, NO_PROXY: noProxy }, url)).toBe(straight ? undefined : PROXY);
  expect(through({ https_proxy: PROXY, no_proxy: noProxy }, url)).toBe(straight ? undefined : PROXY);
});

test.each<[env: Record<string, string>, proxy: string | undefined]>([
  [{}, undefined],
  [{ HTTPS_PROXY: "" }, undefined],
  [{ HTTPS_PROXY: "", https_proxy: PROXY }, PROXY],
  [{ HTTPS_PROXY: "proxy.example.com:3128" }, PROXY],
  [{ HTTPS_PROXY: "10.0.0.1" }, "http://10.0.0.1/"],
  [{ HTTPS_PROXY: "https://me:secret@proxy.example.com" }, "https://me:secret@proxy.example.com/"],
  [{ HTTPS_PROXY: "http://:::" }, undefined],
  [{ HTTP_PROXY: PROXY }, undefined],
])("with %j an HTTPS request goes through %s", (env, proxy) => expect(through(env, "https://example.org")).toBe(proxy));

test("what is not HTTPS goes straight", () => expect(through({ HTTPS_PROXY: PROXY }, "http://example.org")).toBeUndefined());
