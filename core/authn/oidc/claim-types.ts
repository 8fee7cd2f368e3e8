/**
 * Types of the claims that OpenID Connect knows. One of another type makes a token none, as it does for upstream's decoder; the first is told.
 *
 * Source: github.com/coreos/go-oidc v2 oidc.go (idToken, audience, jsonTime), verify.go
 */
import { goQuote } from "../../api/meta/go-quote.ts";
import { jsonKindOf } from "../../api/patch/json-value.ts";
import type { Claims } from "../../pki/jwt.ts";

type Check = (value: unknown, name: string) => void;

const CHECKS: Readonly<Record<string, Check>> = {
  iss: text, sub: text, nonce: text, at_hash: text, aud: texts, exp: time, iat: time, nbf: (value, name) => { if (value !== null) time(value, name); },
  _claim_names: (value, name) => { for (const one of Object.values(record(value, name, "map[string]string"))) text(one, name); },
  _claim_sources(value, name) {
    for (const one of Object.values(record(value, name, "map[string]oidc.claimSource"))) {
      const { endpoint = null, access_token: accessToken = null } = record(one, name, "oidc.claimSource");
      text(endpoint, `${name}.endpoint`, "claimSource");
      text(accessToken, `${name}.access_token`, "claimSource");
    }
  },
};

/** Throws an Error. */
export function checkClaimTypes(claims: Claims): void {
  for (const [name, value] of Object.entries(claims)) if (Object.hasOwn(CHECKS, name)) CHECKS[name]!(value, name);
  const { _claim_names: names, _claim_sources: sources } = claims;
  for (const source of Object.values((names ?? {}) as Record<string, string | null>)) {
    if (!source) throw new Error("oidc: failed to obtain source from claim name");
    if (!Object.hasOwn(sources ?? {}, source)) throw new Error("oidc: source does not exist");
  }
}

const INT64_MIN = -(2 ** 63);

/** Of a date that was found to be one; 0: there is none. What is no time of Go's is the first there is: a token that never expires is expired. */
export function secondsOf(date: unknown): number {
  const seconds = Math.trunc(Number(date ?? 0));
  return Math.abs(seconds) < -INT64_MIN ? seconds : INT64_MIN;
}

function text(value: unknown, name: string, struct = "idToken"): void { if (value !== null && typeof value !== "string") throw wrong(value, name, "string", struct); }

function texts(value: unknown, name: string): void {
  if (value === null || typeof value === "string") return;
  if (!Array.isArray(value)) throw wrong(value, name, "[]string");
  for (const one of value) text(one, name);
}

/** A number, or one in quotes. */
function time(value: unknown, name: string): void {
  if (value === null) throw problem('strconv.ParseFloat: parsing "": invalid syntax');
  if (typeof value === "string" && !/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(value)) throw problem(`json: invalid number literal, trying to unmarshal ${goQuote(JSON.stringify(value))} into Number`);
  if (typeof value !== "string" && typeof value !== "number") throw wrong(value, name, "json.Number");
  if (!Number.isFinite(Number(value))) throw problem(`strconv.ParseFloat: parsing ${goQuote(String(value))}: value out of range`); // it would never come
}

function record(value: unknown, name: string, type: string): Readonly<Record<string, unknown>> {
  if (value === null) return {};
  if (typeof value !== "object" || Array.isArray(value)) throw wrong(value, name, type);
  return value as Readonly<Record<string, unknown>>;
}

function wrong(value: unknown, name: string, type: string, struct = "idToken"): Error { return problem(`json: cannot unmarshal ${jsonKindOf(value)} into Go struct field ${struct}.${name} of type ${type}`); }

function problem(what: string): Error { return new Error(`oidc: failed to unmarshal claims: ${what}`); }
