/** Runs controllers over a fake API for the length of a test. */
import { eventWriter, type Events } from "../core/client/events.ts";
import { informerFactory, type Informers } from "../core/client/informer-factory.ts";
import type { Client } from "../core/client/client.ts";
import type { Controller } from "../core/controllers/controller.ts";
import { runController } from "../core/controllers/run-controller.ts";
import { type Clock, systemClock } from "../core/lifecycle/clock.ts";
import { type Random, systemRandom } from "../core/lifecycle/random.ts";
import type { Runnable } from "../core/lifecycle/run-all.ts";
import type { Log } from "../core/observe/log.ts";
import { silentLog } from "../core/observe/log.ts";
import { type FakeApi, fakeApi } from "./fake-api.ts";

export interface TestDeps { readonly client: Client; readonly informers: Informers; readonly events: Events; readonly clock: Clock; readonly random: Random; readonly log: Log; readonly signal: AbortSignal }

export async function withControllers(
  make: (deps: TestDeps) => readonly (Controller | Runnable)[],
  body: (api: FakeApi, call: { readonly signal: AbortSignal }) => Promise<void>,
  { clock = systemClock, log = silentLog, api = fakeApi({ clock }) }: { readonly clock?: Clock; readonly log?: Log; readonly api?: FakeApi } = {},
): Promise<void> {
  const stop = new AbortController();
  const { signal } = stop;
  const { client } = api;
  const random = systemRandom;
  const informers = informerFactory({ client, clock, random, log });
  const events = eventWriter({ client, clock, random, log });
  const parts = make({ client, informers, events, clock, random, log, signal }).map((part) => ("run" in part ? part : runController(part, { clock, log })));
  const lives = [informers, events, ...parts].map((part) => part.run(signal, () => {}));
  try {
    await body(api, { signal });
  } finally {
    stop.abort();
    await Promise.all(lives);
  }
}

/** A log for the eyes of whoever debugs a test. */
const loudLog: Log = {
  debug() {},
  info: (message, fields) => void process.stderr.write(`${message} ${Bun.inspect(fields)}\n`),
  warn: (message, fields) => void process.stderr.write(`${message} ${Bun.inspect(fields)}\n`),
  error: (message, fields) => void process.stderr.write(`${message} ${Bun.inspect(fields)}\n`),
  with: () => loudLog,
};
