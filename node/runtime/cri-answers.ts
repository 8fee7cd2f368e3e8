/**
 * containerd that starts serves CRI before CRI has found its sandboxes and containers again, and has it refuse all calls until then. That is part of every start and nothing to tell of.
 *
 * Source: containerd v2.1 internal/cri/instrument/instrumented_service.go (checkInitialized)
 */
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Cri } from "../cri/client.ts";
import { RpcError } from "../cri/rpc-client.ts";

const LOOK_PERIOD_MS = 100;

interface Deps { readonly cri: Pick<Cri, "call">; readonly clock: Pick<Clock, "sleep"> }

/** Throws what it refuses for another reason, and, when `signal` aborts, what it said last. */
export async function untilCriAnswers({ cri, clock }: Deps, signal: AbortSignal): Promise<void> {
  for (;;) {
    try {
      await cri.call("RuntimeService/Version", {}, { signal, timeoutMs: 0 });
      return;
    } catch (error) {
      if (!(error instanceof RpcError) || error.code !== "Unavailable" || signal.aborted) throw error;
      await clock.sleep(LOOK_PERIOD_MS, signal);
      if (signal.aborted) throw error;
    }
  }
}
