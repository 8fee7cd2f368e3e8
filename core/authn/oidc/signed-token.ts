/**
 * A JWT as it was shown, before anybody has checked it: header.payload.signature. What is wrong with one is said in go-jose's words.
 *
 * Claims are found by their exact names; Go's decoder would take "ISS" for "iss", too.
 *
 * Source: kubernetes v1.36 apiserver/plugin/pkg/authenticator/token/oidc/oidc.go (untrustedIssuer), go-jose v2 jws.go, shared.go
 */
import { type JsonNode, jsonValueOf, parseJsonDocument } from "../../api/codec/json-document.ts";
import { goQuote } from "../../api/meta/go-quote.ts";
import type { Claims } from "../../pki/jwt.ts";

export interface SignedToken {
  readonly algorithm: string;
  readonly keyId: string;
  /** Its header says that there is more to it than we know of. */
  readonly isSpecial: boolean;
  readonly payload: string;
  readonly signed: Uint8Array;
  readonly signature: Uint8Array;
}

/** What Google once called itself. */
const GOOGLE_OF_OLD = "accounts.google.com";

/** Who it says has issued it; undefined: nobody. */
export function untrustedIssuer(token: string): string | undefined {
  const [, payload = "", ...rest] = token.split(".");
  if (rest.length !== 1 || illegalAt(payload) >= 0) return undefined;
  try {
    const { iss } = JSON.parse(Buffer.from(payload, "base64url").toString()) as Claims;
    return iss === GOOGLE_OF_OLD ? `https://${GOOGLE_OF_OLD}` : typeof iss === "string" ? iss : undefined;
  } catch {
    return undefined; // no JSON, or not an object
  }
}

/** Throws an Error that says why it is none. */
export function parseSigned(token: string): SignedToken {
  const parts = token.split(".");
  if (parts.length !== 3) throw new Error("oidc: malformed jwt");
  for (const part of parts) if (illegalAt(part) >= 0) throw malformed(`illegal base64 data at input byte ${illegalAt(part)}`);
  const [header = "", payload = "", signature = ""] = parts;
  const fields = headerOf(Buffer.from(header, "base64url").toString());
  const content = Buffer.from(payload, "base64url");
  const encodes = encodesPayload(fields);
  return {
    algorithm: textOf(fields, "alg", "algorithm"), keyId: textOf(fields, "kid", "key ID"), isSpecial: encodes === undefined || !isAllKnown(fields.get("crit")),
    payload: content.toString(), signed: Buffer.concat([Buffer.from(`${header}.`), encodes === false ? content : Buffer.from(payload)]), signature: Buffer.from(signature, "base64url"),
  };
}

/** Whether the payload is signed as it is sent, or as it was before it was encoded (RFC 7797). Undefined: its header does not say either. */
function encodesPayload(fields: ReadonlyMap<string, JsonNode>): boolean | undefined {
  const node = fields.get("b64") ?? { kind: "null" };
  return node.kind === "null" ? true : node.kind === "bool" ? node.value : undefined;
}

/** Of what must be understood: it is known but for what the payload is signed as. */
function isAllKnown(critical: JsonNode = { kind: "null" }): boolean {
  return critical.kind === "null" || (critical.kind === "array" && critical.items.every((one) => one.kind === "string" && one.value === "b64"));
}

function headerOf(text: string): ReadonlyMap<string, JsonNode> {
  let node: JsonNode;
  try {
    node = parseJsonDocument(text);
  } catch (cause) {
    throw malformed((cause as Error).message, cause);
  }
  if (node.kind !== "object") throw malformed(`json: cannot unmarshal ${node.kind} into Go value of type jose.rawHeader`);
  return new Map(node.entries);
}

function textOf(fields: ReadonlyMap<string, JsonNode>, name: string, what: string): string {
  const node = fields.get(name) ?? { kind: "null" };
  if (node.kind === "string") return node.value;
  if (node.kind === "null") return "";
  throw malformed(`failed to unmarshal ${what}: json: cannot unmarshal ${node.kind} into Go value of type string: ${goQuote(JSON.stringify(jsonValueOf(node)))}`);
}

/** Where Go's decoder of unpadded base64 gives up; -1: it does not. */
function illegalAt(part: string): number {
  const at = part.search(/[^A-Za-z0-9_-]/);
  return at < 0 && part.length % 4 === 1 ? part.length - 1 : at;
}

function malformed(why: string, cause?: unknown): Error { return new Error(`oidc: malformed jwt: ${why}`, { cause }); }
