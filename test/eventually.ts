/** Asks until the answer is there; throws after `timeoutMs`, because of what went wrong last. Tests state what must become true, not when. */
export async function eventually<T>(what: string, ask: () => Promise<T | undefined | false>, timeoutMs = 60_000): Promise<T> {
  const endMs = performance.now() + timeoutMs;
  let last: unknown;
  while (performance.now() < endMs) {
    try {
      const answer = await ask();
      if (answer !== undefined && answer !== false) return answer;
    } catch (error) {
      last = error;
    }
    await Bun.sleep(PERIOD_MS);
  }
  throw new Error(`did not become true: ${what}`, { cause: last });
}

const PERIOD_MS = 200;
