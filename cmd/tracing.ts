/** Traces of the API server, as a TracingConfiguration file asks for them, and of the kubelet, as its configuration does. */
import { parse } from "yaml";
import type { Clock } from "../core/lifecycle/clock.ts";
import type { Random } from "../core/lifecycle/random.ts";
import type { Runnable } from "../core/lifecycle/run-all.ts";
import type { Log } from "../core/observe/log.ts";
import { noSpans, type Spans, spansFrom } from "../core/observe/spans.ts";
import { OtlpExporter } from "../core/server/tracing/exporter.ts";
import { rootSpans, tracer, type Tracer } from "../core/server/tracing/tracer.ts";
import type { Configuration as KubeletConfiguration } from "../node/kubelet/configuration/decode.ts";
import type { ApiServerArgs } from "./apiserver-args.ts";
import { ConfigError, fromFile } from "./config/config.ts";

const VERSIONS = ["apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1beta1", "apiserver.config.k8s.io/v1alpha1"];
const ENDPOINT = "localhost:4317";
const PER_MILLION = 1_000_000;

interface TracingConfiguration { readonly apiVersion?: unknown; readonly kind?: unknown; readonly endpoint?: unknown; readonly samplingRatePerMillion?: unknown }
interface Deps { readonly instance: string; readonly env: Readonly<Record<string, string | undefined>>; readonly clock: Clock; readonly random: Random; readonly log: Log }

/** Throws ConfigError. */
export function tracingOf(args: ApiServerArgs, { instance, env, clock, random, log }: Deps): { readonly tracer: Tracer | undefined; readonly parts: readonly Runnable[] } {
  const path = args.text("tracing-config-file");
  if (path === undefined) return { tracer: undefined, parts: [] };
  const { endpoint, samplingRatePerMillion } = configurationIn(path);
  const resource = { "service.name": "apiserver", "service.instance.id": instance, ...pairs(env["OTEL_RESOURCE_ATTRIBUTES"]) };
  const exporter = new OtlpExporter({ endpoint, headers: pairs(env["OTEL_EXPORTER_OTLP_HEADERS"]), resource, clock, log });
  return { tracer: tracer({ samplingRatePerMillion, clock, random, record: (span) => exporter.record(span) }), parts: [exporter] };
}

function configurationIn(path: string): { readonly endpoint: string; readonly samplingRatePerMillion: number } {
  const setting = "kube-apiserver-arg tracing-config-file";
  const refuse = (why: string): never => { throw new ConfigError(`--${setting} ${path}: ${why}`); };
  const { apiVersion, kind, endpoint = ENDPOINT, samplingRatePerMillion = 0 } = (fromFile(setting, path, parse) ?? {}) as TracingConfiguration;
  if (!VERSIONS.includes(String(apiVersion)) || kind !== "TracingConfiguration") refuse(`must be a TracingConfiguration of ${VERSIONS[0]}`);
  if (typeof endpoint !== "string" || endpoint === "") return refuse("endpoint must be host:port");
  const rate = Number(samplingRatePerMillion);
  if (!Number.isInteger(rate) || rate < 0 || rate > PER_MILLION) refuse("sampling rate must be a whole number of at most 1000000");
  return { endpoint, samplingRatePerMillion: rate };
}

/** Those of the kubelet, as `tracing` of its configuration asks for them: looks at pods, and calls of the runtime within them. */
export function kubeletTracing(configuration: KubeletConfiguration, { instance, env, clock, random, log }: Deps): { readonly spans: Spans; readonly parts: readonly Runnable[] } {
  const { tracing } = configuration as { readonly tracing?: { readonly endpoint?: string; readonly samplingRatePerMillion?: number } };
  if (!tracing) return { spans: noSpans, parts: [] };
  const { endpoint = ENDPOINT, samplingRatePerMillion = 0 } = tracing;
  const resource = { "service.name": "kubelet", "service.instance.id": instance, ...pairs(env["OTEL_RESOURCE_ATTRIBUTES"]) };
  const exporter = new OtlpExporter({ endpoint, headers: pairs(env["OTEL_EXPORTER_OTLP_HEADERS"]), resource, clock, log });
  return { spans: spansFrom(rootSpans({ samplingRatePerMillion, clock, random, record: (span) => exporter.record(span) })), parts: [exporter] };
}

/** a=b,c=d, values percent-encoded. */
function pairs(text = ""): Record<string, string> {
  return Object.fromEntries(text.split(",").filter((one) => one.includes("=")).map((one) => [one.slice(0, one.indexOf("=")).trim(), decoded(one.slice(one.indexOf("=") + 1).trim())]));
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a stray percent sign
  }
}
