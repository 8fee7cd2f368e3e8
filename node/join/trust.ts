/**
 * How a machine that knows nothing but a token finds out whom to trust, before it tells the token to anyone:
 *
 *   1. it asks the server for its CA, over a connection that proves nothing
 *   2. of what it gets, it keeps only the certificate whose hash stands in the token
 *   3. it asks again, over a connection that certificate vouches for: what comes now is the cluster's CA
 */
import { errorText } from "../../core/api/meta/error-text.ts";
import { parseYaml } from "../../core/api/codec/yaml.ts";
import type { ConfigMap } from "../../core/api/gen/core.v1.ts";
import { CLUSTER_INFO } from "../../core/client/cluster-objects.ts";
import { certificateHash } from "../../core/pki/join-token.ts";
import { readCertificatePems, toPem } from "../../core/pki/pem.ts";
import { ANCHORS } from "../../core/net/tls.ts";
import { JoinError } from "./join-error.ts";

export interface Trust {
  /** PEM bundle: who may have signed servers' certificates. */
  readonly ca: string;
  /** How far this machine's clock is ahead of the server's; undefined: the server did not say what time it is. */
  readonly clockAheadMs: number | undefined;
}

interface TrustOptions {
  /** Lower-case hex; undefined: whoever answers is believed. */
  readonly caHash: string | undefined;
  readonly nowMs: () => number;
  readonly signal: AbortSignal;
}

interface Answer { readonly ca: string; readonly clockAheadMs: number | undefined }

const PATH = `/api/v1/namespaces/${CLUSTER_INFO.metadata.namespace}/configmaps/${CLUSTER_INFO.metadata.name}`;
const ANSWER_MS_MAX = 30_000; // over a slow link a handshake alone takes ten seconds
const BODY_BYTES_MAX = 1024 * 1024;

/** Throws JoinError for what will not pass by itself, and an Error when the server cannot be reached. */
export async function discoverTrust(server: string, options: TrustOptions): Promise<Trust> {
  const { caHash } = options;
  const claimed = await ask(server, { rejectUnauthorized: false }, options);
  const certificates = readCertificatePems(claimed.ca);
  const believed = caHash === undefined ? certificates : certificates.filter((der) => certificateHash(der) === caHash);
  if (believed.length === 0) {
    const found = certificates.map(certificateHash).join(", ") || "none";
    throw new JoinError("wrong-ca", `${server} is not the server of this token: the token names a CA with the SHA-256 ${caHash}, the server has ${found}. The token is of another cluster, or somebody stands between`);
  }
  return await ask(server, { ca: believed.map((der) => toPem("CERTIFICATE", der)).join(""), ...ANCHORS }, options, claimed.clockAheadMs);
}

/** PEM bundle: who may sign servers' certificates now, as a server says that `ca` vouches for. Throws as discoverTrust. */
export async function currentCa(server: string, ca: string, options: Omit<TrustOptions, "caHash">): Promise<string> { return (await ask(server, { ca, ...ANCHORS }, options)).ca; }

async function ask(server: string, tls: { readonly ca: string } | { readonly rejectUnauthorized: false }, { nowMs, signal }: Omit<TrustOptions, "caHash">, clockAheadMs?: number): Promise<Answer> {
  const root = server.replace(/\/+$/, "");
  let text: string;
  let answer: Response;
  try {
    answer = await fetch(root + PATH, { tls, keepalive: false, redirect: "manual", headers: { accept: "application/json", connection: "close" }, signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS_MAX)]) } as RequestInit);
    text = await beginningOf(answer);
  } catch (cause) {
    signal.throwIfAborted();
    throw connectionError(root, cause, clockAheadMs);
  }
  const date = Date.parse(answer.headers.get("date") ?? "");
  if (answer.status >= 500 || answer.status === 429 || answer.status === 404 || answer.status === 403) throw new Error(`${root} is not ready for machines that join yet: it answered ${answer.status}`); // it starts, or is busy
  const ca = answer.ok ? caOf(text) : undefined;
  if (ca === undefined) throw new JoinError("not-a-server", `${root} is no Coracle server: it answered ${answer.status} without a CA to ${PATH}`);
  return { ca, clockAheadMs: Number.isNaN(date) ? undefined : nowMs() - date };
}

/** Nobody knows yet who answers, and how much. */
async function beginningOf({ body }: Response): Promise<string> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of (body ?? []) as AsyncIterable<Uint8Array>) {
    pieces.push(piece);
    length += piece.length;
    if (length > BODY_BYTES_MAX) break; // which ends the connection
  }
  return Buffer.concat(pieces).toString();
}

function caOf(text: string): string | undefined {
  try {
    const { data } = JSON.parse(text) as ConfigMap;
    const config = parseYaml(data?.["kubeconfig"] ?? "") as { readonly clusters?: readonly { readonly cluster?: { readonly "certificate-authority-data"?: string } }[] } | null;
    const pem = Buffer.from(config?.clusters?.[0]?.cluster?.["certificate-authority-data"] ?? "", "base64").toString();
    return readCertificatePems(pem).length > 0 ? pem : undefined;
  } catch {
    return undefined; // neither JSON nor YAML: not ours
  }
}

const OUTDATED: ReadonlySet<string> = new Set(["CERT_HAS_EXPIRED", "CERT_NOT_YET_VALID"]);
const UNTRUSTED: ReadonlySet<string> = new Set(["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "SELF_SIGNED_CERT_IN_CHAIN", "DEPTH_ZERO_SELF_SIGNED_CERT", "UNABLE_TO_GET_ISSUER_CERT", "UNABLE_TO_GET_ISSUER_CERT_LOCALLY", "CERT_SIGNATURE_FAILURE"]);

/** What a failed connection to `server` means for who waits: a JoinError if nothing will change by itself. */
export function connectionError(server: string, cause: unknown, clockAheadMs?: number): Error {
  const code = codeOf(cause);
  const message = errorText(cause);
  if (OUTDATED.has(code))
    return new JoinError("bad-clock", `the certificate of ${server} does not hold at this machine's time (${message})${clockAheadMs === undefined ? "" : `: this machine's clock is ${describeSkew(clockAheadMs)} the server's; set it right`}`, { cause });
  if (UNTRUSTED.has(code))
    return new JoinError("bad-certificate", `${server} shows a certificate that the cluster's CA has not signed (${message}): it is another cluster's server, or somebody stands between. If it was installed anew, restore a snapshot of before there, or give this machine a token of it (--token, from coracle token create)`, { cause });
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") return new JoinError("bad-certificate", `the certificate of ${server} does not hold for that name: use one it has, or start the server with --tls-san ${hostOf(server)}`, { cause });
  if (code === "EPROTO" || /TLS handshake/.test(message)) return new JoinError("not-a-server", `${server} does not speak TLS: is the port right?`, { cause });
  return new Error(`${server} cannot be reached: ${message}`, { cause });
}

export function describeSkew(aheadMs: number): string {
  const seconds = Math.round(Math.abs(aheadMs) / 1000);
  const [amount, unit] = seconds < 120 ? [seconds, "s"] : seconds < 7200 ? [Math.round(seconds / 60), "min"] : seconds < 172_800 ? [Math.round(seconds / 3600), "h"] : [Math.round(seconds / 86_400), "days"];
  return `${amount} ${unit} ${aheadMs > 0 ? "ahead of" : "behind"}`;
}

/** Of the error, or of what caused it. */
function codeOf(error: unknown): string {
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    const { code } = at as { readonly code?: unknown };
    if (typeof code === "string" && /^[A-Z_]+$/.test(code)) return code;
  }
  return "";
}

function hostOf(server: string): string { return URL.canParse(server) ? new URL(server).hostname : server; }
