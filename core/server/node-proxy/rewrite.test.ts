import { Readable } from "node:stream";
import { gunzipSync, gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { splitSchemeNamePort } from "./backend.ts";
import { escapeIllegal, rewriteHtml, rewriteLocation } from "./rewrite.ts";

const HERE = { prefix: "/api/v1/namespaces/a/services/b/proxy", backendHost: "10.0.0.7:80", requestHost: "localhost:8001" };

test.each([
  ["/login?next=/x#y", "/api/v1/namespaces/a/services/b/proxy/login?next=/x#y"],
  ["/dir/", "/api/v1/namespaces/a/services/b/proxy/dir/"],
  ["/", "/api/v1/namespaces/a/services/b/proxy/"],
  ["/a/./../b", "/api/v1/namespaces/a/services/b/proxy/b"],
  ["http://10.0.0.7:80/login", "/api/v1/namespaces/a/services/b/proxy/login"],
  ["http://localhost:8001/login", "http://localhost:8001/api/v1/namespaces/a/services/b/proxy/login"],
  ["/api/v1/namespaces/a/services/b/proxy/login", "/api/v1/namespaces/a/services/b/proxy/login"],
  ["relative/page", "relative/page"],
  ["#top", "#top"],
  ["https://example.com/login", "https://example.com/login"],
  ["mailto:a@b", "mailto:a@b"],
])("%s becomes %s", (from, to) => expect(rewriteLocation(from, HERE)).toBe(to));

test.each([
  ["/logs/log.log%00<script>alert(1)</script>?a=<b>#<c>", "/logs/log.log%00%3Cscript%3Ealert(1)%3C/script%3E?a=<b>#<c>"],
  ["http://example.com/a b/\u00e9\"^`{|}\\", "http://example.com/a%20b/%E9%22%5E%60%7B%7C%7D%5C"],
  ["/plain/%2F-_.~$&+,;=:@!'()*[]", "/plain/%2F-_.~$&+,;=:@!'()*[]"],
])("what may not stand in a path is escaped: %s", (from, to) => expect(escapeIllegal(from)).toBe(to));

const PAGE = `<!-- <a href="/no"> --><A class=x HREF='/yes'>é</A><img src=/pic alt="a > b"><p href="/no"><script src="/s.js">if (a<b) "<a href='/no'>"</script><link href="//10.0.0.7:80/c.css">`;
const REWRITTEN = `<!-- <a href="/no"> --><A class=x HREF='/P/yes'>é</A><img src=/P/pic alt="a > b"><p href="/no"><script src="/P/s.js">if (a<b) "<a href='/no'>"</script><link href="/P/c.css">`;

test("addresses in pages are rewritten, nothing else of them", async () => {
  const how = { ...HERE, prefix: "/P" };
  expect(Buffer.from((await rewriteHtml(Readable.from([Buffer.from(PAGE)]), "", how)) as Uint8Array).toString()).toBe(REWRITTEN);
  expect(gunzipSync((await rewriteHtml(Readable.from([gzipSync(PAGE)]), "gzip", how)) as Uint8Array).toString()).toBe(REWRITTEN);
  const unknown = Readable.from(["?"]);
  expect(await rewriteHtml(unknown, "br", how)).toBe(unknown);
});

test.each([
  [`<p title="x""><a href="/yes">it's</a>`, `<p title="x""><a href="/P/yes">it's</a>`],
  [`<p"><a id=5" href='/yes'/><a\thref = "/x y\n"><a title=a'b href=/z/>`, `<p"><a id=5" href='/P/yes'/><a\thref = "/P/x y\n"><a title=a'b href=/P/z/>`],
  [`<a href=/h\u00e0src=/b><a x=y=1 =href="/no" href="/yes"><a href>`, `<a href=/P/h\u00e0src=/b><a x=y=1 =href="/no" href="/P/yes"><a href>`],
  [`<!--><a href="/yes"><!--->`, `<!--><a href="/P/yes"><!--->`],
  [`<a href="/a"><a href="/b>`, `<a href="/P/a"><a href="/b>`],
])("quotes count where HTML has them: %s", async (page, rewritten) => {
  expect(Buffer.from((await rewriteHtml(Readable.from([Buffer.from(page)]), "", { ...HERE, prefix: "/P" })) as Uint8Array).toString()).toBe(rewritten);
});

test.each([
  ["web", { scheme: "", name: "web", port: "" }],
  ["web:http", { scheme: "", name: "web", port: "http" }],
  ["https:web:443", { scheme: "https", name: "web", port: "443" }],
  ["https:web:", { scheme: "https", name: "web", port: "" }],
  ["ftp:web:21", undefined],
  [":80", undefined],
  ["a:b:c:d", undefined],
])("what %s names", (id, expected) => expect(splitSchemeNamePort(id)).toEqual(expected));
