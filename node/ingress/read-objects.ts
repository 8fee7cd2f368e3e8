/**
 * Objects of one kind that are watched one by one, for as long as somebody needs what is in them: what was last read of each. Of thousands that are needed at once a few begin at a time, then others have
 * their turn; and nothing is made of an object that nobody asks for.
 */
import { type ApiObject, type ObjectKey, splitKey } from "../../core/api/meta/object-meta.ts";
import type { Client, ResourceRef } from "../../core/client/client.ts";
import { watchedInformer } from "../../core/client/watched-informer.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Random } from "../../core/lifecycle/random.ts";
import type { Log } from "../../core/observe/log.ts";

export interface ReadObjectsDeps { readonly client: Client; readonly clock: Clock; readonly random: Random; readonly log: Log }

interface Watched<T, V> {
  readonly stop: AbortController;
  readonly ended: Promise<void>;
  /** Has come since the value was made. */
  unread: Readonly<T> | undefined;
  value: V | undefined;
}

/** Watches that begin before others have their turn. */
const BEGIN_MAX = 10;

export class ReadObjects<T extends ApiObject, V> {
  readonly #deps: ReadObjectsDeps;
  readonly #resource: ResourceRef<T>;
  readonly #read: (object: Readonly<T>) => V;
  readonly #watched = new Map<ObjectKey, Watched<T, V>>();
  #needed: ReadonlySet<ObjectKey> = new Set();
  #isBeginning = false;
  #begun: Promise<void> = Promise.resolve();

  /** `read` throws what is wrong with an object: then what it said before counts. */
  constructor(deps: ReadObjectsDeps, resource: ResourceRef<T>, read: (object: Readonly<T>) => V) {
    this.#deps = deps;
    this.#resource = resource;
    this.#read = read;
  }

  /** These and no others. */
  use(keys: ReadonlySet<ObjectKey>): void {
    this.#needed = keys;
    for (const [key, { stop }] of this.#watched) {
      if (keys.has(key)) continue;
      stop.abort();
      this.#watched.delete(key);
    }
    if (!this.#isBeginning) this.#begun = this.#begin();
  }

  /** Undefined: it is not there, or has never made sense. */
  get(key: ObjectKey): V | undefined {
    const watched = this.#watched.get(key), object = watched?.unread;
    if (!watched || !object) return watched?.value;
    watched.unread = undefined;
    try {
      watched.value = this.#read(object);
    } catch (error) {
      this.#deps.log.warn("what the ingress needs cannot be used", { kind: this.#resource.kind, ...splitKey(key), error });
    }
    return watched.value;
  }

  async close(): Promise<void> {
    const all = [...this.#watched.values()];
    this.use(new Set());
    await Promise.all([this.#begun, ...all.map(({ ended }) => ended)]);
  }

  async #begin(): Promise<void> {
    this.#isBeginning = true;
    for (let needed: ReadonlySet<ObjectKey> | undefined; needed !== this.#needed; ) { // others may be by now
      needed = this.#needed;
      let begun = 0;
      for (const key of needed) {
        if (this.#watched.has(key)) continue;
        if (begun++ === BEGIN_MAX) {
          begun = 1;
          await new Promise<void>((resolve) => void setImmediate(resolve));
          if (needed !== this.#needed) break;
        }
        this.#watch(key);
      }
    }
    this.#isBeginning = false;
  }

  #watch(key: ObjectKey): void {
    const { client, ...deps } = this.#deps, { namespace, name } = splitKey(key);
    const informer = watchedInformer(client.resource(this.#resource), { ...deps, query: { namespace, fieldSelector: `metadata.name=${name}` } });
    const stop = new AbortController();
    const watched: Watched<T, V> = { stop, ended: informer.run(stop.signal, () => {}), unread: undefined, value: undefined };
    informer.onChange(({ object, deleted }) => {
      watched.unread = deleted ? undefined : object;
      if (deleted) watched.value = undefined;
    });
    this.#watched.set(key, watched);
  }
}
