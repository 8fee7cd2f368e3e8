/** Work on the same thing one after the other, on different things at once. */
import { until } from "./until.ts";

/** `signal`: ends waiting for one's turn, which is then given to the next; the work itself, once it has begun, is waited for. */
export type InTurn = <T>(key: string, work: () => Promise<T>, signal?: AbortSignal) => Promise<T>;

export function keyedTurns(): InTurn {
  const last = new Map<string, Promise<unknown>>();
  return async (key, work, signal) => {
    const before = last.get(key)?.catch(() => undefined); // whoever began it is told
    const mine = (async () => {
      await before;
      signal?.throwIfAborted();
      return await work();
    })();
    last.set(key, mine);
    void mine.catch(() => undefined).then(() => last.get(key) === mine && last.delete(key));
    if (before && signal) {
      let isMine = false;
      await until(signal, (done) => void before.then(() => { isMine = true; done(); }));
      if (!isMine) signal.throwIfAborted();
    }
    return await mine;
  };
}
