/**
 * Who is told of a change of a resource. Most watchers in a large cluster are nodes, each with eyes for its own pods and for single ConfigMaps and Secrets: telling each of
 * every change would cost changes times nodes. So a listener may name a topic, and hears only of objects that are, or were, of it.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/apiserver/pkg/storage/cacher/cacher.go (watchers by trigger and by scope)
 */
import type { Cached } from "./cached.ts";

export interface CacheEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  /** As it is now; for DELETED the last state, under the revision of the delete. */
  readonly entry: Cached;
  /** As it was before; absent for ADDED. */
  readonly previous: Cached | undefined;
}

/** One object, by its key; all under a prefix that ends in a slash, as a namespace's do; or those whose spec.nodeName is `value`. */
export interface Topic { readonly of: "key" | "prefix" | "node"; readonly value: string }

/** `bytes`: about how much JSON the version is that nobody needs any more but who is still to be told of this. */
export type Listener = (event: CacheEvent, bytes: number) => void;

const VALUES: Readonly<Record<Topic["of"], (entry: Cached) => string>> = {
  key: ({ key }) => key,
  prefix: ({ key }) => key.slice(0, key.lastIndexOf("/") + 1),
  node: ({ object }) => (object as { readonly spec?: { readonly nodeName?: string } }).spec?.nodeName ?? "",
};

export class Audience {
  readonly #general = new Set<Listener>();
  readonly #byTopic = new Map<Topic["of"], Map<string, Set<Listener>>>();

  /** Returns what takes the listener away again. */
  add(listener: Listener, topic: Topic | undefined): () => void {
    const own: Listener = (event, bytes) => listener(event, bytes); // one function may listen twice
    const listeners = topic ? this.#of(topic) : this.#general;
    listeners.add(own);
    return () => {
      if (listeners.delete(own) && topic && listeners.size === 0) this.#drop(topic);
    };
  }

  /** How many hear of every change of the object at `key`, or of every object that is made under it when it ends in a slash. Nodes, which hear of their own pods alone, are none of them. */
  listenersOf(key: string): number {
    const told = (of: Topic["of"], value: string): number => this.#byTopic.get(of)?.get(value)?.size ?? 0;
    return this.#general.size + told("prefix", key.slice(0, key.lastIndexOf("/") + 1)) + told("key", key) + told("node", "");
  }

  tell(event: CacheEvent, bytes: number): void {
    for (const listener of this.#general) listener(event, bytes);
    for (const [of, byValue] of this.#byTopic) {
      const now = VALUES[of](event.entry);
      const before = event.previous ? VALUES[of](event.previous) : now;
      for (const listener of byValue.get(now) ?? []) listener(event, bytes);
      if (before !== now) for (const listener of byValue.get(before) ?? []) listener(event, bytes);
    }
  }

  #of({ of, value }: Topic): Set<Listener> {
    const byValue = this.#byTopic.get(of) ?? new Map<string, Set<Listener>>();
    this.#byTopic.set(of, byValue);
    const listeners = byValue.get(value) ?? new Set<Listener>();
    byValue.set(value, listeners);
    return listeners;
  }

  #drop({ of, value }: Topic): void {
    const byValue = this.#byTopic.get(of);
    byValue?.delete(value);
    if (byValue?.size === 0) this.#byTopic.delete(of);
  }
}
