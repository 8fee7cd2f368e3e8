import { expect, test } from "vitest";
import { expose, exposeSlowly } from "./exposition.ts";
import { metricsRegistry } from "./metrics.ts";

const PROTOBUF = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";

test.each([
  [undefined, "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"],
  ["*/*", "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"],
  ["application/openmetrics-text;version=1.0.0,text/plain;q=0.5", "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"],
  ["text/plain;version=1.0.0;escaping=allow-utf-8", "text/plain; version=0.0.4; charset=utf-8; escaping=allow-utf-8"],
  ["text/plain;version=0.0.4;escaping=values", "text/plain; version=0.0.4; charset=utf-8; escaping=values"],
  ["text/plain;escaping=crooked", "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"],
  [`${PROTOBUF};q=0.7,text/plain;q=0.3`, "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited; escaping=underscores"],
  [`${PROTOBUF};q=0.3,text/plain;q=0.7`, "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"],
])("who accepts %s is given %s", (accept, contentType) => expect(expose("# HELP a A.\n# TYPE a gauge\na 1\n", accept).contentType).toBe(contentType));

test("in protobuf each family is a message with its length before it", () => {
  const metrics = metricsRegistry();
  metrics.gauge("temperature", "In\ndegrees.").set(-1.5, { room: 'the "best"' });
  metrics.histogram("seconds", "[ALPHA] Long.", [0.1]).observe(0.05, { verb: "GET" });
  const only = (family: string): Buffer => Buffer.from(expose(metrics.render((name) => name === family), PROTOBUF).body as Uint8Array);
  const double = (is: number): string => {
    const bytes = Buffer.alloc(8);
    bytes.writeDoubleLE(is);
    return bytes.toString("hex");
  };
  const text = (is: string): string => Buffer.from([is.length]).toString("hex") + Buffer.from(is).toString("hex");
  const message = (at: string, is: string): string => at + Buffer.from([is.length / 2]).toString("hex") + is;
  const gauge = `0a${text("temperature")}12${text("In\ndegrees.")}1801${message("22", message("0a", `0a${text("room")}12${text('the "best"')}`) + message("12", `09${double(-1.5)}`))}`;
  expect(only("temperature").toString("hex")).toBe(message("", gauge));
  expect(Buffer.from(expose(`# HELP a B.\n# TYPE a counter\na{b="}"} 2 300\n`, PROTOBUF).body as Uint8Array).toString("hex")).toBe(message("", `0a${text("a")}12${text("B.")}1800${message("22", message("0a", `0a${text("b")}12${text("}")}`) + message("1a", `09${double(2)}`) + "30ac02")}`));
  const bucket = (count: string, le: number): string => message("1a", `08${count}11${double(le)}`);
  const histogram = `0a${text("seconds")}12${text("[ALPHA] Long.")}1804${message("22", message("0a", `0a${text("verb")}12${text("GET")}`) + message("3a", `080111${double(0.05)}${bucket("01", 0.1)}${bucket("01", Number.POSITIVE_INFINITY)}`))}`;
  expect(only("seconds").toString("hex")).toBe(message("", histogram));
});

test.each(["text/plain", PROTOBUF])("what is written as it is taken is the same, in pieces that are not long: %s", (accept) => {
  const metrics = metricsRegistry();
  const seconds = metrics.histogram("seconds", "Long.", [0.1, 1, 10]);
  for (let i = 0; i < 2000; i++) seconds.observe(i / 100, { resource: `kind${i}s.example.com` });
  metrics.gauge("temperature", "In degrees.").set(20);
  metrics.counter("never", "Nothing.");
  const { contentType, body } = expose(metrics.render(), accept);
  const slow = exposeSlowly(metrics.families(), accept), pieces = [...slow.pieces].map((piece) => Buffer.from(piece as Uint8Array));
  expect([slow.contentType, Buffer.concat(pieces).toString("hex")]).toEqual([contentType, Buffer.from(body as Uint8Array).toString("hex")]);
  expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThan(20_000);
  expect(pieces.length).toBeGreaterThan(20);
});
