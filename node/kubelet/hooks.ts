/** Runs postStart and preStop handlers. Source: kubernetes v1.36 pkg/kubelet/lifecycle/handlers.go */
import type { Container, EphemeralContainer, HTTPGetAction, LifecycleHandler, Pod } from "../../core/api/gen/core.v1.ts";
import { asDouble } from "../../core/api/meta/go-integer.ts";
import { goQuote } from "../../core/api/meta/go-quote.ts";
import type { EventRecorder } from "../../core/client/events.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Cri } from "../cri/client.ts";
import type { KubeletMetrics } from "./context.ts";
import { formatPod, podReference } from "./pod-spec.ts";
import { containerPort, hostPort, httpGetAction } from "./probes/http-get.ts";

export interface HookDeps { readonly cri: Pick<Cri, "call">; readonly clock: Clock; readonly events: EventRecorder; readonly version: string; readonly metrics: Pick<KubeletMetrics, "hookFellBack" | "hookSleptShort"> }

export interface HookRun {
  readonly pod: Pod;
  readonly container: Container | EphemeralContainer;
  readonly containerId: string;
  readonly podIp: string;
  readonly handler: LifecycleHandler;
  readonly timeoutMs: number;
}

/** Go's http.Client in the kubelet has none; the caller's limit is what counts. */
const HTTP_TIMEOUT_MS_MAX = 24 * 3600 * 1000;

/** Throws an Error with upstream's message when the handler fails. */
export async function runHook(deps: HookDeps, run: HookRun, signal: AbortSignal): Promise<void> {
  const { cri, clock } = deps;
  const { pod, container, containerId, handler } = run;
  const where = `for Container "${container.name}" in Pod "${formatPod(pod)}" failed - error:`;
  const { exec, httpGet, sleep } = handler;
  if (exec) {
    const command = exec.command ?? [];
    const what = `Exec lifecycle hook ([${command.join(" ")}]) ${where}`;
    const { exit_code = 0, stdout, stderr } = await cri.call("RuntimeService/ExecSync", { container_id: containerId, cmd: command }, { signal, timeoutMs: 0 }).catch((cause: Error) => {
      throw new Error(`${what} ${cause.message}, message: ""`, { cause });
    });
    if (exit_code !== 0) throw new Error(`${what} command '${command.join(" ")}' exited with ${exit_code}: ${text(stderr)}, message: ${goQuote(text(stdout) + text(stderr))}`);
  } else if (httpGet) {
    await httpHook(deps, run, httpGet, signal).catch((cause: Error) => {
      throw new Error(`HTTP lifecycle hook (${httpGet.path ?? ""}) ${where} ${cause.message}`, { cause });
    });
  } else if (sleep) {
    await clock.sleep(asDouble(sleep.seconds) * 1000, signal);
    if (!signal.aborted) return;
    deps.metrics.hookSleptShort();
    throw new Error(`Sleep lifecycle hook (${sleep.seconds}) ${where} container terminated before sleep hook finished`);
  } else throw new Error(`Cannot run handler: invalid handler: ${JSON.stringify(handler)}`);
}

/** Kubelets once asked over HTTP whatever the scheme: a server that was made for them is asked again so. */
async function httpHook({ clock, events, metrics, version }: HookDeps, { pod, container, podIp, timeoutMs }: HookRun, action: HTTPGetAction, signal: AbortSignal): Promise<void> {
  if (!action.host && podIp === "") throw new Error("failed to find networking container"); // the runtime knows of no address: one in the node's network must say which host is meant
  const get = async (how: HTTPGetAction): Promise<unknown> => await httpGetAction(how, container, { podIp, purpose: "lifecycle", version, timeoutMs: Math.min(timeoutMs, HTTP_TIMEOUT_MS_MAX), clock, signal });
  try {
    await get(action);
  } catch (error) {
    if (action.scheme !== "HTTPS" || !(error as Error).message.includes("server gave HTTP response to HTTPS client")) throw error;
    await get({ ...action, scheme: "HTTP", httpHeaders: (action.httpHeaders ?? []).filter(({ name }) => name.toLowerCase() !== "authorization") }).catch(() => { throw error; });
    metrics.hookFellBack();
    events.event(podReference(pod), "Warning", "LifecycleHTTPFallback", `request to HTTPS lifecycle hook ${hostPort(action.host || podIp, containerPort(action.port, container))} got HTTP response, retry with HTTP succeeded`);
  }
}

function text(bytes: Uint8Array | undefined): string {
  return Buffer.from(bytes ?? []).toString("utf8");
}
