/**
 * One probe of one container: what it does and what it says. Errors (it could not be done) are tried three times and are no verdict.
 * An answer that came in time is heard, also by a node so busy, or with so slow a processor, that it gets to it only afterwards.
 *
 * Source: kubernetes v1.36 pkg/kubelet/prober/prober.go, pkg/probe/{http,tcp,exec,grpc}
 */
import { connect } from "node:net";
import type { Container, EphemeralContainer, Pod, Probe } from "../../../core/api/gen/core.v1.ts";
import { formatDurationMs } from "../../../core/api/meta/duration.ts";
import { afterAwake, type Clock } from "../../../core/lifecycle/clock.ts";
import { type Cri, CriError } from "../../cri/client.ts";
import { checkGrpcHealth } from "../../cri/grpc-health.ts";
import { expandAll } from "../containers/expansion.ts";
import { formatPod } from "../pod-spec.ts";
import { containerPort, dialFault, hostPort, httpGetAction } from "./http-get.ts";

export interface Verdict { readonly result: "success" | "warning" | "failure"; readonly output: string }

export interface ProbeRun {
  readonly probe: Probe;
  readonly pod: Pod;
  readonly container: Container | EphemeralContainer;
  readonly containerId: string;
  readonly podIp: string;
}

export interface ProbeDeps { readonly cri: Pick<Cri, "call">; readonly clock: Clock; /** "1.36" */ readonly version: string }

/** It could not be done, but what there was of it counts as a failure, not as unknown. */
export class FailedProbeError extends Error { override readonly name = "FailedProbeError"; }

const TRIES = 3;
const OUTPUT_BYTES_MAX = 10 * 1024;
/** The runtime ends the command at the limit, counted from when it has started it, which may take a busy node long; we wait this much longer for it to say so. Source: pkg/kubelet/apis/config/v1beta1 RuntimeRequestTimeout */
const EXEC_OVERHEAD_MS = 120_000;

/** Throws an Error when the probe could not be made at all. */
export async function runProbe(deps: ProbeDeps, run: ProbeRun, signal: AbortSignal): Promise<Verdict> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await once(deps, run, signal);
    } catch (error) {
      if (attempt >= TRIES || signal.aborted) throw error;
    }
  }
}

async function once(deps: ProbeDeps, run: ProbeRun, signal: AbortSignal): Promise<Verdict> {
  const { probe, pod, container } = run;
  const timeoutMs = (probe.timeoutSeconds ?? 1) * 1000;
  if (probe.exec) return await execProbe(deps, run, timeoutMs, signal);
  if (probe.httpGet) return await httpProbe(deps, run, timeoutMs, signal);
  if (probe.tcpSocket) return await tcpProbe(deps, { host: probe.tcpSocket.host || run.podIp, port: containerPort(probe.tcpSocket.port, container) }, timeoutMs);
  if (!probe.grpc) throw new Error(`missing probe handler for ${formatPod(pod)}:${container.name}`);
  const health = await checkGrpcHealth({ host: run.podIp, port: probe.grpc.port, service: probe.grpc.service ?? "", timeoutMs, userAgent: `kube-probe/${deps.version}`, nowMs: deps.clock.nowMs });
  return { result: health.healthy ? "success" : "failure", output: health.message };
}

async function execProbe({ cri }: ProbeDeps, { probe, container, containerId }: ProbeRun, timeoutMs: number, signal: AbortSignal): Promise<Verdict> {
  const fixed = new Map((container.env ?? []).map(({ name, value = "" }) => [name, value])); // what comes from elsewhere is not looked up for a probe: it is empty
  const command = expandAll(probe.exec?.command, (name) => fixed.get(name));
  try {
    const call = { signal, timeoutMs: timeoutMs + EXEC_OVERHEAD_MS, waitForReady: false }; // a runtime that is just not there says nothing of the container
    const { exit_code = 0, stdout, stderr } = await cri.call("RuntimeService/ExecSync", { container_id: containerId, cmd: command, timeout: timeoutMs / 1000 }, call);
    const output = Buffer.concat([stdout ?? new Uint8Array(), stderr ?? new Uint8Array()]).subarray(0, OUTPUT_BYTES_MAX).toString("utf8");
    return { result: exit_code === 0 ? "success" : "failure", output };
  } catch (error) {
    if (error instanceof CriError && error.code === "DeadlineExceeded") return { result: "failure", output: `command timed out: "${command.join(" ")}" timed out after ${formatDurationMs(timeoutMs)}` };
    throw error;
  }
}

async function httpProbe({ clock, version }: ProbeDeps, { probe, container, podIp }: ProbeRun, timeoutMs: number, signal: AbortSignal): Promise<Verdict> {
  containerPort(probe.httpGet!.port, container); // a port nobody knows is an error, not a verdict
  const answer = await httpGetAction(probe.httpGet!, container, { podIp, purpose: "probe", version, timeoutMs, clock, signal }).catch((error: Error) => error);
  if (answer instanceof Error) return { result: "failure", output: answer.message };
  const { status, body, bodyFault } = answer;
  if (bodyFault !== undefined) throw new FailedProbeError(bodyFault);
  if (status >= 300 && status < 400) return { result: "warning", output: `Probe terminated redirects, Response body: ${body}` };
  if (status >= 200 && status < 300) return { result: "success", output: body };
  return { result: "failure", output: `HTTP probe failed with statuscode: ${status}` };
}

async function tcpProbe({ clock }: ProbeDeps, { host, port }: { readonly host: string; readonly port: number }, timeoutMs: number): Promise<Verdict> {
  const { promise, resolve } = Promise.withResolvers<Verdict>();
  const socket = connect({ host, port }, () => resolve({ result: "success", output: "" }));
  socket.on("error", (error: NodeJS.ErrnoException) => resolve({ result: "failure", output: dialFault(error, host, port) }));
  const timer = afterAwake(clock, timeoutMs, () => resolve({ result: "failure", output: `dial tcp ${hostPort(host, port)}: i/o timeout` }));
  return await promise.finally(() => {
    timer.cancel();
    socket.destroy();
  });
}
