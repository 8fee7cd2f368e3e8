/**
 * A container runtime that is asked for images while archives are still being imported: one that is not there yet may be in them. Whoever asks for it waits until they all are,
 * rather than go to a registry, or give up, for what lies on the disk.
 */
import type { Cri } from "../cri/client.ts";
import type { ImageStatusResponse } from "../cri/gen/runtime.v1.ts";

/** `importing`: their end; undefined once all are imported. */
export function awaitingArchives(cri: Cri, importing: () => Promise<void> | undefined): Cri {
  const call: Cri["call"] = async (method, request, options) => {
    const ask = (): ReturnType<typeof cri.call<typeof method>> => cri.call(method, request, options);
    if (method === "ImageService/PullImage") await end(options?.signal);
    const answer = await ask();
    if (method !== "ImageService/ImageStatus" || (answer as ImageStatusResponse).image?.id || importing() === undefined) return answer;
    await end(options?.signal);
    return await ask();
  };

  async function end(signal: AbortSignal | undefined): Promise<void> {
    const ended = importing();
    if (ended === undefined) return;
    signal?.throwIfAborted();
    const { promise, reject } = Promise.withResolvers<never>();
    const quit = (): void => reject(signal!.reason);
    signal?.addEventListener("abort", quit, { once: true });
    await Promise.race([ended, promise]).finally(() => signal?.removeEventListener("abort", quit));
  }

  return { ...cri, call };
}
