/**
 * What the container runtime says of itself, looked at every five seconds, and what of that makes the node not ready. One that is started anew is soon back: until it has not
 * answered for a while, it is as it was.
 *
 * Source: kubernetes v1.36 pkg/kubelet/runtime.go, pkg/kubelet/kubelet.go (updateRuntimeUp)
 */
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Runnable } from "../../../core/lifecycle/run-all.ts";
import type { Cri } from "../../cri/client.ts";
import type { RuntimeCondition, StatusResponse, VersionResponse } from "../../cri/gen/runtime.v1.ts";
import { SHUTTING_DOWN } from "../shutdown/shutdown.ts";

export interface RuntimeStateDeps {
  readonly cri: Cri;
  readonly clock: Clock;
  /** Since when it has told nothing of its containers. */
  readonly runtimeSilentMs: () => number;
  readonly runtimeSilentMsMax: number;
  /** What is behind it that the runtime has no network. */
  readonly networkProblem?: (() => string | undefined) | undefined;
  readonly shuttingDown?: (() => boolean) | undefined;
}

const CHECK_MS = 5_000;
/** Source: maxWaitForContainerRuntime */
const SILENT_MS_MAX = 30_000;
/** A node that starts becomes ready as soon as its network is there, not at the next regular look. */
const STARTING_CHECK_MS = 100;
const STARTING_MS = 60_000;

export class RuntimeState implements Runnable {
  readonly name = "runtime-check";
  readonly #deps: RuntimeStateDeps;
  readonly #onChange: () => void;
  #version: VersionResponse | undefined;
  #status: StatusResponse | undefined;
  #answers = false; // when it was asked last
  #readyMs: number | undefined; // when it was last, by uptime
  #notReady: string | undefined; // why, as it said last

  /** `onChange`: its problems are others now. */
  constructor(deps: RuntimeStateDeps, onChange: () => void) {
    this.#deps = deps;
    this.#onChange = onChange;
  }

  /** Undefined: it does not answer. */
  get version(): VersionResponse | undefined { return this.#version; }
  /** As it was last; undefined: it has never answered. */
  get status(): StatusResponse | undefined { return this.#status; }
  get isUp(): boolean { return this.#answers && this.#notReady === undefined; }

  networkProblem(): string | undefined {
    const condition = this.#condition("NetworkReady");
    const why = this.#deps.networkProblem?.();
    return condition?.status ? undefined : `container runtime network not ready: ${describe("NetworkReady", condition)}${why === undefined ? "" : `: ${why}`}`;
  }

  runtimeProblem(): string | undefined {
    const all = this.#runtimeProblems();
    return all.length > 1 ? `[${all.join(", ")}]` : all[0];
  }

  #runtimeProblems(): string[] {
    return [this.#silence(), this.#unheardOf(), this.#notReady].flatMap((problem) => problem ?? []);
  }

  #silence(): string | undefined {
    if (this.#readyMs === undefined) return "container runtime status check may not have completed yet";
    return this.#deps.clock.uptimeMs() - this.#readyMs >= SILENT_MS_MAX ? "container runtime is down" : undefined;
  }

  /** What becomes of its containers. */
  #unheardOf(): string | undefined {
    const { runtimeSilentMsMax } = this.#deps;
    const silentMs = this.#deps.runtimeSilentMs();
    return silentMs > runtimeSilentMsMax ? `PLEG is not healthy: pleg was last seen active ${Math.round(silentMs / 1000)}s ago; threshold is ${runtimeSilentMsMax / 60_000}m0s` : undefined;
  }

  /** Why the node is not ready. */
  problems(): string[] {
    return [...this.#runtimeProblems(), this.#status ? this.networkProblem() : undefined, this.#deps.shuttingDown?.() ? SHUTTING_DOWN : undefined].flatMap((problem) => problem ?? []);
  }

  async run(signal: AbortSignal, ready: () => void): Promise<void> {
    const { clock } = this.#deps;
    const startMs = clock.uptimeMs();
    while (!signal.aborted) {
      const before = this.problems().join();
      await this.#check(signal);
      if (this.problems().join() !== before) this.#onChange();
      ready(); // the first answer, good or bad, is in
      const starting = this.problems().length > 0 && clock.uptimeMs() - startMs < STARTING_MS;
      await clock.sleep(starting ? STARTING_CHECK_MS : CHECK_MS, signal);
    }
  }

  async #check(signal: AbortSignal): Promise<void> {
    const { cri, clock } = this.#deps;
    try {
      this.#version ??= await cri.call("RuntimeService/Version", {}, { signal, timeoutMs: CHECK_MS });
      this.#status = await cri.call("RuntimeService/Status", {}, { signal, timeoutMs: CHECK_MS });
      const condition = this.#condition("RuntimeReady");
      this.#notReady = condition?.status ? undefined : `container runtime not ready: ${describe("RuntimeReady", condition)}`;
      if (this.#notReady === undefined) this.#readyMs = clock.uptimeMs();
      this.#answers = true;
    } catch {
      this.#version = undefined; // it may come back as another one
      this.#answers = false;
    }
  }

  #condition(wanted: string): RuntimeCondition | undefined { return this.#status?.status?.conditions?.find(({ type }) => type === wanted); }
}

function describe(type: string, condition: RuntimeCondition | undefined): string {
  return `${type}=${condition?.status ?? false} reason:${condition?.reason ?? ""} message:${condition?.message ?? ""}`;
}
