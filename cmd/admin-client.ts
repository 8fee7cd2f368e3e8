/** A client for commands an administrator runs: by the kubeconfig that is named, by $KUBECONFIG, or by the one the server wrote. */
import type { Client } from "../core/client/client.ts";
import { type Credentials, httpTransport } from "../core/client/http-transport.ts";
import { clientOver } from "../core/client/resource-client.ts";
import { systemClock } from "../core/lifecycle/clock.ts";
import { ConfigError, readText } from "./config/config.ts";
import { readYamlSettings } from "./config/yaml-settings.ts";
import { machineSettings, mustReach } from "./tools.ts";

export interface Connection {
  readonly client: Client;
  /** Vouches for the server. */
  readonly ca: string;
  /** The bytes of an answer. */
  download(path: string, signal: AbortSignal): AsyncIterable<Uint8Array>;
}

/** `given`: the file named on the command line. */
export function connect(given: string | undefined, userAgent: string): Connection {
  const path = given ?? process.env["KUBECONFIG"] ?? machineSettings().writeKubeconfig;
  mustReach(path);
  const text = readText(path);
  if (text === undefined) throw new ConfigError(`${path}: no such file; run this on the server, or name a kubeconfig with --kubeconfig`);
  const config = readYamlSettings(text) as { clusters?: { cluster: Record<string, string> }[]; users?: { user: Record<string, string> }[] } | null;
  const cluster = config?.clusters?.[0]?.cluster, user = config?.users?.[0]?.user;
  if (!cluster?.["server"] || !cluster["certificate-authority-data"] || !user) throw new ConfigError(`${path}: there is no server with its CA and a user in it`);
  const decoded = (key: string): string | undefined => (user[key] === undefined ? undefined : Buffer.from(user[key], "base64").toString());
  const ca = Buffer.from(cluster["certificate-authority-data"], "base64").toString();
  const credentials: Credentials = { ca, cert: decoded("client-certificate-data"), key: decoded("client-key-data"), token: user["token"] };
  return {
    ca,
    client: clientOver(httpTransport({ server: cluster["server"], credentials: () => credentials, clock: systemClock, userAgent })),
    download: (path, signal) => download(`${cluster["server"]!.replace(/\/+$/, "")}${path}`, credentials, userAgent, signal),
  };
}

async function* download(url: string, { ca, cert, key, token }: Credentials, userAgent: string, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const tls = { ...(ca === undefined ? {} : { ca }), ...(cert === undefined ? {} : { cert }), ...(key === undefined ? {} : { key }) };
  const headers = { "user-agent": userAgent, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) };
  let response: Response;
  try {
    response = await fetch(url, { headers, signal, redirect: "manual", tls, timeout: false } as RequestInit);
  } catch (cause) {
    throw new Error(`cannot reach ${url}: is the server running?`, { cause });
  }
  if (!response.ok) {
    const text = await response.text();
    throw new Error(`${url}: ${statusMessage(text) ?? `${response.status} ${text}`}`);
  }
  yield* response.body ?? [];
}

function statusMessage(text: string): string | undefined {
  try {
    return (JSON.parse(text) as { message?: string }).message;
  } catch {
    return undefined; // no Status: told as it is
  }
}
