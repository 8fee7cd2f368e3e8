/** A cluster of simulated nodes while a story is told of it: what is asked of it, whether or not it can answer, and what was. */
import type { DaemonSet, Deployment, StatefulSet } from "../../core/api/gen/apps.v1.ts";
import type { ApiObject, NewObject } from "../../core/api/meta/object-meta.ts";
import { StatusError } from "../../core/api/meta/status-error.ts";
import type { Client, ResourceRef } from "../../core/client/client.ts";
import type { SeededRandom } from "./seeded.ts";
import type { SimulatedCluster } from "./cluster.ts";
import type { Invariants } from "./invariants.ts";
import { Workloads } from "./workloads.ts";

const { signal } = new AbortController();

export class Scene {
  readonly cluster: SimulatedCluster;
  readonly invariants: Invariants;
  readonly random: SeededRandom;
  readonly workloads: Workloads;
  /** What was done, and when. */
  readonly story: string[] = [];

  constructor(cluster: SimulatedCluster, invariants: Invariants) {
    this.cluster = cluster;
    this.invariants = invariants;
    this.random = cluster.random.fork();
    this.workloads = new Workloads(this.random);
  }

  deployments(): Readonly<Deployment>[] { return this.invariants.all<Deployment>("/registry/apps/deployments/"); }
  statefulSet(): Readonly<StatefulSet> { return this.invariants.all<StatefulSet>("/registry/apps/statefulsets/")[0]!; }
  daemonSet(): Readonly<DaemonSet> { return this.invariants.all<DaemonSet>("/registry/apps/daemonsets/")[0]!; }

  tell(text: string): void {
    this.story.push(`${(this.cluster.clock.uptimeMs() / 1000).toFixed(0)} s: ${text}`);
  }

  /** A request of the story's: whether it works is the weather's business. Time passes until it has been answered. */
  async attempt(what: string, request: (client: Client, signal: AbortSignal) => Promise<unknown>): Promise<void> {
    this.tell(what);
    const { client, clock, failures } = this.cluster;
    let done = false;
    request(client, signal).catch((error: unknown) => { if (!(error instanceof StatusError) && !String(error).includes("down")) throw error; }).finally(() => { done = true; }).catch((error: unknown) => failures.push(error));
    for (let i = 0; i < 100 && !done; i++) await clock.run(10);
  }

  async change<T extends ApiObject>(ref: ResourceRef<T>, object: Readonly<T>, patch: object): Promise<void> {
    await this.attempt(`${ref.plural} ${object.metadata.name}: ${JSON.stringify(patch)}`, (client) => client.resource(ref).patch(object, "application/merge-patch+json", patch, { signal }));
  }

  async create<T extends ApiObject>(ref: ResourceRef<T>, object: unknown): Promise<void> {
    await this.attempt(`${ref.plural} ${(object as ApiObject).metadata.name} is made`, (client) => client.resource(ref).create(object as NewObject<T>, { signal }));
  }
}
