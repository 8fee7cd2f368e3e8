/**
 * Where this process spends its time: JavaScriptCore's sampling profiler, in the form that `go tool pprof` reads.
 *
 *   const profiler = cpuProfiler();
 *   await profiler.profile(30_000, signal)      gzip of a perftools.profiles.Profile; undefined: somebody is profiling already
 *
 * Costs nothing until it is asked for. All threads of the engine's are one here: what is seen is JavaScript.
 *
 * API: https://github.com/google/pprof/blob/main/proto/profile.proto
 */
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Clock } from "../lifecycle/clock.ts";
import { intField, nest, textField } from "../protobuf/fields.ts";
import { BackwardWriter } from "../protobuf/wire.ts";

/** As Go's: a hundred samples a second. */
const PERIOD_US = 10_000;

export interface CpuProfiler { profile(ms: number, signal: AbortSignal): Promise<Uint8Array | undefined> }

/** As the inspector tells it: a tree of calls, and which of them ran at each sample. */
export interface SampledCalls {
  readonly nodes: readonly { readonly id: number; readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number }; readonly children?: readonly number[] | undefined }[];
  readonly samples?: readonly number[] | undefined;
  /** In microseconds. */
  readonly startTime: number;
  readonly endTime: number;
}

export function cpuProfiler(clock: Pick<Clock, "sleep">): CpuProfiler {
  let isBusy = false;
  return {
    async profile(ms, signal) {
      if (isBusy) return undefined;
      isBusy = true;
      try {
        return await promisify(gzip)(pprofOf(await sampled(() => clock.sleep(ms, signal))));
      } finally {
        isBusy = false;
      }
    },
  };
}

/** What ran while `wait` waited. */
async function sampled(wait: () => Promise<void>): Promise<SampledCalls> {
  const { Session } = await import("node:inspector/promises");
  const session = new Session();
  session.connect();
  try {
    await session.post("Profiler.enable");
    await session.post("Profiler.setSamplingInterval", { interval: PERIOD_US });
    await session.post("Profiler.start");
    await wait();
    return (await session.post("Profiler.stop")).profile;
  } finally {
    session.disconnect();
  }
}

/** Each stack that was seen, leaf first, with how often; each time stands for one period, as Go's do. The time since the sample before may be one in which nothing ran. */
export function pprofOf({ nodes, samples = [], startTime, endTime }: SampledCalls): Uint8Array {
  const stacks = stacksOf(nodes);
  const seen = new Map<number, number>();
  for (const id of samples) seen.set(id, (seen.get(id) ?? 0) + 1);
  const texts = new Texts();
  const [cpu, nanoseconds, count, sampleType] = [texts.at("cpu"), texts.at("nanoseconds"), texts.at("count"), texts.at("samples")];
  const writer = new BackwardWriter();
  const functions = nodes.map(({ id, callFrame: { functionName, url, lineNumber } }) => ({ id, name: texts.at(functionName || "(anonymous)"), file: texts.at(url), line: lineNumber + 1 }));
  // the last field first, and so within each
  intField(writer, 12, PERIOD_US * 1000);
  valueType(writer, 11, cpu, nanoseconds);
  intField(writer, 10, Math.round((endTime - startTime) * 1000));
  intField(writer, 9, BigInt(Math.round(startTime)) * 1000n);
  for (const text of texts.all.toReversed()) textField(writer, 6, text);
  for (const { id, name, file, line } of functions.toReversed())
    nest(writer, 5, () => {
      intField(writer, 5, line);
      intField(writer, 4, file);
      intField(writer, 3, name);
      intField(writer, 2, name);
      intField(writer, 1, id);
    });
  for (const { id, line } of functions.toReversed())
    nest(writer, 4, () => {
      nest(writer, 4, () => {
        intField(writer, 2, line);
        intField(writer, 1, id);
      });
      intField(writer, 1, id);
    });
  for (const [id, times] of [...seen].toReversed())
    nest(writer, 2, () => {
      for (const value of [times * PERIOD_US * 1000, times]) intField(writer, 2, value);
      for (const at of (stacks.get(id) ?? []).toReversed()) intField(writer, 1, at);
    });
  valueType(writer, 1, cpu, nanoseconds);
  valueType(writer, 1, sampleType, count);
  return writer.finish();
}

function valueType(writer: BackwardWriter, field: number, type: number, unit: number): void {
  nest(writer, field, () => {
    intField(writer, 2, unit);
    intField(writer, 1, type);
  });
}

/** By the node that ran: it and its callers, without the root of all. */
function stacksOf(nodes: SampledCalls["nodes"]): Map<number, readonly number[]> {
  const callers = new Map<number, number>();
  for (const { id, children = [] } of nodes) for (const child of children) callers.set(child, id);
  const stacks = new Map<number, readonly number[]>();
  for (const { id } of nodes) {
    const stack: number[] = [];
    for (let at: number | undefined = id; at !== undefined && callers.has(at); at = callers.get(at)) stack.push(at);
    stacks.set(id, stack);
  }
  return stacks;
}

/** The table of all texts; the first is "". */
class Texts {
  readonly all: string[] = [""];
  readonly #at = new Map<string, number>([["", 0]]);

  at(text: string): number {
    const known = this.#at.get(text);
    if (known !== undefined) return known;
    this.#at.set(text, this.all.length);
    return this.all.push(text) - 1;
  }
}
