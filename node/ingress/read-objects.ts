/** Objects of one kind that are watched one by one, for as long as somebody needs what is in them: what was last read of each. */
import { type ApiObject, type ObjectKey, splitKey } from "../../core/api/meta/object-meta.ts";
import type { Client, ResourceRef } from "../../core/client/client.ts";
import { watchedInformer } from "../../core/client/watched-informer.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Random } from "../../core/lifecycle/random.ts";
import type { Log } from "../../core/observe/log.ts";

export interface ReadObjectsDeps { readonly client: Client; readonly clock: Clock; readonly random: Random; readonly log: Log }

interface Watched<V> { readonly stop: AbortController; readonly ended: Promise<void>; value: V | undefined }

export class ReadObjects<T extends ApiObject, V> {
  readonly #deps: ReadObjectsDeps;
  readonly #resource: ResourceRef<T>;
  readonly #read: (object: Readonly<T>) => V;
  readonly #watched = new Map<ObjectKey, Watched<V>>();

  /** `read` throws what is wrong with an object: then what it said before counts. */
  constructor(deps: ReadObjectsDeps, resource: ResourceRef<T>, read: (object: Readonly<T>) => V) {
    this.#deps = deps;
    this.#resource = resource;
    this.#read = read;
  }

  /** These and no others. */
  use(keys: ReadonlySet<ObjectKey>): void {
    for (const [key, { stop }] of this.#watched) {
      if (keys.has(key)) continue;
      stop.abort();
      this.#watched.delete(key);
    }
    for (const key of keys) if (!this.#watched.has(key)) this.#watch(key);
  }

  /** Undefined: it is not there, or has never made sense. */
  get(key: ObjectKey): V | undefined { return this.#watched.get(key)?.value; }

  async close(): Promise<void> {
    const all = [...this.#watched.values()];
    this.use(new Set());
    await Promise.all(all.map(({ ended }) => ended));
  }

  #watch(key: ObjectKey): void {
    const { client, clock, random, log } = this.#deps, { namespace, name } = splitKey(key);
    const informer = watchedInformer(client.resource(this.#resource), { clock, random, log, query: { namespace, fieldSelector: `metadata.name=${name}` } });
    const stop = new AbortController();
    const watched: Watched<V> = { stop, ended: informer.run(stop.signal, () => {}), value: undefined };
    informer.onChange(({ object, deleted }) => {
      if (deleted) return void (watched.value = undefined);
      try {
        watched.value = this.#read(object);
      } catch (error) {
        log.warn("what the ingress needs cannot be used", { kind: this.#resource.kind, namespace, name, error });
      }
    });
    this.#watched.set(key, watched);
  }
}
