/**
 * AuthenticationConfiguration: whose tokens are believed, whom their claims stand for, and where callers without credentials get in.
 *
 *   apiVersion: apiserver.config.k8s.io/v1
 *   kind: AuthenticationConfiguration
 *   jwt:
 *   - issuer: {url: https://issuer.example.com, audiences: [my-cluster]}
 *     claimMappings: {username: {expression: 'claims.sub + "@example"'}, groups: {claim: groups, prefix: ""}}
 *   anonymous: {enabled: true, conditions: [{path: /livez}]}
 *
 * `oidcAuthenticator` says the same with kube-apiserver's --oidc-* flags, for one issuer.
 *
 * Source: kubernetes v1.36 apiserver/pkg/apis/apiserver/{types.go,validation/validation.go}, pkg/kubeapiserver/options/authentication.go
 */
import { isDeepStrictEqual } from "node:util";
import { type Fields, fieldsOf } from "../../api/codec/strict-fields.ts";
import { parseStrictYaml } from "../../api/codec/yaml.ts";
import { isDomainPrefixedPath } from "../../api/meta/domains.ts";
import { duplicate, type FieldError, forbidden, formatFieldErrors, invalid, required } from "../../api/meta/field-error.ts";
import { goQuote } from "../../api/meta/go-quote.ts";
import { parseUrl, UrlError } from "../../api/meta/go-url.ts";
import { readCertificatePems } from "../../pki/pem.ts";
import { parseCertificate } from "../../pki/x509.ts";
import { type ClaimExpression, claimExpression, userExpression } from "./expressions.ts";
import { ALL_ALGORITHMS } from "./verify-token.ts";

export interface PrefixedClaim { readonly claim: string; readonly prefix: string; readonly expression?: ClaimExpression | undefined }

export interface JwtAuthenticator {
  readonly issuer: { readonly url: string; readonly discoveryUrl: string; readonly ca?: string | undefined; readonly audiences: readonly string[]; /** egressSelectorType */ readonly egress?: string | undefined };
  readonly algorithms?: readonly string[] | undefined;
  readonly username: PrefixedClaim;
  readonly groups: PrefixedClaim | undefined;
  readonly uid: Omit<PrefixedClaim, "prefix"> | undefined;
  readonly extra: readonly { readonly key: string; readonly expression: ClaimExpression }[];
  readonly requiredClaims: Readonly<Record<string, string>>;
  readonly claimRules: readonly { readonly expression: ClaimExpression; readonly message: string }[];
  readonly userRules: readonly { readonly expression: ClaimExpression; readonly message: string }[];
}

export interface AuthenticationConfiguration {
  readonly jwt: readonly JwtAuthenticator[];
  /** Absent: as --anonymous-auth says. No paths: everywhere. */
  readonly anonymous?: { readonly enabled: boolean; readonly paths: readonly string[] } | undefined;
}

const VERSIONS = ["v1", "v1beta1", "v1alpha1"].map((version) => `apiserver.config.k8s.io/${version}`);
const ISSUERS_MAX = 64;

interface FileOptions {
  /** Ours. */
  readonly disallowedIssuers: readonly string[];
  /** What the file said when the server was started: who may be anonymous stays as it was. */
  readonly before?: AuthenticationConfiguration | undefined;
}

/** Throws for a file that cannot be. */
export function authenticationConfiguration(text: string, { disallowedIssuers, before }: FileOptions): AuthenticationConfiguration {
  if (text === "") throw new Error("empty config data");
  const fields = fieldsOf(parseStrictYaml(text), { kind: "AuthenticationConfiguration", apiVersions: VERSIONS });
  const problems: FieldError[] = [];
  const given = fields.objects("jwt");
  if (given.length > ISSUERS_MAX) throw new Error(formatFieldErrors([{ type: "FieldValueTooMany", field: "jwt", badValue: given.length, detail: `must have at most ${ISSUERS_MAX} items` }]));
  const jwt: JwtAuthenticator[] = [];
  for (const one of given) {
    const authenticator = readAuthenticator(one, { disallowedIssuers, problems });
    const { url, discoveryUrl } = authenticator.issuer;
    if (jwt.some(({ issuer }) => issuer.url === url)) problems.push(duplicate(`${one.path}.issuer.url`, url));
    if (discoveryUrl !== "" && jwt.some(({ issuer }) => issuer.discoveryUrl === discoveryUrl)) problems.push(duplicate(`${one.path}.issuer.discoveryURL`, discoveryUrl));
    jwt.push(authenticator);
  }
  const anonymous = fields.has("anonymous") ? readAnonymous(fields.object("anonymous"), problems) : undefined;
  fields.any("anonymous"); // it was looked at
  fields.end();
  if (before && !isDeepStrictEqual(before.anonymous, anonymous)) problems.push(forbidden("anonymous", "changed from initial configuration file"));
  if (problems.length > 0) throw new Error(formatFieldErrors(problems));
  const egress = jwt.find(({ issuer }) => issuer.egress)?.issuer.egress;
  if (egress !== undefined) throw new Error(`oidc: egress lookup required with egress selector type "${egress}"`); // --egress-selector-config-file is not taken
  return { jwt, ...(anonymous ? { anonymous } : {}) };
}

function readAnonymous(fields: Fields, problems: FieldError[]): { readonly enabled: boolean; readonly paths: readonly string[] } {
  const enabled = fields.boolean("enabled") ?? false;
  const paths = fields.objects("conditions").map((condition) => {
    const path = condition.text("path");
    condition.end();
    return path;
  });
  fields.end();
  if (!enabled && paths.length > 0) problems.push(invalid("anonymous.conditions", paths.map((path) => ({ Path: path })), "enabled should be set to true when conditions are defined"));
  return { enabled, paths };
}

interface Reading { readonly disallowedIssuers: readonly string[]; readonly problems: FieldError[] }

function readAuthenticator(fields: Fields, { disallowedIssuers, problems }: Reading): JwtAuthenticator {
  const issuer = readIssuer(fields.object("issuer"), { disallowedIssuers, problems });
  const requiredClaims: Record<string, string> = {};
  const claimRules: { expression: ClaimExpression; message: string }[] = [];
  const seen = new Set<string>();
  for (const rule of fields.objects("claimValidationRules")) {
    const [claim, value, expression, message] = [rule.text("claim"), rule.text("requiredValue"), rule.text("expression"), rule.text("message")];
    rule.end();
    if (claim !== "" && expression !== "") problems.push(invalid(rule.path, claim, "claim and expression can't both be set"));
    else if (claim === "" && expression === "") problems.push(required(rule.path, "claim or expression is required"));
    else if (claim !== "") {
      if (message !== "") problems.push(invalid(`${rule.path}.message`, message, "may not be specified when claim is set"));
      if (Object.hasOwn(requiredClaims, claim)) problems.push(duplicate(`${rule.path}.claim`, claim));
      requiredClaims[claim] = value;
    } else {
      if (value !== "") problems.push(invalid(`${rule.path}.requiredValue`, value, "may not be specified when expression is set"));
      if (seen.has(expression)) problems.push(duplicate(`${rule.path}.expression`, expression));
      else claimRules.push({ expression: compiled(expression, `${rule.path}.expression`, problems, { condition: true }), message });
      seen.add(expression);
    }
  }
  const mappings = fields.object("claimMappings");
  const username = readPrefixed(mappings.object("username"), { problems, isRequired: true });
  const groups = readPrefixed(mappings.object("groups"), { problems, isRequired: false });
  const uid = readUid(mappings.object("uid"), problems);
  const extra = readExtra(mappings.objects("extra"), problems);
  mappings.end();
  const usesVerified = [username?.expression, ...extra.map(({ expression }) => expression), ...claimRules.map(({ expression }) => expression)].some((one) => one?.usesClaim("email_verified"));
  if (username?.expression?.usesClaim("email") && !usesVerified)
    problems.push(invalid(
      `${mappings.path}.username.expression`, username.expression.text,
      "claims.email_verified must be used in claimMappings.username.expression or claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in claimMappings.username.expression",
    ));
  const userRules = readUserRules(fields.objects("userValidationRules"), problems);
  fields.end();
  return { issuer, username: username ?? { claim: "", prefix: "" }, groups, uid, extra, requiredClaims, claimRules, userRules };
}

function readIssuer(fields: Fields, { disallowedIssuers, problems }: Reading): JwtAuthenticator["issuer"] {
  const { path } = fields;
  const [url, discoveryUrl, ca, policy] = [fields.text("url"), fields.text("discoveryURL"), fields.text("certificateAuthority"), fields.text("audienceMatchPolicy")];
  const audiences = fields.strings("audiences");
  const egress = fields.text("egressSelectorType");
  fields.end();
  if (url === "") problems.push(required(`${path}.url`));
  else problems.push(...urlProblems(url, `${path}.url`, disallowedIssuers));
  if (discoveryUrl !== "") {
    if (url !== "" && url.replace(/\/+$/, "") === discoveryUrl.replace(/\/+$/, "")) problems.push(invalid(`${path}.discoveryURL`, discoveryUrl, "discoveryURL must be different from URL"));
    problems.push(...urlProblems(discoveryUrl, `${path}.discoveryURL`, []));
  }
  if (audiences.length === 0) problems.push(required(`${path}.audiences`, `at least one ${path}.audiences is required`));
  for (const [i, audience] of audiences.entries()) {
    if (audience === "") problems.push(required(`${path}.audiences[${i}]`));
    if (audiences.indexOf(audience) < i) problems.push(duplicate(`${path}.audiences[${i}]`, audience));
  }
  if (audiences.length > 1 && policy !== "MatchAny") problems.push(invalid(`${path}.audienceMatchPolicy`, policy, "audienceMatchPolicy must be MatchAny for multiple audiences"));
  if (audiences.length === 1 && policy !== "" && policy !== "MatchAny") problems.push(invalid(`${path}.audienceMatchPolicy`, policy, "audienceMatchPolicy must be empty or MatchAny for single audience"));
  const caProblem = ca === "" ? undefined : bundleProblem(ca);
  if (caProblem !== undefined) problems.push(invalid(`${path}.certificateAuthority`, "<omitted>", caProblem));
  if (egress !== "" && egress !== "cluster" && egress !== "controlplane") problems.push(invalid(`${path}.egressSelectorType`, egress, "egress selector must be either controlplane or cluster"));
  return { url, discoveryUrl, audiences, egress, ...(ca === "" ? {} : { ca }) };
}

function* urlProblems(text: string, path: string, disallowed: readonly string[]): Iterable<FieldError> {
  if (disallowed.includes(text)) yield invalid(path, text, `URL must not overlap with disallowed issuers: [${[...disallowed].sort().join(" ")}]`);
  try {
    const url = parseUrl(text);
    if (url.scheme !== "https") yield invalid(path, text, "URL scheme must be https");
    if (url.user !== undefined) yield invalid(path, text, "URL must not contain a username or password");
    if (url.rawQuery !== "") yield invalid(path, text, "URL must not contain a query");
    if (url.fragment !== "") yield invalid(path, text, "URL must not contain a fragment");
  } catch (error) {
    if (!(error instanceof UrlError)) throw error;
    yield invalid(path, text, error.message);
  }
}

function bundleProblem(pem: string): string | undefined {
  const certificates = readCertificatePems(pem);
  if (certificates.length === 0) return "data does not contain any valid RSA or ECDSA certificates";
  try {
    certificates.forEach(parseCertificate);
    return undefined;
  } catch {
    return "x509: malformed certificate";
  }
}

function readPrefixed(fields: Fields, { problems, isRequired }: { readonly problems: FieldError[]; readonly isRequired: boolean }): PrefixedClaim | undefined {
  const { path } = fields;
  const [claim, expression] = [fields.text("claim"), fields.text("expression")];
  const prefix = fields.has("prefix") ? fields.text("prefix") : undefined;
  fields.any("prefix");
  fields.end();
  if (claim !== "" && expression !== "") problems.push(invalid(path, "", "claim and expression can't both be set"));
  else if (claim === "" && expression === "" && isRequired) problems.push(required(path, "claim or expression is required"));
  else if (expression !== "" && prefix !== undefined) problems.push(invalid(`${path}.prefix`, prefix, "may not be specified when expression is set"));
  else if (claim !== "" && prefix === undefined) problems.push(required(`${path}.prefix`, "prefix is required when claim is set. It can be set to an empty string to disable prefixing"));
  if (claim === "" && expression === "") return undefined;
  const read = claim !== "" || expression === "" ? undefined : compiled(expression, `${path}.expression`, problems);
  return { claim, prefix: prefix ?? "", ...(read && prefix === undefined ? { expression: read } : {}) };
}

function readUid(fields: Fields, problems: FieldError[]): JwtAuthenticator["uid"] {
  const [claim, expression] = [fields.text("claim"), fields.text("expression")];
  fields.end();
  if (claim !== "" && expression !== "") problems.push(invalid(fields.path, "", "claim and expression can't both be set"));
  if (claim === "" && expression === "") return undefined;
  return { claim, ...(claim !== "" || expression === "" ? {} : { expression: compiled(expression, `${fields.path}.expression`, problems) }) };
}

function readExtra(list: readonly Fields[], problems: FieldError[]): JwtAuthenticator["extra"] {
  const seen = new Set<string>();
  return list.flatMap((fields) => {
    const [key, expression] = [fields.text("key"), fields.text("valueExpression")];
    fields.end();
    const domain = key.includes("/") ? key.slice(0, key.indexOf("/")) : "";
    problems.push(...isDomainPrefixedPath(`${fields.path}.key`, key));
    if (key !== key.toLowerCase()) problems.push(invalid(`${fields.path}.key`, key, "must be lowercase"));
    if (/(^|\.)(kubernetes|k8s)\.io$/.test(domain)) problems.push(invalid(`${fields.path}.key`, key, "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use"));
    if (seen.has(key)) {
      problems.push(duplicate(`${fields.path}.key`, key));
      return [];
    }
    seen.add(key);
    if (expression !== "") return [{ key, expression: compiled(expression, `${fields.path}.valueExpression`, problems) }];
    problems.push(required(`${fields.path}.valueExpression`));
    return [];
  });
}

function readUserRules(list: readonly Fields[], problems: FieldError[]): JwtAuthenticator["userRules"] {
  const seen = new Set<string>();
  return list.flatMap((fields) => {
    const [text, message] = [fields.text("expression"), fields.text("message")];
    fields.end();
    if (text === "") problems.push(required(`${fields.path}.expression`));
    else if (seen.has(text)) problems.push(duplicate(`${fields.path}.expression`, text));
    else {
      seen.add(text);
      const expression = userExpression(text);
      if (expression.problem !== undefined) problems.push(invalid(`${fields.path}.expression`, text, expression.problem));
      return [{ expression, message }];
    }
    return [];
  });
}

function compiled(text: string, path: string, problems: FieldError[], how?: { readonly condition: boolean }): ClaimExpression {
  const expression = claimExpression(text, how);
  if (expression.problem !== undefined) problems.push(invalid(path, text, expression.problem));
  return expression;
}

/** kube-apiserver's --oidc-* flags. */
export interface OidcFlags {
  readonly issuerUrl: string;
  readonly clientId: string;
  readonly ca?: string | undefined;
  readonly usernameClaim?: string | undefined;
  /** "-": none. Absent: the issuer's URL and "#", except for email. */
  readonly usernamePrefix?: string | undefined;
  readonly groupsClaim?: string | undefined;
  readonly groupsPrefix?: string | undefined;
  /** claim=value */
  readonly requiredClaims: readonly string[];
  readonly signingAlgorithms: readonly string[];
}

/** Throws for flags that cannot be. */
export function oidcAuthenticator({ issuerUrl, clientId, ca, usernameClaim = "sub", usernamePrefix, groupsClaim, groupsPrefix = "", requiredClaims, signingAlgorithms }: OidcFlags): JwtAuthenticator {
  if (clientId === "") throw new Error("oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set");
  const problems = [...urlProblems(issuerUrl, "oidc-issuer-url", [])];
  if (problems.length > 0) throw new Error(formatFieldErrors(problems));
  const unknown = signingAlgorithms.find((algorithm) => !ALL_ALGORITHMS.includes(algorithm));
  if (unknown !== undefined) throw new Error(`oidc: unsupported signing alg: ${goQuote(unknown)}`);
  const prefix = usernamePrefix === "-" ? "" : usernamePrefix ?? (usernameClaim === "email" ? "" : `${issuerUrl}#`);
  return {
    issuer: { url: issuerUrl, discoveryUrl: "", audiences: [clientId], ...(ca === undefined ? {} : { ca }) }, algorithms: signingAlgorithms.length > 0 ? signingAlgorithms : ["RS256"],
    username: { claim: usernameClaim, prefix }, groups: groupsClaim ? { claim: groupsClaim, prefix: groupsPrefix } : undefined, uid: undefined, extra: [], claimRules: [], userRules: [],
    requiredClaims: Object.fromEntries(requiredClaims.map((pair) => {
      const at = pair.indexOf("=");
      if (at <= 0) throw new Error(`oidc-required-claim ${JSON.stringify(pair)} must be key=value`);
      return [pair.slice(0, at), pair.slice(at + 1)];
    })),
  };
}
