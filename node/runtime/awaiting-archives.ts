/**
 * A container runtime that is asked for images while archives are still being imported: one that is not there yet may be in the next. Whoever asks for it waits until it is there, or they
 * all are, rather than go to a registry, or give up, for what lies on the disk.
 */
import { until } from "../../core/lifecycle/until.ts";
import type { Cri } from "../cri/client.ts";
import type { ImageStatusResponse } from "../cri/gen/runtime.v1.ts";

/** `importing`: the end of the archive that is imported now; undefined once all are. */
export function awaitingArchives(cri: Cri, importing: () => Promise<void> | undefined): Cri {
  const call: Cri["call"] = async (method, request, options) => {
    const ask = (): ReturnType<typeof cri.call<typeof method>> => cri.call(method, request, options);
    if (method === "ImageService/PullImage") while (importing()) await end(options?.signal);
    let answer = await ask();
    while (method === "ImageService/ImageStatus" && !(answer as ImageStatusResponse).image?.id && importing()) {
      await end(options?.signal);
      answer = await ask();
    }
    return answer;
  };

  /** Throws the signal's reason if that comes first. */
  async function end(signal = new AbortController().signal): Promise<void> {
    await until(signal, (done) => void importing()?.finally(done));
    signal.throwIfAborted();
  }

  return { ...cri, call };
}
