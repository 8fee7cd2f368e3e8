/** A client for commands an administrator runs: by the kubeconfig that is named, by $KUBECONFIG, or by the one the server wrote. */
import { existsSync } from "node:fs";
import { delimiter } from "node:path";
import type { Client } from "../core/client/client.ts";
import { type Credentials, httpTransport } from "../core/client/http-transport.ts";
import { clientOver } from "../core/client/resource-client.ts";
import { systemClock } from "../core/lifecycle/clock.ts";
import { fetchTls } from "../core/net/tls.ts";
import { ConfigError } from "./config/config.ts";
import { readKubeconfig } from "./kubeconfig-file.ts";
import { machineSettings, mustReach } from "./tools.ts";

export interface Connection {
  readonly client: Client;
  /** Vouches for the server; absent: whom the system trusts does. */
  readonly ca: string | undefined;
  /** The bytes of an answer. */
  download(path: string, signal: AbortSignal): AsyncIterable<Uint8Array>;
}

/** `given`: the file named on the command line. As kubectl does, for the cluster and the user of the current context: another one would be dealt with. */
export function connect(given: string | undefined, userAgent: string): Connection {
  const { server, credentials } = readKubeconfig(kubeconfigs(given));
  return {
    ca: credentials.ca,
    client: clientOver(httpTransport({ server, credentials: () => credentials, clock: systemClock, userAgent })),
    download: (path, signal) => download(`${server.replace(/\/+$/, "")}${path}`, credentials, userAgent, signal),
  };
}

/** Of those that $KUBECONFIG names some need not be there. Throws ConfigError if there is none. */
function kubeconfigs(given: string | undefined): readonly string[] {
  const named = given ?? (process.env["KUBECONFIG"] || machineSettings().writeKubeconfig);
  const paths = given === undefined ? named.split(delimiter).filter((path) => path !== "") : [named];
  for (const path of paths) mustReach(path);
  const found = paths.filter((path) => existsSync(path));
  if (found.length === 0) throw new ConfigError(`${named}: no such file; run this on the server, or name a kubeconfig with --kubeconfig`);
  return found;
}

async function* download(url: string, { token, ...tls }: Credentials, userAgent: string, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const headers = { "user-agent": userAgent, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) };
  let response: Response;
  try {
    response = await fetch(url, { headers, signal, redirect: "manual", tls: fetchTls(tls), timeout: false } as RequestInit);
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
