/** Whom a token's claims stand for, as the configuration says. Pure. Source: kubernetes v1.36 apiserver/plugin/pkg/authenticator/token/oidc/oidc.go */
import { goQuote } from "../../api/meta/go-quote.ts";
import { jsonKindOf } from "../../api/patch/json-value.ts";
import type { UserInfo } from "../../api/request/user.ts";
import type { Claims } from "../../pki/jwt.ts";
import type { JwtAuthenticator } from "./configuration.ts";

const CREDENTIAL_ID = "authentication.kubernetes.io/credential-id";

/** Throws an Error that says why there is no user. */
export function userOf(claims: Claims, configuration: JwtAuthenticator): UserInfo {
  const name = usernameOf(claims, configuration.username);
  const groups = groupsOf(claims, configuration.groups);
  const uid = uidOf(claims, configuration.uid);
  const extra = extraOf(claims, configuration.extra);
  for (const [claim, wanted] of Object.entries(configuration.requiredClaims)) {
    if (!Object.hasOwn(claims, claim)) throw new Error(`oidc: required claim ${claim} not present in ID token`);
    const value = claims[claim] ?? "";
    if (typeof value !== "string") throw new Error(`oidc: parse claim ${claim}: ${wrongType(value, "string")}`);
    if (value !== wanted) throw new Error(`oidc: required claim ${claim} value does not match. Got = ${value}, want = ${wanted}`);
  }
  checkRules(configuration.claimRules, claims, "claim validation expression");
  const user: UserInfo = { name, groups, ...(uid === "" ? {} : { uid }), ...(Object.keys(extra).length > 0 ? { extra } : {}) };
  checkRules(configuration.userRules, { username: name, uid, groups: [...groups], extra }, "user info validation rule");
  return user;
}

function usernameOf(claims: Claims, { claim, prefix, expression }: JwtAuthenticator["username"]): string {
  if (expression) {
    const value = explained("username claim expression", () => expression.evaluate(claims));
    if (typeof value !== "string") throw new Error("oidc: error evaluating username claim expression: username claim expression must return a string");
    if (value === "") throw new Error("oidc: empty username via CEL expression is not allowed");
    return value;
  }
  const value = textOf(claims, claim, "username claims");
  if (claim === "email" && Object.hasOwn(claims, "email_verified")) {
    const isVerified = claims["email_verified"] ?? false;
    if (typeof isVerified !== "boolean") throw new Error(`oidc: parse 'email_verified' claim: ${wrongType(isVerified, "bool")}`);
    if (!isVerified) throw new Error("oidc: email not verified");
  }
  return prefix + value;
}

function groupsOf(claims: Claims, mapping: JwtAuthenticator["groups"]): readonly string[] {
  if (!mapping) return [];
  const { claim, prefix, expression } = mapping;
  if (expression) return strings(explained("group claim expression", () => expression.evaluate(claims)), "group claim expression");
  const value = claims[claim] ?? [];
  const list: readonly unknown[] = Array.isArray(value) ? value.map((one) => one ?? "") : [value]; // some issuers say a role as a string
  return list.map((group) => {
    if (typeof group !== "string") throw new Error(`oidc: parse groups claim ${goQuote(claim)}: ${wrongType(value, "string")}`);
    return prefix + group;
  });
}

function uidOf(claims: Claims, mapping: JwtAuthenticator["uid"]): string {
  if (!mapping) return "";
  const { claim, expression } = mapping;
  if (!expression) return textOf(claims, claim, "uid claim");
  const value = explained("uid claim expression", () => expression.evaluate(claims));
  if (typeof value !== "string") throw new Error("oidc: error evaluating uid claim expression: uid claim expression must return a string");
  return value;
}

/** What is null is empty, as for Go. */
function textOf(claims: Claims, claim: string, what: string): string {
  const value = claims[claim] === null ? "" : claims[claim];
  if (typeof value === "string") return value;
  throw new Error(`oidc: parse ${what} ${goQuote(claim)}: ${value === undefined ? "claim not present" : wrongType(value, "string")}`);
}

function extraOf(claims: Claims, mappings: JwtAuthenticator["extra"]): Record<string, readonly string[]> {
  const extra: Record<string, readonly string[]> = {};
  if (typeof claims["jti"] === "string" && claims["jti"] !== "") extra[CREDENTIAL_ID] = [`JTI=${claims["jti"]}`];
  const results = mappings.map(({ expression }) => expression.evaluate(claims)); // all of them, before any is looked at
  for (const [i, { key, expression }] of mappings.entries()) {
    const values = strings(results[i], `extra claim expression: ${expression.text}`);
    if (values.length > 0) extra[key] = values;
  }
  return extra;
}

/** A string, or a list of strings; nothing for "", null and an empty list. */
function strings(value: unknown, what: string): string[] {
  if (value === null || value === undefined || value === "") return [];
  if (typeof value === "string") return [value];
  if (Array.isArray(value) && value.every((one) => typeof one === "string")) return value.filter((one) => one !== "");
  throw new Error(`oidc: error evaluating ${what}: expression must return a string or a list of strings`);
}

function checkRules(rules: JwtAuthenticator["claimRules"], value: Readonly<Record<string, unknown>>, what: string): void {
  const results = explained(what, () => rules.map(({ expression }) => expression.evaluate(value))); // all of them, before any is looked at
  for (const [i, { expression, message }] of rules.entries()) {
    const holds = results[i];
    if (typeof holds !== "boolean") throw new Error(`oidc: error evaluating ${what}: validation expression must return a boolean`);
    if (!holds) throw new Error(`oidc: error evaluating ${what}: validation expression '${expression.text}' failed: ${message}`);
  }
}

function explained<T>(what: string, evaluate: () => T): T {
  try {
    return evaluate();
  } catch (cause) {
    throw new Error(`oidc: error evaluating ${what}: ${(cause as Error).message}`, { cause });
  }
}

function wrongType(value: unknown, wanted: string): string { return `json: cannot unmarshal ${jsonKindOf(value)} into Go value of type ${wanted}`; }
