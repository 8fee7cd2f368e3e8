/**
 * A container runtime that is asked for images while archives are still being imported: one that is not there yet may be in the next. Whoever asks for it waits until it is there, or they
 * all are, rather than go to a registry, or give up, for what lies on the disk.
 */
import type { Cri } from "../cri/client.ts";
import type { ImageStatusResponse } from "../cri/gen/runtime.v1.ts";

/** `importing`: the end of the archive that is imported now; undefined once all are. */
export function awaitingArchives(cri: Cri, importing: () => Promise<void> | undefined): Cri {
  const call: Cri["call"] = async (method, request, options) => {
    const ask = (): ReturnType<typeof cri.call<typeof method>> => cri.call(method, request, options);
    if (method === "ImageService/PullImage") while (importing()) await unlessAborted(importing()!, options?.signal);
    let answer = await ask();
    while (method === "ImageService/ImageStatus" && !(answer as ImageStatusResponse).image?.id && importing()) {
      await unlessAborted(importing()!, options?.signal);
      answer = await ask();
    }
    return answer;
  };
  return { ...cri, call };
}

/** Throws the signal's reason if that comes first. */
async function unlessAborted(promise: Promise<void>, signal = new AbortController().signal): Promise<void> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const quit = (): void => aborted.reject(signal.reason);
  signal.addEventListener("abort", quit, { once: true });
  await Promise.race([promise, aborted.promise]).finally(() => signal.removeEventListener("abort", quit));
}
