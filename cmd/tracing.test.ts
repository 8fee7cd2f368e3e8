import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { systemClock as clock } from "../core/lifecycle/clock.ts";
import { systemRandom as random } from "../core/lifecycle/random.ts";
import { silentLog as log } from "../core/observe/log.ts";
import { noSpans, spansFrom } from "../core/observe/spans.ts";
import { rootSpans, type SpanData, tracer } from "../core/server/tracing/tracer.ts";
import { tracedCri } from "../node/cri/traced.ts";
import { encryptedStore } from "../storage/encryption/encryption.ts";
import type { Provider } from "../storage/encryption/provider.ts";
import { memoryStore } from "../storage/memory.ts";
import { apiServer } from "../test/api-server.ts";
import { apiServerArgs } from "./apiserver-args.ts";
import { ConfigError } from "./config/config.ts";
import { kubeletTracing, tracingOf } from "./tracing.ts";

const recorded = (samplingRatePerMillion: number) => {
  const spans: SpanData[] = [];
  return { spans, during: spansFrom(rootSpans({ samplingRatePerMillion, clock, random, record: (span) => void spans.push(span) })).during };
};

test("what is called of the runtime within a look at a pod is a part of that span, and tells the runtime so; another look is another trace", async () => {
  const { spans, during } = recorded(1_000_000);
  const told: unknown[] = [];
  const cri = tracedCri({ call: async (_method: string, _request: object, options?: { metadata?: object }) => { told.push(options?.metadata); if (told.length === 2) throw new Error("no"); return {}; } } as never, { during });
  const look = (name: string) => during("syncPod", { kind: 1, attributes: { "k8s.pod.name": name } }, async () => {
    await Promise.resolve();
    await cri.call("RuntimeService/ListContainers", {});
  });
  await Promise.all([look("a"), look("b").catch(() => undefined)]);
  const [first, second] = ["a", "b"].map((name) => spans.find(({ attributes }) => attributes["k8s.pod.name"] === name)!);
  const calls = spans.filter(({ kind }) => kind === 3);
  expect(calls.map(({ name, attributes, isError }) => [name, attributes["rpc.service"], attributes["rpc.method"], isError])).toEqual([false, true].map((failed) => ["runtime.v1.RuntimeService/ListContainers", "runtime.v1.RuntimeService", "ListContainers", failed]));
  expect(calls.map(({ traceId, parentSpanId }) => [traceId, parentSpanId])).toEqual([first, second].map((span) => [span!.traceId, span!.spanId]));
  expect([first!.isError, second!.isError, first!.parentSpanId]).toEqual([false, true, undefined]);
  expect(first!.traceId).not.toEqual(second!.traceId);
  expect(told[0]).toEqual({ traceparent: `00-${Buffer.from(calls[0]!.traceId).toString("hex")}-${Buffer.from(calls[0]!.spanId).toString("hex")}-01` });
});

test("a trace that is not recorded has no recorded parts", async () => {
  let begun = 0;
  const { during } = spansFrom(() => void begun++ as undefined);
  await during("syncPod", { kind: 1, attributes: {} }, async () => await during("call", { kind: 3, attributes: {} }, async (span) => expect(span).toBeUndefined()));
  expect(begun).toBe(1);
});

test("without the field of the configuration nothing is traced; with it spans are recorded, as many as it says", async () => {
  const deps = { instance: "n", env: {}, clock, random, log };
  expect(kubeletTracing({}, deps)).toEqual({ spans: noSpans, parts: [] });
  const recorded = async (samplingRatePerMillion?: number) => {
    const { spans, parts } = kubeletTracing({ tracing: { ...(samplingRatePerMillion === undefined ? {} : { samplingRatePerMillion }) } }, deps);
    return [parts.map(({ name }) => name), await spans.during("syncPod", { kind: 1, attributes: {} }, async (span) => span !== undefined)];
  };
  expect([await recorded(), await recorded(1_000_000)]).toEqual([[["traces"], false], [["traces"], true]]);
});

const KIND = "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n";
/** As upstream reads it: strictly. */
const WRONG = [
  [`${KIND}foo: bar\n`, 'unknown field "foo"'], [`${KIND}endpoint: a\nendpoint: b\n`, "endpoint"], [`${KIND}samplingRatePerMillion: "10"\n`, "samplingRatePerMillion"],
  [`${KIND}samplingRatePerMillion: -1\n`, "failed to validate tracing configuration: samplingRatePerMillion: Invalid value: -1: sampling rate must be positive"],
  [`${KIND}samplingRatePerMillion: 1000001\nendpoint: http://localhost:4317\n`, '[samplingRatePerMillion: Invalid value: 1000001: sampling rate per million must be less than or equal to one million, endpoint: Invalid value: "http://localhost:4317": unsupported scheme: http.  Options are none, dns, unix, or unix-abstract.  See https://github.com/grpc/grpc/blob/master/doc/naming.md]'],
  [`${KIND}endpoint: "dn%2s://localhost:4317"\n`, 'endpoint: Invalid value: "dn%2s://localhost:4317": parse "dn%2s://localhost:4317": first path segment in URL cannot contain colon'],
] as const;

test("a file that cannot be read is refused by its name, and a stray percent sign in the environment stays one", () => {
  const directory = mkdtempSync(join(tmpdir(), "tracing-")), path = join(directory, "tracing.yaml");
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const given = (env: Record<string, string> = {}) => tracingOf(apiServerArgs([`tracing-config-file=${path}`]), { instance: "n", env, clock, random, log });
  for (const [text, why] of [["a: [", "tracing.yaml: "], ["kind: Pod", 'no kind "Pod" is registered for version ""'], ...WRONG] as const) {
    writeFileSync(path, text);
    expect(given).toThrow(ConfigError);
    expect(given).toThrow(why);
  }
  writeFileSync(path, "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n");
  expect(given({ OTEL_RESOURCE_ATTRIBUTES: "share=100%" }).parts.map(({ name }) => name)).toEqual(["traces"]);
});

test("what seals and opens a value for a request is a part of its way to the store; what does so for nobody is no part of a trace", async () => {
  const spans: SpanData[] = [];
  const traces = tracer({ samplingRatePerMillion: 1_000_000, clock, random, record: (span) => void spans.push(span) });
  const through = (name: string, bytes: Buffer): Buffer => {
    traces.part(name, {})?.end();
    return bytes;
  };
  const provider: Provider = { prefix: "k8s:enc:test:v1:a:", seal: (plain) => through("TransformToStorage", plain), open: (sealed) => through("TransformFromStorage", sealed) };
  const beneath = await memoryStore(), list = beneath.list.bind(beneath);
  beneath.list = async (options) => {
    const listing = await list(options);
    return { ...listing, rows: listing.rows.map((row) => ({ ...row, value: { ...row.value } })) }; // as another process has written it
  };
  await using api = await apiServer({ tracer: traces, store: encryptedStore(beneath, () => [provider]) });
  const secrets = "/api/v1/namespaces/a/secrets";
  await api.ask("POST", secrets, { body: { metadata: { name: "s" } } });
  await api.ask("PUT", `${secrets}/s`, { body: { metadata: { name: "s" }, data: { a: "MQ==" } } });
  const { body } = await api.ask("GET", secrets);
  await api.ask("GET", secrets, { query: { resourceVersion: body.metadata.resourceVersion, resourceVersionMatch: "Exact" } });
  const parentOf = ({ parentSpanId }: SpanData) => spans.find(({ spanId }) => parentSpanId && Buffer.from(spanId).equals(parentSpanId))?.name;
  expect(spans.filter(({ name }) => name.startsWith("Transform")).map((span) => [span.name, parentOf(span)])).toEqual([["TransformToStorage", "Create etcd3"], ["TransformToStorage", "GuaranteedUpdate etcd3"], ["TransformFromStorage", "List"]]);
  expect(traces.part("outside", {})).toBeUndefined();
});
