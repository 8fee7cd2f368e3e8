/**
 * Sends spans to a collector by OTLP over gRPC, in batches. Spans that nobody takes are lost: tracing must not become a burden.
 *
 * Source: go.opentelemetry.io/otel/sdk/trace batch_span_processor.go: its numbers
 */
import { Client, type ClientUnaryCall, credentials, Metadata } from "@grpc/grpc-js";
import { aborted } from "../../lifecycle/aborted.ts";
import type { Clock } from "../../lifecycle/clock.ts";
import type { Runnable } from "../../lifecycle/run-all.ts";
import "../../net/spent-connections.ts";
import type { Log } from "../../observe/log.ts";
import { encodeSpans, type ResourceAttributes } from "./otlp.ts";
import type { SpanData } from "./tracer.ts";

const BATCH_MS = 5_000;
const BATCH_MAX = 512;
const QUEUE_MAX = 2_048;
const EXPORT_MS = 30_000;
/** For what is left when the process ends: others end only after this. */
const LAST_MS = 5_000;
const METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

export interface ExporterOptions {
  /** host:port, without TLS, as upstream has it. */
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly resource: ResourceAttributes;
  readonly clock: Clock;
  readonly log: Log;
}

export class OtlpExporter implements Runnable {
  readonly name = "traces";
  readonly #options: ExporterOptions;
  #spans: SpanData[] = [];
  #wake: () => void = () => undefined;
  #isFailing = false;
  #call: ClientUnaryCall | undefined;
  #isOver = false;

  constructor(options: ExporterOptions) {
    this.#options = options;
  }

  record(span: SpanData): void {
    if (this.#spans.length >= QUEUE_MAX) return;
    this.#spans.push(span);
    if (this.#spans.length >= BATCH_MAX) this.#wake();
  }

  async run(signal: AbortSignal, ready: () => void): Promise<void> {
    const { endpoint, clock } = this.#options;
    const client = new Client(endpoint, credentials.createInsecure(), { "grpc.enable_http_proxy": 0 });
    const late = aborted(signal).then(() => clock.after(LAST_MS, () => {
      this.#isOver = true;
      this.#call?.cancel();
    }));
    ready();
    while (!signal.aborted) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        void clock.sleep(BATCH_MS, signal).then(resolve);
      });
      await this.#flush(client);
    }
    await this.#flush(client);
    (await late).cancel();
    client.close();
  }

  async #flush(client: Client): Promise<void> {
    const { clock, log, endpoint } = this.#options;
    while (this.#spans.length > 0 && !this.#isOver) {
      const batch = this.#spans.splice(0, BATCH_MAX);
      try {
        await this.#send(client, batch, clock.nowMs() + EXPORT_MS);
        this.#isFailing = false;
      } catch (error) {
        if (!this.#isFailing) log.warn("traces cannot be exported", { endpoint, spans: batch.length, error });
        this.#isFailing = true; // said once, until it works again
        return;
      }
    }
  }

  #send(client: Client, batch: readonly SpanData[], deadlineMs: number): Promise<void> {
    const { resource, headers } = this.#options;
    const metadata = new Metadata();
    for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
    return new Promise((resolve, reject) => {
      this.#call = client.makeUnaryRequest(METHOD, (value: Uint8Array) => Buffer.from(value), (bytes: Buffer) => bytes, encodeSpans(resource, batch), metadata, { deadline: deadlineMs }, (error) => {
        if (error) reject(error);
        else resolve();
      });
    });
  }
}
