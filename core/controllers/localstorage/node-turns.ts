/** So many requests at a time to each node: one that does not answer holds up its own volumes, and nobody else's. */
import type { ObjectKey } from "../../api/meta/object-meta.ts";
import type { AddKey, Watch } from "../controller.ts";

/** One of them may be the removal of a large directory, which takes a while. */
const AT_A_NODE = 2;

export class NodeTurns {
  readonly #underWay = new Map<string, number>(); // by node
  readonly #waiting = new Map<string, Set<ObjectKey>>();
  #wake: AddKey = () => {};

  /** Who has waited is woken, one for each that ends: who does not want it any more lets nobody else know. */
  readonly watch: Watch = {
    whenSynced: () => Promise.resolve(),
    subscribe: (add) => {
      this.#wake = add;
      return () => { this.#wake = () => {}; };
    },
  };

  /** What comes of `work`; undefined: it is not `key`'s turn yet. */
  async take<T>(node: string, key: ObjectKey, work: () => Promise<T>): Promise<{ readonly result: T } | undefined> {
    const underWay = this.#underWay.get(node) ?? 0;
    if (underWay >= AT_A_NODE) {
      this.#waiting.set(node, (this.#waiting.get(node) ?? new Set()).add(key));
      return undefined;
    }
    this.#underWay.set(node, underWay + 1);
    this.#forget(node, key);
    try {
      return { result: await work() };
    } finally {
      const left = this.#underWay.get(node)! - 1;
      if (left > 0) this.#underWay.set(node, left);
      else this.#underWay.delete(node);
      const [next] = this.#waiting.get(node) ?? [];
      if (next !== undefined) {
        this.#forget(node, next);
        this.#wake(next);
      }
    }
  }

  #forget(node: string, key: ObjectKey): void {
    const waiting = this.#waiting.get(node);
    if (waiting?.delete(key) && waiting.size === 0) this.#waiting.delete(node);
  }
}
