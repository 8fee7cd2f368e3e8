/**
 * One informer for each resource and query, however many ask for it; started when first asked for.
 *
 *   const informers = informerFactory({ client, clock, random, log });   // a Runnable: all of them live within its run
 *   const pods = informers.of(PODS);
 *   const mine = informers.of(PODS, { fieldSelector: "spec.nodeName=node-1" });
 */
import type { ApiObject } from "../api/meta/object-meta.ts";
import { aborted } from "../lifecycle/aborted.ts";
import type { Clock } from "../lifecycle/clock.ts";
import type { Random } from "../lifecycle/random.ts";
import type { Runnable } from "../lifecycle/run-all.ts";
import type { Log } from "../observe/log.ts";
import type { Client, ResourceRef } from "./client.ts";
import type { Informer } from "./informer.ts";
import { type InformerQuery, watchedInformer } from "./watched-informer.ts";

export interface Informers {
  of<T extends ApiObject>(ref: ResourceRef<T>, query?: InformerQuery): Informer<T>;
  /** For resources that are no longer served: ends the informer of all its objects. Who still holds it keeps a copy that no longer changes. */
  stop(ref: ResourceRef): void;
}

interface Deps { readonly client: Client; readonly clock: Clock; readonly random: Random; readonly log: Log }
interface Member { readonly informer: Informer<ApiObject> & Runnable; readonly stop: AbortController; ended: Promise<void> | undefined }

export function informerFactory({ client, clock, random, log }: Deps): Informers & Runnable {
  const members = new Map<string, Member>();
  let life: AbortSignal | undefined; // set while running

  function start(member: Member, signal: AbortSignal): void {
    member.ended = member.informer.run(AbortSignal.any([signal, member.stop.signal]), () => {}).catch((error: unknown) => {
      log.error("informer failed", { informer: member.informer.name, error }); // a bug: list and watch errors are retried
    });
  }

  return {
    name: "informers",
    of<T extends ApiObject>(ref: ResourceRef<T>, query: InformerQuery = {}): Informer<T> {
      const id = idOf(ref, query);
      let member = members.get(id);
      if (member === undefined) {
        const informer = watchedInformer(client.resource(ref), { clock, random, log, query });
        member = { informer: informer as unknown as Member["informer"], stop: new AbortController(), ended: undefined };
        members.set(id, member);
        if (life !== undefined && !life.aborted) start(member, life);
      }
      return member.informer as unknown as Informer<T>;
    },
    stop(ref) {
      const id = idOf(ref, {});
      members.get(id)?.stop.abort();
      members.delete(id);
    },
    async run(signal, ready) {
      life = signal;
      for (const member of members.values()) if (member.ended === undefined) start(member, signal);
      ready();
      await aborted(signal);
      await Promise.all([...members.values()].map(({ ended }) => ended));
    },
  };
}

function idOf({ group, version, plural }: ResourceRef, { namespace = "", labelSelector = "", fieldSelector = "" }: InformerQuery): string {
  return [group, version, plural, namespace, labelSelector, fieldSelector].join("\n");
}
