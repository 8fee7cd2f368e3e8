/** Resolves when what `begin` is given is called, or `signal` aborts; leaves nothing on the signal, which may live as long as the server. */
export async function until(signal: AbortSignal, begin: (done: () => void) => void): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const done = (): void => resolve();
  signal.addEventListener("abort", done, { once: true });
  begin(done);
  if (signal.aborted) done();
  await promise;
  signal.removeEventListener("abort", done);
}
