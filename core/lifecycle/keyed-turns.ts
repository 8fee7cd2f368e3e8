/** Work on the same thing one after the other, on different things at once. */

export type InTurn = <T>(key: string, work: () => Promise<T>) => Promise<T>;

export function keyedTurns(): InTurn {
  const last = new Map<string, Promise<unknown>>();
  return async (key, work) => {
    const before = last.get(key);
    const mine = (async () => {
      await before?.catch(() => undefined); // whoever began it is told
      return await work();
    })();
    last.set(key, mine);
    try {
      return await mine;
    } finally {
      if (last.get(key) === mine) last.delete(key);
    }
  };
}
