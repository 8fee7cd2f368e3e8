/**
 * pods/log, pods/exec, pods/attach, pods/portforward: found here which container of which node is meant, answered by that node's kubelet.
 *
 * The kubelet speaks every protocol clients do (since 1.36), so what it says goes through as bytes.
 *
 * Source: kubernetes v1.36 pkg/registry/core/pod/strategy.go, pkg/registry/core/pod/rest/{log,subresources,authorize}.go
 */
import type { Pod } from "../../api/gen/core.v1.ts";
import { type FieldError, forbidden, invalid as invalidValue, NO_FIELD, notSupported } from "../../api/meta/field-error.ts";
import { badRequest, internalError, invalid, statusError, type StatusError } from "../../api/meta/status-error.ts";
import { isTrue } from "../../api/request/query.ts";
import { timeParseError } from "../../api/schema/time-parse-error.ts";
import { http1Request } from "../../net/http1-client.ts";
import type { Answer } from "../answer.ts";
import { attributesOf, authorize } from "../access.ts";
import type { Scope } from "../scope.ts";
import { integer } from "../verbs/options.ts";
import { type KubeletBackend, kubeletBackend, type NodeProxyDeps } from "./backend.ts";
import { admitConnect, attachOptionsOf, execOptionsOf, type PodStreamOptions, portsOf } from "./connect-options.ts";
import { BEARER_PROTOCOL, forwardUpgrade } from "./forward.ts";

/** Over WebSocket, since 1.36. */
const NEW_PROTOCOLS: ReadonlySet<string> = new Set(["v5.channel.k8s.io", "SPDY/3.1+portforward.k8s.io"]);

export async function podLog(deps: NodeProxyDeps, scope: Scope): Promise<Answer> {
  const { info, request: { query } } = scope;
  const options = logOptionsOf(query);
  const errors = validateLogOptions(options, deps.splitsLogs ?? false);
  if (errors.length > 0) throw invalid({ group: "", kind: "PodLogOptions" }, info.name, errors);
  const pod = await podOf(scope);
  const container = containerOf(pod, query.get("container") ?? "");
  const verify = !isTrue(query.get("insecureSkipTLSVerifyBackend"));
  deps.logMeter?.asked(verify);
  if (!pod.spec.nodeName) return { type: "raw", status: 204, headers: {}, body: "" };

  const params = new URLSearchParams();
  for (const name of ["follow", "previous", "timestamps"] as const) if (options[name]) params.set(name, "true");
  for (const name of ["sinceSeconds", "sinceTime", "tailLines", "limitBytes"] as const) if (options[name] !== undefined) params.set(name, String(options[name]));
  if (deps.splitsLogs) params.set("stream", options.stream ?? "All");
  const backend = await kubeletBackend(deps, scope, pod.spec.nodeName, { verify });
  const target = `/containerLogs/${[info.namespace, info.name, container].map(encodeURIComponent).join("/")}${params.size > 0 ? `?${params}` : ""}`;
  const unreachable = (error: Error): never => { throw statusError({ code: 500, reason: "", message: `Get "https://${backend.host}${target}": ${error.message}`, cause: error }); };
  const connection = await backend.connect().catch((error: Error) => {
    if (isUntrusted(error)) deps.logMeter?.notVerified();
    return unreachable(error);
  });
  const { status, body } = await http1Request(connection, { method: "GET", target, headers: [["Host", backend.host], ["User-Agent", "kube-apiserver"]] }, scope.signal).catch(unreachable);
  if (status < 200 || status > 206) throw kubeletRefusal(status < 400 ? 500 : status, await textOf(body), info.name);
  return { type: "raw", status: 200, headers: { "content-type": "text/plain" }, body };
}

/** By Go's words for it. */
function isUntrusted({ message }: Error): boolean { return message.includes("x509: ") || message.includes("failed to verify certificate"); }

interface LogOptions {
  readonly follow: boolean; readonly previous: boolean; readonly timestamps: boolean;
  readonly sinceSeconds: number | undefined; readonly sinceTime: string | undefined; readonly tailLines: number | undefined; readonly limitBytes: number | undefined; readonly stream: string | undefined;
}

/** An empty number is none that can be read, an empty time is as none. Throws 400. */
export function logOptionsOf(query: URLSearchParams): LogOptions {
  const sinceSeconds = integer(query, "sinceSeconds"), sinceTime = query.get("sinceTime") || undefined;
  const why = sinceTime === undefined ? undefined : timeParseError(sinceTime, "plain");
  if (why !== undefined) throw badRequest(why);
  return {
    follow: isTrue(query.get("follow")), previous: isTrue(query.get("previous")), timestamps: isTrue(query.get("timestamps")),
    sinceSeconds, sinceTime, tailLines: integer(query, "tailLines"), limitBytes: integer(query, "limitBytes"), stream: query.get("stream") ?? undefined,
  };
}

const LOG_STREAMS: readonly string[] = ["All", "Stderr", "Stdout"];

/** Source: kubernetes v1.36 pkg/apis/core/validation/validation.go ValidatePodLogOptions. `splits`: with PodLogsQuerySplitStreams */
export function validateLogOptions({ tailLines, limitBytes, sinceSeconds, sinceTime, stream }: LogOptions, splits: boolean): FieldError[] {
  const errors: FieldError[] = [];
  if (tailLines !== undefined && tailLines < 0) errors.push(invalidValue("tailLines", tailLines, "must be greater than or equal to 0"));
  if (limitBytes !== undefined && limitBytes < 1) errors.push(invalidValue("limitBytes", limitBytes, "must be greater than 0"));
  if (sinceSeconds !== undefined && sinceTime !== undefined) errors.push(forbidden(NO_FIELD, "at most one of `sinceTime` or `sinceSeconds` may be specified"));
  else if (sinceSeconds !== undefined && sinceSeconds < 1) errors.push(invalidValue("sinceSeconds", sinceSeconds, "must be greater than 0"));
  if (stream !== undefined && !splits) errors.push(forbidden("stream", "may not be specified"));
  if (stream !== undefined && splits && !LOG_STREAMS.includes(stream)) errors.push(notSupported("stream", stream, LOG_STREAMS));
  if (splits && (stream ?? "All") !== "All" && tailLines !== undefined) errors.push(forbidden(NO_FIELD, "`tailLines` and specific `stream` are mutually exclusive for now"));
  return errors;
}

/** A kubelet's refusal tells why only for some codes. Source: apiserver pkg/registry/generic/rest/response_checker.go */
function kubeletRefusal(code: number, text: string, name: string): StatusError {
  switch (code) {
    case 400: return badRequest(text);
    case 500: return internalError(new Error(text));
    case 404: return statusError({ code, reason: "NotFound", message: `the server could not find the requested resource ( pods/log ${name})`, details: { name, kind: "pods/log" } });
    case 401: return statusError({ code, reason: "Unauthorized", message: `the server has asked for the client to provide credentials ( pods/log ${name})`, details: { name, kind: "pods/log" } });
    case 403: return statusError({ code, reason: "Forbidden", message: `${text} ( pods/log ${name})`, details: { name, kind: "pods/log" } });
    case 422: return statusError({ code, reason: "Invalid", message: `the server rejected our request due to an error in our request ( pods/log ${name})`, details: { name, kind: "pods/log" } });
    default: return statusError({ code, reason: code >= 500 ? "InternalError" : "", message: `an error on the server (${JSON.stringify(text)}) has prevented the request from succeeding ( pods/log ${name})`, details: { name, kind: "pods/log" } });
  }
}

/** Source: response_checker.go maxReadLength */
const REFUSAL_BYTES_MAX = 50_000;

async function textOf(body: AsyncIterable<Buffer>): Promise<string> {
  let text = "";
  for await (const chunk of body) {
    text += chunk.toString();
    if (text.length > REFUSAL_BYTES_MAX) break;
  }
  return text.slice(0, REFUSAL_BYTES_MAX);
}

export async function podExec(deps: NodeProxyDeps, scope: Scope): Promise<Answer> {
  const { command, ...streams } = await admitConnect(scope, "PodExecOptions", execOptionsOf(scope.request.query));
  return await execOrAttach(deps, scope, "exec", { ...streams, command: command ?? [] });
}

export async function podAttach(deps: NodeProxyDeps, scope: Scope): Promise<Answer> {
  return await execOrAttach(deps, scope, "attach", { ...(await admitConnect(scope, "PodAttachOptions", attachOptionsOf(scope.request.query))), command: [] });
}

async function execOrAttach(deps: NodeProxyDeps, scope: Scope, kind: "exec" | "attach", { command, container: named = "", ...streams }: PodStreamOptions & { readonly command: readonly string[] }): Promise<Answer> {
  await mayCreate(scope);
  const pod = await podOf(scope);
  const container = containerOf(pod, named);
  const nodeName = hostOf(pod);
  const params = new URLSearchParams();
  for (const [on, name] of [[streams.stdin, "input"], [streams.stdout, "output"], [streams.stderr, "error"], [streams.tty, "tty"]] as const) if (on) params.set(name, "1");
  for (const word of command) params.append("command", word);
  const backend = await kubeletBackend(deps, scope, nodeName);
  mayUseWebSocket(scope, backend, nodeName);
  deps.streamMeter?.opened(kind);
  return await forwardUpgrade(scope, backend, `/${kind}/${[scope.info.namespace, pod.metadata.name, container].map(encodeURIComponent).join("/")}?${params}`);
}

export async function podPortForward(deps: NodeProxyDeps, scope: Scope): Promise<Answer> {
  const asked = portsOf(scope.request.query);
  const { ports = [] } = await admitConnect<{ readonly ports?: readonly number[] }>(scope, "PodPortForwardOptions", asked.length > 0 ? { ports: asked } : {});
  await mayCreate(scope);
  const pod = await podOf(scope);
  const nodeName = hostOf(pod);
  const backend = await kubeletBackend(deps, scope, nodeName);
  mayUseWebSocket(scope, backend, nodeName);
  deps.streamMeter?.opened("portforward");
  return await forwardUpgrade(scope, backend, `/portForward/${[scope.info.namespace, pod.metadata.name].map(encodeURIComponent).join("/")}${ports.length > 0 ? `?port=${ports.join(",")}` : ""}`);
}

/**
 * Refuses what the kubelet would refuse, one of before 1.36: clients go on with SPDY then, which any kubelet speaks. Tunnels to nodes (KubeEdge's) may keep a kubelet's own
 * refusal to themselves. Upstream translates. Source: kubernetes v1.36 pkg/registry/core/pod/rest/subresources.go checkNodeSupportsWebsockets
 */
function mayUseWebSocket({ request }: Scope, { features }: KubeletBackend, nodeName: string): void {
  const offered = (request.header("sec-websocket-protocol") ?? "").split(",").map((one) => one.trim()).filter((one) => one !== "" && !one.startsWith(BEARER_PROTOCOL));
  if (offered.length > 0 && !features.includes("ExtendWebSocketsToKubelet") && offered.every((one) => NEW_PROTOCOLS.has(one))) throw badRequest(`the kubelet of node ${JSON.stringify(nodeName)} does not speak ${offered.join(", ")} over WebSocket`);
}

/** WebSockets begin with a GET, which "get" allows; what they do needs "create", as with SPDY's POST. */
async function mayCreate({ info, request, user, server }: Scope): Promise<void> {
  if (info.verb !== "create") await authorize(server.authorizer, attributesOf({ ...info, verb: "create" }, request, user));
}

async function podOf({ server, info, signal }: Scope): Promise<Readonly<Pod>> {
  return (await server.registry.storeOf("", "pods")!.get(info.namespace, info.name, signal)).object as unknown as Readonly<Pod>;
}

function hostOf({ spec, metadata }: Readonly<Pod>): string {
  if (!spec.nodeName) throw badRequest(`pod ${metadata.name} does not have a host assigned`);
  return spec.nodeName;
}

function containerOf({ spec, metadata }: Readonly<Pod>, name: string): string {
  const { containers, initContainers = [], ephemeralContainers = [] } = spec;
  const names = [...initContainers, ...containers, ...ephemeralContainers].map((one) => one.name);
  if (name !== "") {
    if (!names.includes(name)) throw badRequest(`container ${name} is not valid for pod ${metadata.name}`);
    return name;
  }
  if (containers.length === 0) throw badRequest(`a container name must be specified for pod ${metadata.name}`);
  if (containers.length > 1) throw badRequest(`a container name must be specified for pod ${metadata.name}, choose one of: [${names.join(" ")}]`);
  return containers[0]!.name;
}
