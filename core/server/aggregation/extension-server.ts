/**
 * The API server behind an APIService: how it is reached, and short questions to it.
 *
 * Reached as webhooks are: at a ready endpoint of its Service, through the tunnel of that node if there is one. It must show a certificate for
 * <service>.<namespace>.svc that caBundle signed; we show the front proxy's, so that it believes whom we name.
 *
 * Source: kubernetes v1.36 kube-aggregator/pkg/controllers/status/remote/remote_available_controller.go
 */
import { gunzipSync } from "node:zlib";
import { type DialDeps, endpointOf, held } from "../../admission/webhook/dial.ts";
import type { UserInfo } from "../../api/request/user.ts";
import type { Clock } from "../../lifecycle/clock.ts";
import { hostPort } from "../../net/dial-tcp.ts";
import { askKept, type Held } from "../../net/kept-connections.ts";
import type { APIServiceSpec } from "../../registry/apiregistration/api-service.ts";
import type { Backend } from "../node-proxy/backend.ts";
import { identityHeaders } from "./identity.ts";

export interface ExtensionDeps extends DialDeps {
  readonly clock: Clock;
  /** The front proxy's certificate and key, PEM: asked for each connection. */
  readonly clientTls: () => { readonly cert: string; readonly key: string };
}

const HTTPS_PORT = 443;
/** OpenAPI documents are a few megabytes. */
const ANSWER_BYTES_MAX = 64 * 1024 * 1024;
/** Of what is not held so much is read, for the connection to be kept. */
const SKIPPED_BYTES_MAX = 64 * 1024;

export function extensionBackend({ service, caBundle, insecureSkipTLSVerify }: Readonly<APIServiceSpec>, deps: ExtensionDeps, signal: AbortSignal): Required<Backend> {
  const { name = "", namespace = "", port = HTTPS_PORT } = service ?? {};
  const serverName = `${name}.${namespace}.svc`;
  return {
    host: `${serverName}:${port}`, scheme: "https",
    connect: async () => (await open(true)).connection,
    open,
  };

  async function open(fresh: boolean): Promise<Held> {
    const target = await endpointOf(deps, { name, namespace, port }, signal);
    return await held(deps, target, { ca: caBundle ? Buffer.from(caBundle, "base64").toString() : undefined, serverName, client: deps.clientTls(), insecure: insecureSkipTLSVerify, signal }, fresh);
  }
}

export interface ExtensionAnswer {
  /** What was asked, where the Service is: as upstream names it. */
  readonly url: string;
  readonly status: number;
  header(name: string): string | undefined;
  /** Empty where only the status was asked for. */
  readonly body: Buffer;
}

export interface ExtensionQuestion {
  /** With the query. */
  readonly path: string;
  /** Absent: whatever it has. */
  readonly accept?: string;
  readonly ifNoneMatch?: string | undefined;
  /** What else it says is not held: many are asked at once whether they are there. */
  readonly statusOnly?: boolean | undefined;
  readonly user: UserInfo;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** GET. Throws an Error in Go's words. */
export async function askExtension(spec: Readonly<APIServiceSpec>, { path, accept, ifNoneMatch, statusOnly = false, user, timeoutMs, signal }: ExtensionQuestion, deps: ExtensionDeps): Promise<ExtensionAnswer> {
  const url = `https://${await shownHost(spec, deps, signal)}${path}`;
  const late = new AbortController();
  const alarm = deps.clock.after(timeoutMs, () => late.abort());
  const either = AbortSignal.any([signal, late.signal]);
  const backend = extensionBackend(spec, deps, either);
  try {
    const headers = [["Host", backend.host], ["User-Agent", "kube-aggregator"], ...(accept === undefined ? [] : [["Accept", accept] as const]), ["Accept-Encoding", "gzip"], ...(ifNoneMatch ? [["If-None-Match", ifNoneMatch] as const] : []), ...identityHeaders(user)] as const;
    const response = await askKept(backend.open, () => ({ method: "GET", target: path, headers }), either);
    const header = (name: string): string | undefined => response.headers.find(([given]) => given.toLowerCase() === name)?.[1];
    const body = statusOnly ? await skipped(response.body) : await bytesOf(response.body);
    return { url, status: response.status, header, body: header("content-encoding") === "gzip" && !statusOnly ? gunzipSync(body, { maxOutputLength: ANSWER_BYTES_MAX }) : body };
  } catch (cause) {
    const why = late.signal.aborted ? "context deadline exceeded (Client.Timeout exceeded while awaiting headers)" : (cause as Error).message;
    throw new Error(`Get ${JSON.stringify(url)}: ${why}`, { cause });
  } finally {
    alarm.cancel();
  }
}

/** Of a Service of the cluster its address, of one elsewhere its name. Source: kubernetes v1.36 apiserver/pkg/util/proxy/proxy.go ResolveCluster */
export async function shownHost({ service: at }: Readonly<APIServiceSpec>, { services }: ExtensionDeps, signal: AbortSignal): Promise<string> {
  const { name = "", namespace = "", port = HTTPS_PORT } = at ?? {};
  const { type, externalName = "", clusterIP = "" } = (await services.find(namespace, name, signal))?.spec ?? {};
  if (type === "ExternalName") return `${externalName}:${port}`;
  return hostPort(clusterIP === "" || clusterIP === "None" ? `${name}.${namespace}.svc` : clusterIP, port);
}

async function bytesOf(body: AsyncIterable<unknown>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > ANSWER_BYTES_MAX) throw new Error(`response body is longer than ${ANSWER_BYTES_MAX} bytes`); // leaving the loop closes the connection
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, length);
}

/** Whatever becomes of it, there is an answer. */
async function skipped(body: AsyncIterable<unknown>): Promise<Buffer> {
  let length = 0;
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) if ((length += chunk.length) > SKIPPED_BYTES_MAX) break; // which closes the connection
  } catch {
    return Buffer.alloc(0); // its status is known
  }
  return Buffer.alloc(0);
}
