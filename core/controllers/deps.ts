/** What controllers are given. Each takes only what it uses: `Pick<ControllerDeps, …>`. */
import type { PodTemplateSpec } from "../api/gen/core.v1.ts";
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
  /** Feature gates that are off by default and were switched on. */
  readonly gates?: ReadonlySet<string> | undefined;
  /** Absent: templates are as complete as they will ever be. */
  readonly complete?: CompleteTemplate | undefined;
}

/**
 * A template with the defaults that this version of the API server gives. One that was stored by an older version may have fewer, and is still the same to those whose pods it is of:
 * what is new in the server rolls nobody's pods.
 */
export type CompleteTemplate = (template: Readonly<PodTemplateSpec>) => Readonly<PodTemplateSpec>;
