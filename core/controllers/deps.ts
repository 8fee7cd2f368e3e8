/** What controllers are given. Each takes only what it uses: `Pick<ControllerDeps, …>`. */
import type { Client } from "../client/client.ts";
import type { Events } from "../client/events.ts";
import type { Informers } from "../client/informer-factory.ts";
import type { Clock } from "../lifecycle/clock.ts";
import type { Random } from "../lifecycle/random.ts";
import type { Metrics } from "../observe/metrics.ts";

export interface ControllerDeps {
  readonly client: Client;
  readonly informers: Informers;
  readonly events: Events;
  readonly clock: Clock;
  readonly random: Random;
  /** Absent: nothing is counted. */
  readonly metrics?: Metrics | undefined;
}
