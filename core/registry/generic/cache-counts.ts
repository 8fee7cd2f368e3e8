/**
 * What is counted of the cache of one resource: lists and watches that are served from it, and lists that go to the store instead, as those of pages do.
 *
 * Source: kubernetes v1.36 apiserver/pkg/storage/cacher/metrics/metrics.go, apiserver/pkg/storage/etcd3/metrics/metrics.go
 */
import { Observations } from "../../observe/metrics.ts";

const WAIT_BUCKETS = [0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3];

/** By which objects are found, as upstream names an index of a field; "": by nothing. */
type Index = "" | "f:spec.nodeName";

export class CacheCounts {
  /** Events of the store, since the start. */
  received = 0;
  /** Events that watchers, if there were any, were told of. */
  dispatched = 0;
  /** Objects and past events that watches began with. */
  initial = 0;
  /** Watches that were ended because nobody read what they had to say. */
  terminated = 0;
  /** Times an object could not be read as it is stored. */
  unreadable = 0;
  /** Times everything was read from the store. */
  loads = 0;
  /** Reads of the newest state, from the cache. */
  readonly consistentReads = { served: 0, failed: 0 };
  /** `fetched`: objects that were looked at; `returned`: that were answered. */
  readonly lists = { byIndex: new Map<Index, { count: number; fetched: number }>(), returned: 0 };
  readonly storeLists = { count: 0, fetched: 0, returned: 0 };
  #waits: Observations | undefined;

  list(index: Index, fetched: number, returned: number): void {
    let one = this.lists.byIndex.get(index);
    if (!one) this.lists.byIndex.set(index, (one = { count: 0, fetched: 0 }));
    one.count++;
    one.fetched += fetched;
    this.lists.returned += returned;
  }

  storeList(fetched: number, returned: number): void {
    this.storeLists.count++;
    this.storeLists.fetched += fetched;
    this.storeLists.returned += returned;
  }

  /** A read waited so long until the cache was as new as it asked for. `labels`: of this resource. */
  waited(ms: number, labels: { readonly group: string; readonly resource: string }): void { (this.#waits ??= new Observations(labels, WAIT_BUCKETS)).observe(ms / 1000); }

  get waits(): Observations | undefined { return this.#waits; }
}
