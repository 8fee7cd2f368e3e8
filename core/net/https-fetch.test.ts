import { expect, test } from "vitest";
import { systemClock as clock } from "../lifecycle/clock.ts";
import { httpsFetch } from "./https-fetch.ts";

test.each(["file:///etc/hostname", "data:text/plain,x", "s3://bucket/x", "blob:x", "/etc/hostname"])("%s is nothing that a server of somebody else's may send us to", async (url) => {
  await expect(httpsFetch({ url, tls: {}, timeoutMs: 1_000 }, clock, new AbortController().signal)).rejects.toThrow(`Get ${JSON.stringify(url)}: unsupported protocol scheme ${JSON.stringify(/^[a-z0-9]+(?=:)/.exec(url)?.[0] ?? "")}`);
});
