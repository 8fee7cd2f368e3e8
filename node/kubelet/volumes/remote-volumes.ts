/**
 * Volumes whose files are on another machine. One that does not answer is asked by a program of its own, which can be ended: the kernel lets whoever asks wait for
 * good, and with this process the whole node would.
 */
import type { Container, EphemeralContainer } from "../../../core/api/gen/core.v1.ts";
import { type Exec, ExecError } from "../../os/exec.ts";
import type { ReadyVolume } from "./ready-volume.ts";

const ANSWER_MS = 10_000;

/** Before places in them are bound. Throws an Error for the user. */
export async function subPathsAnswer(exec: Exec, { volumeMounts = [], name: container }: Container | EphemeralContainer, volumes: ReadonlyMap<string, ReadyVolume>, { signal, timeoutMs = ANSWER_MS }: { readonly signal: AbortSignal; readonly timeoutMs?: number }): Promise<void> {
  const asked = new Set(volumeMounts.filter(({ subPath, subPathExpr }) => subPath || subPathExpr).map(({ name }) => name));
  for (const name of asked) {
    const { isRemote = false, hostPath } = volumes.get(name) ?? {};
    if (!isRemote || hostPath === undefined) continue;
    await exec("stat", [hostPath], { timeoutMs, signal }).catch((cause: unknown) => {
      signal.throwIfAborted();
      if (cause instanceof ExecError && cause.code === "not-found") return; // Windows, where nothing is bound
      throw new Error(`failed to prepare subPath for volumeMount "${name}" of container "${container}": the volume does not answer`, { cause });
    });
  }
}
