/**
 * How a machine becomes a node of a cluster, and finds itself one again after a restart.
 *
 *   token ─▶ whom to trust (trust.ts) ─▶ client certificate (request-certificate.ts) ─▶ the cluster's settings ─▶ a NodeIdentity (identity.ts)
 *
 * Once it has a certificate the token is not needed any more, nor is a server that can be reached: what the disk says is enough to go on with. Without a
 * server the first time, it waits for one. A token whose CA is not the one it knows means another cluster: once a server has
 * shown that CA, everything of the old one is forgotten.
 * The certificates are kept good by node-certificates.ts.
 */
import { rm } from "node:fs/promises";
import type { ConfigMap } from "../../core/api/gen/core.v1.ts";
import { StatusError } from "../../core/api/meta/status-error.ts";
import type { Client } from "../../core/client/client.ts";
import { CLUSTER_SETTINGS } from "../../core/client/cluster-objects.ts";
import { type Credentials, httpTransport } from "../../core/client/http-transport.ts";
import { clientOver } from "../../core/client/resource-client.ts";
import { CONFIG_MAPS } from "../../core/client/resources.ts";
import { backoffMs } from "../../core/lifecycle/backoff.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Random } from "../../core/lifecycle/random.ts";
import type { Fetch } from "../../core/net/http2-fetch.ts";
import type { Log } from "../../core/observe/log.ts";
import { NO_ALT_NAMES } from "../../core/pki/alt-names.ts";
import { kubeletSubject } from "../../core/pki/identities.ts";
import { certificateHash, type JoinToken, parseJoinToken } from "../../core/pki/join-token.ts";
import { machineAnnotations } from "../../core/pki/machine-key.ts";
import { readCertificatePems } from "../../core/pki/pem.ts";
import { trustFurther } from "./authorities.ts";
import { NodeIdentity } from "./identity.ts";
import { JoinError } from "./join-error.ts";
import { KUBELET_CLIENT_SIGNER, requestCertificate, type WantedCertificate } from "./request-certificate.ts";
import { refusalsIn } from "./refused.ts";
import { connectionError, currentCa, describeSkew, discoverTrust } from "./trust.ts";

export interface JoinOptions {
  /** https://host:port, the preferred first. */
  readonly servers: readonly string[];
  readonly token: string | undefined;
  readonly nodeName: string;
  /** Where the identity is kept. */
  readonly dir: string;
  /** What else is remembered of the cluster, and must go when it becomes another one. */
  readonly remembered: readonly string[];
  readonly userAgent: string;
  /** Absent: the engine's own. */
  readonly fetch?: Fetch | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

/** An identity that is complete: with a CA, a client certificate and settings. */
export type JoinedIdentity = NodeIdentity & { readonly ca: string; readonly client: NonNullable<NodeIdentity["client"]>; readonly cluster: NonNullable<NodeIdentity["cluster"]> };

const RETRY = { minMs: 500, maxMs: 15_000 };
/** A node that knows its settings does not wait longer for newer ones. */
const REFRESH_MS_MAX = 3_000;
const SKEW_MS_MAX = 60_000;

/** Throws JoinError for what will not pass by itself. */
export async function joinCluster(options: JoinOptions, signal: AbortSignal): Promise<JoinedIdentity> {
  const { clock, log } = options;
  const token = readToken(options.token);
  const identity = await NodeIdentity.open(options.dir, options.nodeName, log);
  const attempt = { ...options, identity, token };
  if (isJoined(identity) && !isMoving(attempt)) {
    await refresh(attempt, signal);
    if (isJoined(identity)) return identity;
  }
  if (token !== undefined && token.caHash === undefined) log.warn("the token does not name the server's CA: whoever answers is believed. Tokens of coracle token create do, and so does <data-dir>/server/token");
  for (let failures = 1; ; failures++) {
    for (const server of candidates(attempt)) {
      try {
        return await joinAt(server, attempt, signal);
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof JoinError) throw error;
        log.warn("not joined yet, next try soon", { server, error: (error as Error).message });
      }
    }
    await clock.sleep(backoffMs(failures, RETRY) * (1 + options.random.next()), signal);
    signal.throwIfAborted();
  }
}

interface Attempt extends Omit<JoinOptions, "token"> { readonly identity: NodeIdentity; readonly token: JoinToken | undefined }

/** The token is of another cluster than the one this machine knows. */
function isMoving({ identity: { ca }, token }: Attempt): boolean {
  return token?.caHash !== undefined && ca !== undefined && !readCertificatePems(ca).map(certificateHash).includes(token.caHash);
}

/** Those that were named, then those it has met. */
function candidates(attempt: Attempt): ReadonlySet<string> { return new Set([...attempt.servers, ...(isMoving(attempt) ? [] : attempt.identity.cluster?.servers ?? [])]); }

async function joinAt(server: string, attempt: Attempt, signal: AbortSignal): Promise<JoinedIdentity> {
  const { identity, token, clock, log } = attempt;
  const moving = isMoving(attempt);
  if (moving || identity.ca === undefined || identity.client === undefined) {
    const needed = neededToken(token);
    const { ca, clockAheadMs = 0 } = await discoverTrust(server, { caHash: needed.caHash, nowMs: () => clock.nowMs(), signal });
    if (Math.abs(clockAheadMs) > SKEW_MS_MAX) log.warn(`this machine's clock is ${describeSkew(clockAheadMs)} the server's: set it right, certificates and leases depend on it`, { server });
    if (moving) await leave(attempt);
    await identity.setCa(ca);
  }
  try {
    if (identity.client === undefined || identity.client.certificate.notAfterMs < clock.nowMs()) await becomeNode(server, attempt, signal);
    await readSettings(server, attempt, signal);
  } catch (error) {
    throw explained(error, server);
  }
  return identity as JoinedIdentity;
}

async function leave({ identity, remembered, log }: Attempt): Promise<void> {
  log.warn("the token is of another cluster than this node was in: it starts anew there");
  await identity.forget();
  for (const path of remembered) await rm(path, { recursive: true, force: true });
}

async function becomeNode(server: string, attempt: Attempt, signal: AbortSignal): Promise<void> {
  const { identity, token, clock, log } = attempt;
  const { secret } = neededToken(token);
  const client = clientAt(server, attempt, { ca: identity.ca, token: secret });
  const refusals = refusalsIn(attempt.dir, { clock, log });
  await refusals.patience(secret, signal);
  const leaf = await requestCertificate({ client, clock, log }, clientCertificate(identity), signal).catch(async (error: unknown) => {
    if (error instanceof JoinError) await refusals.note(secret);
    throw error;
  });
  await refusals.forget();
  await identity.setClient(leaf);
  log.info("joined", { server, node: identity.nodeName, until: new Date(identity.client!.certificate.notAfterMs).toISOString() });
}

/** What the kubelet's client certificate must be. */
export function clientCertificate({ nodeName, machineKey }: Pick<NodeIdentity, "nodeName" | "machineKey">): WantedCertificate {
  return { signerName: KUBELET_CLIENT_SIGNER, subject: kubeletSubject(nodeName), altNames: NO_ALT_NAMES, usages: ["digital signature", "client auth"], annotations: (pem) => machineAnnotations(pem, machineKey) };
}

async function readSettings(server: string, attempt: Attempt, signal: AbortSignal): Promise<void> {
  const { identity } = attempt;
  const { certificatePem: cert, keyPem: key } = identity.client!;
  const { data = {} }: Readonly<ConfigMap> = await clientAt(server, attempt, { ca: identity.ca, cert, key }).resource(CONFIG_MAPS).get(CLUSTER_SETTINGS, { signal });
  await identity.setCluster((before) => ({ settings: { ...data }, servers: before?.servers ?? [] }));
}

/** The settings may have changed while this node was away. Whatever goes wrong, it knows enough to go on. */
async function refresh(attempt: Attempt, signal: AbortSignal): Promise<void> {
  const { token, log } = attempt;
  for (const server of candidates(attempt)) {
    try {
      await readSettings(server, attempt, AbortSignal.any([signal, AbortSignal.timeout(REFRESH_MS_MAX)])).catch(async (error: unknown) => {
        if (!(error instanceof StatusError) || error.code !== 401 || token === undefined) throw error;
        log.warn("the server does not know this node's certificate: it joins again with its token", { server });
        await becomeNode(server, attempt, signal);
        await readSettings(server, attempt, signal);
      });
      await refreshCa(server, attempt, signal).catch((error: unknown) => {
        signal.throwIfAborted();
        log.warn("the cluster's authorities cannot be read, those of last time are trusted", { server, error: (error as Error).message });
      });
      return;
    } catch (error) {
      signal.throwIfAborted();
      log.warn("the cluster's settings cannot be read, those of last time are used", { server, error: explained(error, server).message });
    }
  }
}

/** Authorities that were added since. */
async function refreshCa(server: string, { identity, clock, log }: Attempt, signal: AbortSignal): Promise<void> {
  await trustFurther(identity, await currentCa(server, identity.ca!, { nowMs: () => clock.nowMs(), signal: AbortSignal.any([signal, AbortSignal.timeout(REFRESH_MS_MAX)]) }), log);
}

function clientAt(server: string, { clock, userAgent, fetch }: Attempt, credentials: Credentials): Client {
  return clientOver(httpTransport({ server, credentials: () => credentials, clock, userAgent, ...(fetch ? { fetch } : {}) }));
}

/** What an answer of the API server means for who waits to join. */
function explained(error: unknown, server: string): Error {
  if (!(error instanceof StatusError)) return error as Error;
  if (error.code === 401) return new JoinError("bad-token", `${server} does not accept the token: it is unknown there, or has expired. For a new one, on the server: coracle token create`, { cause: error });
  if (error.code >= 500 && error.cause !== undefined) return connectionError(server, error.cause);
  return new Error(`${server} answered: ${error.message}`, { cause: error });
}

function isJoined(identity: NodeIdentity): identity is JoinedIdentity { return identity.ca !== undefined && identity.client !== undefined && identity.cluster !== undefined; }

function neededToken(token: JoinToken | undefined): JoinToken {
  if (token === undefined) throw new JoinError("no-token", "this machine is no node yet: it needs --token. On the server: coracle token create");
  return token;
}

function readToken(text: string | undefined): JoinToken | undefined {
  if (text === undefined) return undefined;
  try {
    return parseJoinToken(text);
  } catch (cause) {
    throw new JoinError("bad-token", (cause as Error).message, { cause });
  }
}
