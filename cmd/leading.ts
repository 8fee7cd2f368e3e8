/**
 * What only one server of a cluster may do at a time. A cluster of one just does it; servers that share a datastore agree by a Lease on who does.
 *
 * Who comes to lead makes everything anew, informers included: nothing is left of what it knew when it led before.
 */
import { type Informers, informerFactory } from "../core/client/informer-factory.ts";
import type { Client } from "../core/client/client.ts";
import type { Events } from "../core/client/events.ts";
import { type LeaseTimes, whileLeader } from "../core/client/leader.ts";
import type { Clock } from "../core/lifecycle/clock.ts";
import type { Random } from "../core/lifecycle/random.ts";
import { type Runnable, runAll } from "../core/lifecycle/run-all.ts";
import type { Log } from "../core/observe/log.ts";
import type { Metrics } from "../core/observe/metrics.ts";
import { reusableMetrics } from "../core/observe/reusable-metrics.ts";

export interface LeadingOptions {
  /** Other servers do the same work, too. */
  readonly isShared: boolean;
  readonly nodeName: string;
  /** In whose name the Lease is held, and what is to be done is followed. */
  readonly client: Client;
  /** Of the whole process: used where there is nobody to agree with. */
  readonly informers: Informers;
  /** Absent: nobody is told who leads. */
  readonly events?: Events | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Of the Lease; absent: 15 s, 10 s, 2 s. */
  readonly times?: LeaseTimes | undefined;
  /** Is told whether this server does what `name` stands for. */
  readonly leads?: ((name: string, does: boolean) => void) | undefined;
  /** Is told when the Lease of `name` had to be looked at anew to be renewed. */
  readonly lookedAnew?: ((name: string) => void) | undefined;
}

/** `name`: also the Lease's, in kube-system. */
export function leading({ isShared, nodeName, client, informers, events, clock, random, log, metrics, leads, lookedAnew, times }: LeadingOptions, name: string, make: (deps: { readonly informers: Informers; readonly metrics: Metrics }) => readonly Runnable[]): readonly Runnable[] {
  leads?.(name, !isShared);
  if (!isShared) return make({ informers, metrics });
  const reusable = reusableMetrics(metrics);
  const work: Runnable = {
    name,
    async run(signal, ready) {
      const own = informerFactory({ client, clock, random, log });
      ready();
      leads?.(name, true);
      try {
        await runAll([own, ...make({ informers: own, metrics: reusable })], signal);
      } finally {
        leads?.(name, false);
      }
    },
  };
  const options = { client, clock, random, log, lease: { namespace: "kube-system", name }, identity: `${nodeName}_${random.uuid()}`, events: events?.from({ component: name }), ...times, lookedAnew: () => lookedAnew?.(name) };
  return [whileLeader(options, work)];
}
