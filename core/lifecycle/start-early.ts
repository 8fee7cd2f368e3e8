/**
 * A part that takes long to become ready, begun before those it does not need:
 *
 *   const [begun, ready] = startEarly(containerRuntime);
 *   await runAll([begun, ...controlPlane, ready, kubelet], signal);
 *
 * `begun` is the part's whole life but is ready at once; `ready` is where the parts after it wait.
 */
import { aborted } from "./aborted.ts";
import type { Runnable } from "./run-all.ts";

export function startEarly(part: Runnable): readonly [begun: Runnable, ready: Runnable] {
  const isReady = Promise.withResolvers<void>();
  const begun: Runnable = {
    name: part.name,
    run(signal, ready) {
      ready();
      return part.run(signal, isReady.resolve);
    },
  };
  const wait: Runnable = {
    name: `${part.name} is ready`,
    async run(signal, ready) {
      await Promise.race([isReady.promise, aborted(signal)]);
      ready();
      await aborted(signal);
    },
  };
  return [begun, wait];
}
