import { expect, test } from "vitest";
import { takesGzip } from "./takes-gzip.ts";

test.each([
  ["gzip", true], ["GZIP", true], ["deflate, gzip;q=0.5", true], ["gzip;q=0.01", true], ["gzip;q=0", false], ["br, gzip; q=0.0", false], ["x-gzip", false], ["gzipped", false], ["identity", false], ["", false], [undefined, false],
])("%s: %s", (accepted, takes) => expect(takesGzip(accepted)).toBe(takes));
