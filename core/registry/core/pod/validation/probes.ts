/** Probes, lifecycle hooks and the actions they run. Source: kubernetes v1.36 pkg/apis/core/validation/validation.go validateProbe, validateHandler, validateLifecycle */
import { child, type FieldError, forbidden, invalid, notSupported, required } from "../../../../api/meta/field-error.ts";
import type { HTTPGetAction, Lifecycle, LifecycleHandler, PodOS, Probe } from "../../../../api/gen/core.v1.ts";
import type { IntOrString } from "../../../../api/meta/int-or-string.ts";
import { httpHeaderName, portName, portNumber } from "../../../../api/meta/names.ts";
import { nonNegative, problems } from "../../checks/values.ts";

type Handler = Partial<Pick<Probe, "exec" | "httpGet" | "tcpSocket" | "grpc"> & Pick<LifecycleHandler, "sleep">>;

const STOP_SIGNALS_WINDOWS = ["SIGKILL", "SIGTERM"];
const STOP_SIGNALS_LINUX: readonly string[] = [
  "ABRT", "ALRM", "BUS", "CHLD", "CLD", "CONT", "FPE", "HUP", "ILL", "INT", "IO", "IOT", "KILL", "PIPE", "POLL", "PROF", "PWR", "QUIT", "RTMAX",
  ...signals("RTMAX-", 14), "RTMIN", ...signals("RTMIN+", 15), "SEGV", "STKFLT", "STOP", "SYS", "TERM", "TRAP", "TSTP", "TTIN", "TTOU", "URG", "USR1", "USR2",
  "VTALRM", "WINCH", "XCPU", "XFSZ",
].map((name) => `SIG${name}`).sort();

function signals(prefix: string, count: number): string[] { return Array.from({ length: count }, (_, i) => `${prefix}${i + 1}`); }

export function* validateProbes(path: string, { livenessProbe, readinessProbe, startupProbe }: Pick<ProbeHolder, "livenessProbe" | "readinessProbe" | "startupProbe">, graceSeconds: number | undefined): Iterable<FieldError> {
  if (livenessProbe) yield* validateOnceProbe(child(path, "livenessProbe"), livenessProbe, graceSeconds);
  if (readinessProbe) {
    const at = child(path, "readinessProbe");
    yield* validateProbe(at, readinessProbe, graceSeconds);
    if (readinessProbe.terminationGracePeriodSeconds !== undefined)
      yield invalid(child(at, "terminationGracePeriodSeconds"), readinessProbe.terminationGracePeriodSeconds, "must not be set for readinessProbes");
  }
  if (startupProbe) yield* validateOnceProbe(child(path, "startupProbe"), startupProbe, graceSeconds);
}

interface ProbeHolder { readonly livenessProbe?: Probe | undefined; readonly readinessProbe?: Probe | undefined; readonly startupProbe?: Probe | undefined }

/** One success is enough: there is nothing to become healthy for. */
function* validateOnceProbe(path: string, probe: Probe, graceSeconds: number | undefined): Iterable<FieldError> {
  yield* validateProbe(path, probe, graceSeconds);
  if (probe.successThreshold !== 1) yield invalid(child(path, "successThreshold"), probe.successThreshold ?? 0, "must be 1");
}

function* validateProbe(path: string, probe: Probe, graceSeconds: number | undefined): Iterable<FieldError> {
  const { exec, httpGet, tcpSocket, grpc, terminationGracePeriodSeconds: grace } = probe;
  yield* validateHandler(path, { exec, httpGet, tcpSocket, grpc }, graceSeconds);
  for (const field of ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"] as const)
    yield* nonNegative(child(path, field), probe[field]);
  if (grace !== undefined && grace <= 0) yield invalid(child(path, "terminationGracePeriodSeconds"), grace, "must be greater than 0");
}

export function* validateLifecycle(path: string, { postStart, preStop, stopSignal }: Lifecycle, graceSeconds: number | undefined, os: PodOS | undefined): Iterable<FieldError> {
  for (const [field, handler] of [["postStart", postStart], ["preStop", preStop]] as const) {
    if (!handler) continue;
    const { exec, httpGet, tcpSocket, sleep } = handler;
    yield* validateHandler(child(path, field), { exec, httpGet, tcpSocket, sleep }, graceSeconds);
  }
  if (stopSignal === undefined) return;
  const at = child(path, "stopSignal");
  if (!os) yield forbidden(at, "may not be set for containers with empty `spec.os.name`");
  else {
    const supported = os.name === "windows" ? STOP_SIGNALS_WINDOWS : os.name === "linux" ? STOP_SIGNALS_LINUX : undefined;
    if (supported && !supported.includes(stopSignal)) yield notSupported(at, stopSignal, supported);
  }
}

function* validateHandler(path: string, handler: Handler, graceSeconds: number | undefined): Iterable<FieldError> {
  const { exec, httpGet, tcpSocket, grpc, sleep } = handler;
  const checks: [field: string, errors: Iterable<FieldError>][] = [];
  if (exec) checks.push(["exec", (exec.command ?? []).length > 0 ? [] : [required(child(path, "exec", "command"))]]);
  if (httpGet) checks.push(["httpGet", validateHttpGet(child(path, "httpGet"), httpGet)]);
  if (tcpSocket) checks.push(["tcpSocket", validatePort(child(path, "tcpSocket", "port"), tcpSocket.port)]);
  if (grpc) checks.push(["grpc", validatePort(child(path, "grpc", "port"), grpc.port)]);
  if (sleep) checks.push(["sleep", validateSleep(child(path, "sleep"), sleep.seconds ?? 0, graceSeconds)]);
  if (checks.length === 0) yield required(path, "must specify a handler type");
  for (const [i, [field, errors]] of checks.entries()) {
    if (i > 0) yield forbidden(child(path, field), "may not specify more than 1 handler type");
    else yield* errors;
  }
}

function* validateSleep(path: string, seconds: number, graceSeconds: number | undefined): Iterable<FieldError> {
  if (graceSeconds !== undefined && (seconds < 0 || seconds > graceSeconds))
    yield invalid(path, seconds, `must be non-negative and less than terminationGracePeriodSeconds (${graceSeconds})`);
}

function* validateHttpGet(path: string, action: HTTPGetAction): Iterable<FieldError> {
  if (!action.path) yield required(child(path, "path"));
  yield* validatePort(child(path, "port"), action.port);
  if (action.scheme !== "HTTP" && action.scheme !== "HTTPS") yield notSupported(child(path, "scheme"), action.scheme ?? "", ["HTTP", "HTTPS"]);
  for (const { name } of action.httpHeaders ?? []) yield* problems(child(path, "httpHeaders"), name, httpHeaderName(name));
}

/** A number, or the name of a container's port. */
export function* validatePort(path: string, port: IntOrString | undefined): Iterable<FieldError> {
  const value = port ?? 0;
  yield* problems(path, value, typeof value === "number" ? portNumber(value) : portName(value));
}
