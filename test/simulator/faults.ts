/** What goes wrong between a client and the API server, and when: requests that fail before or after they have been carried out, answers that are late, watches that end or have lost their place, and no way at all. */
import { internalError, resourceExpired, serviceUnavailable, statusError } from "../../core/api/meta/status-error.ts";
import type { ApiRequest, Transport } from "../../core/client/transport.ts";
import { aborted } from "../../core/lifecycle/aborted.ts";
import type { SeededRandom, SimulatedClock } from "./seeded.ts";

/** Probabilities for each request or watch; all zero in quiet times. */
export interface Weather {
  /** The request fails, and nothing has happened. */
  readonly refused: number;
  /** The request is carried out, and the answer lost. */
  readonly answerLost: number;
  readonly late: number;
  /** A watch ends with the next event. */
  readonly watchEnds: number;
  /** A watch begins with 410. */
  readonly watchExpired: number;
}

export const FAIR: Weather = { refused: 0, answerLost: 0, late: 0, watchEnds: 0, watchExpired: 0 };

/** Whether a client can reach the server, as the others see it. */
export class Line {
  #cut: AbortController | undefined;
  #healed = Promise.resolve();
  #heal: () => void = () => {};

  get isCut(): boolean { return this.#cut !== undefined; }
  /** Resolves when it is whole. */
  get whole(): Promise<void> { return this.#healed; }

  cut(): void {
    if (this.#cut) return;
    this.#cut = new AbortController();
    ({ promise: this.#healed, resolve: this.#heal } = Promise.withResolvers<void>());
  }

  heal(): void {
    this.#cut = undefined;
    this.#heal();
  }
}

const LATE_MS_MAX = 3_000;
/** How long a client without a way waits for an answer. */
const NO_WAY_MS = 10_000;

interface Options {
  readonly line: Line;
  readonly weather: () => Weather;
  readonly random: SeededRandom;
  readonly clock: SimulatedClock;
  /** A write was carried out, and its client does not know. */
  readonly onLost: (request: ApiRequest) => void;
}

export function faultyTransport(inner: Transport, { line, weather, random, clock, onLost }: Options): Transport {
  async function way(signal: AbortSignal): Promise<void> {
    if (!line.isCut) return;
    await clock.sleep(NO_WAY_MS, signal);
    signal.throwIfAborted();
    throw serviceUnavailable("the server cannot be reached");
  }

  return {
    async call(request) {
      await way(request.signal);
      const { refused, answerLost, late } = weather();
      if (random.chance(late)) await clock.sleep(random.integer(1, LATE_MS_MAX), request.signal);
      request.signal.throwIfAborted();
      if (random.chance(refused)) throw random.pick([() => serviceUnavailable("bad weather"), () => internalError(new Error("bad weather")), () => statusError({ code: 429, reason: "TooManyRequests", message: "bad weather", details: { retryAfterSeconds: 1 } })])();
      const lost = request.method !== "GET" && random.chance(answerLost);
      const answer = await inner.call(request);
      if (line.isCut || lost) {
        onLost(request);
        throw serviceUnavailable("the answer was lost");
      }
      return answer;
    },

    async *watch(request) {
      await way(request.signal);
      if (random.chance(weather().watchExpired)) throw resourceExpired("too old resource version: bad weather");
      for await (const event of inner.watch(request)) {
        if (line.isCut) await Promise.race([line.whole, aborted(request.signal)]); // nothing comes through; nobody is told
        if (line.isCut || random.chance(weather().watchEnds)) return;
        yield event;
      }
    },
  };
}
