/** How callers may prove who they are beyond what the cluster itself issues, and the keys of ServiceAccount tokens, by kube-apiserver's settings. */
import { createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";
import { aggregate } from "../core/api/meta/aggregate.ts";
import { type TokenAuthenticator, tokenUnion } from "../core/authn/bearer-token.ts";
import { type AuthenticationConfiguration, authenticationConfiguration, oidcAuthenticator } from "../core/authn/oidc/configuration.ts";
import { oidcMetrics } from "../core/authn/oidc/metrics.ts";
import { type OidcTokens, oidcTokens } from "../core/authn/oidc/oidc.ts";
import { type ProxyHeaders, STANDARD_PROXY_HEADERS } from "../core/authn/request-header.ts";
import { staticTokenAuthenticator } from "../core/authn/static-token.ts";
import { readTokenFile } from "../core/authn/token-file.ts";
import { webhookTokens } from "../core/authn/webhook-token.ts";
import { goQuote } from "../core/api/meta/go-quote.ts";
import { parseUrl, urlProblem } from "../core/api/meta/go-url.ts";
import type { Clock } from "../core/lifecycle/clock.ts";
import type { Runnable } from "../core/lifecycle/run-all.ts";
import type { ReviewServer } from "../core/net/review-call.ts";
import type { Log } from "../core/observe/log.ts";
import type { Metrics } from "../core/observe/metrics.ts";
import { readCertificatePems } from "../core/pki/pem.ts";
import { type Certificate, parseCertificate } from "../core/pki/x509.ts";
import type { ApiServerArgs } from "./apiserver-args.ts";
import { ConfigError, fromFile } from "./config/config.ts";
import { followKubeconfig } from "./kubeconfig-file.ts";
import { reloadMeter } from "./reload-meter.ts";
import { reloadedFile } from "./reloaded-file.ts";

interface Options {
  readonly args: ApiServerArgs;
  readonly apiAudiences: readonly string[];
  /** Ours: nobody else's tokens may bear them. */
  readonly issuers: readonly string[];
  /** This server's, among several. */
  readonly serverId: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
}

export interface Authentication {
  /** In upstream's order: before those of the cluster, and after them. */
  readonly before: readonly TokenAuthenticator[];
  readonly after: readonly TokenAuthenticator[];
  anonymous(): { readonly enabled: boolean; readonly paths: readonly string[] };
  readonly parts: readonly Runnable[];
}

/** Throws ConfigError. */
export function authenticationSettings(options: Options): Authentication {
  const { args, apiAudiences, clock } = options;
  const tokenFile = args.text("token-auth-file");
  const before = tokenFile === undefined ? [] : [staticTokenAuthenticator(fromFile("token-auth-file", tokenFile, readTokenFile), apiAudiences)];
  const oidc = oidcSettings(options);
  const webhookFile = args.text("authentication-token-webhook-config-file");
  const version = args.text("authentication-token-webhook-version") ?? "v1beta1";
  if (version !== "v1" && version !== "v1beta1") throw new ConfigError(`authentication-token-webhook-version must be v1 or v1beta1, not ${JSON.stringify(version)}`);
  const webhook = webhookFile === undefined ? [] : [webhookTokens({ server: reviewServer(webhookFile), version, cacheMs: args.durationMs("authentication-token-webhook-cache-ttl"), apiAudiences, clock })];
  const flag = args.text("anonymous-auth");
  if (flag !== undefined && oidc.current().anonymous) throw new ConfigError("anonymous-auth cannot be set when the authentication-config file has a section \"anonymous\"");
  const everywhere = { enabled: args.boolean("anonymous-auth", true) && !opensToAll(options), paths: [] };
  return { before, after: [oidc.tokens, ...webhook], anonymous: () => oidc.current().anonymous ?? everywhere, parts: oidc.parts };
}

/** Who shows nothing is not let in where whoever comes in may do everything. */
function opensToAll({ args, log }: Options): boolean {
  const open = args.list("authorization-mode").includes("AlwaysAllow");
  if (open) log.warn("AnonymousAuth is not allowed with the AlwaysAllow authorizer. Resetting AnonymousAuth to false. You should use a different authorizer");
  return open;
}

interface Issuers { readonly configuration: AuthenticationConfiguration; readonly authenticators: readonly OidcTokens[]; readonly tokens: TokenAuthenticator }

interface Oidc { readonly tokens: TokenAuthenticator; current(): AuthenticationConfiguration; readonly parts: readonly Runnable[] }

const OIDC_FLAGS = ["oidc-issuer-url", "oidc-client-id", "oidc-ca-file", "oidc-username-claim", "oidc-username-prefix", "oidc-groups-claim", "oidc-groups-prefix", "oidc-required-claim", "oidc-signing-algs"] as const;

function oidcSettings({ args, apiAudiences, issuers, serverId, clock, log, metrics }: Options): Oidc {
  const path = args.text("authentication-config");
  const flags = OIDC_FLAGS.some((name) => args.text(name) !== undefined);
  if (path !== undefined && flags) throw new ConfigError("authentication-config file and oidc-* flags are mutually exclusive");
  const meter = oidcMetrics(metrics, { serverId, clock });
  const made = (configuration: AuthenticationConfiguration): Issuers => {
    const authenticators = configuration.jwt.map((one) => oidcTokens({ configuration: one, apiAudiences, clock, log, meter }));
    return { configuration, authenticators, tokens: tokenUnion(authenticators) };
  };
  if (path === undefined) {
    const { configuration, tokens } = made({ jwt: flags ? [fromFlags(args)] : [] });
    return { tokens, current: () => configuration, parts: [] };
  }
  const file = reloadedFile<Issuers>({
    setting: "authentication-config", path, clock, log, read: (text, before) => made(authenticationConfiguration(text, { disallowedIssuers: issuers, before: before?.configuration })),
    async settled({ configuration, authenticators }, signal) {
      const ends = await Promise.allSettled(authenticators.map((one) => one.initialized(signal)));
      const problems = ends.flatMap((end) => (end.status === "rejected" ? [(end.reason as Error).message] : []));
      if (problems.length > 0) throw new Error(aggregate([...problems, "context deadline exceeded"]));
      meter.keep(configuration.jwt.map(({ issuer }) => issuer.url));
    },
    meter: reloadMeter(metrics, "authentication", { serverId, clock }),
  });
  const tokens: TokenAuthenticator = { authenticateToken: (token, audiences, signal) => file.current().tokens.authenticateToken(token, audiences, signal) };
  return { tokens, current: () => file.current().configuration, parts: [file.part] };
}

function fromFlags(args: ApiServerArgs): ReturnType<typeof oidcAuthenticator> {
  const ca = args.text("oidc-ca-file");
  try {
    return oidcAuthenticator({
      issuerUrl: args.text("oidc-issuer-url") ?? "", clientId: args.text("oidc-client-id") ?? "", ca: ca === undefined ? undefined : fromFile("oidc-ca-file", ca, (text) => text), usernameClaim: args.text("oidc-username-claim"),
      usernamePrefix: args.text("oidc-username-prefix"), groupsClaim: args.text("oidc-groups-claim"), groupsPrefix: args.text("oidc-groups-prefix"), requiredClaims: args.list("oidc-required-claim"), signingAlgorithms: args.list("oidc-signing-algs"),
    });
  } catch (cause) {
    throw new ConfigError(`--kube-apiserver-arg oidc-*: ${(cause as Error).message}`, { cause });
  }
}

/** A kubeconfig that names a server to be asked, as webhooks of kube-apiserver do. */
export function reviewServer(path: string): ReviewServer {
  const { server, credentials } = followKubeconfig(path);
  return {
    url: server,
    get token() { return credentials().token; },
    get tls() {
      const { token: _, ...tls } = credentials();
      return tls;
    },
  };
}

const HOUR_MS = 3_600_000;

export interface ServiceAccountSettings {
  /** Where another program signs, who alone has the key, and tells which keys verify: `signing` and `verifying` are not used then. */
  readonly signingEndpoint: string | undefined;
  readonly signing: KeyObject;
  readonly verifying: readonly KeyObject[];
  /** The first is the one tokens are issued under. */
  readonly issuers: readonly string[];
  readonly apiAudiences: readonly string[];
  readonly jwksUri: string | undefined;
  readonly expirationSecondsMax: number | undefined;
  readonly extendExpiration: boolean;
}

/** `standard`: our own key and issuer, for what is not given. Throws ConfigError. */
export function serviceAccountSettings(args: ApiServerArgs, standard: { readonly signing: KeyObject; readonly verifying: readonly KeyObject[]; readonly issuer: string }): ServiceAccountSettings {
  const given = args.list("service-account-issuer");
  const issuers = given.length > 0 ? given : [standard.issuer];
  const audiences = args.list("api-audiences");
  const signingEndpoint = args.text("service-account-signing-endpoint") || undefined;
  const signingFile = args.text("service-account-signing-key-file");
  const keyFiles = args.list("service-account-key-file");
  const maxMs = args.durationMs("service-account-max-token-expiration");
  const jwksUri = args.text("service-account-jwks-uri");
  const problem = [...issuerProblems(given), ...keysProblems(jwksUri), ...endpointProblems(signingEndpoint, signingFile !== undefined || keyFiles.length > 0)][0];
  if (problem !== undefined) throw new ConfigError(problem);
  if (maxMs && (maxMs < HOUR_MS || maxMs > 2 ** 32 * 1000)) throw new ConfigError("the service-account-max-token-expiration must be between 1 hour and 2^32 seconds");
  const signing = signingFile === undefined ? standard.signing : fromFile("service-account-signing-key-file", signingFile, (text) => createPrivateKey(text));
  const verifying = keyFiles.length > 0 ? keyFiles.flatMap((path) => fromFile("service-account-key-file", path, readKeys)) : signingFile === undefined ? standard.verifying : [createPublicKey(signing), ...standard.verifying];
  return {
    signingEndpoint, signing, verifying, issuers, apiAudiences: audiences.length > 0 ? audiences : issuers.slice(0, 1), jwksUri,
    expirationSecondsMax: maxMs ? maxMs / 1000 : undefined, extendExpiration: args.boolean("service-account-extend-token-expiration", true),
  };
}

function* issuerProblems(issuers: readonly string[]): Iterable<string> {
  for (const [i, issuer] of issuers.entries()) {
    const problem = issuer.includes(":") ? urlProblem(issuer) : undefined;
    if (problem !== undefined) yield `service-account-issuer ${goQuote(issuer)} contained a ':' but was not a valid URL: ${problem}`;
    else if (issuer === "") yield "service-account-issuer should not be an empty string";
    else if (issuers.indexOf(issuer) < i) yield `service-account-issuer ${goQuote(issuer)} is already specified`;
  }
}

function* keysProblems(uri = ""): Iterable<string> {
  if (uri === "") return;
  const problem = urlProblem(uri);
  if (problem !== undefined) yield `service-account-jwks-uri must be a valid URL: ${problem}`;
  else if (parseUrl(uri).scheme !== "https") yield `service-account-jwks-uri requires https scheme, parsed as: ${uri}`;
}

function* endpointProblems(endpoint: string | undefined, hasKeyFiles: boolean): Iterable<string> {
  if (endpoint === undefined) return;
  if (hasKeyFiles) yield "can't set `--service-account-signing-key-file` and/or `--service-account-key-file` with `--service-account-signing-endpoint` (They are mutually exclusive)";
  if (endpoint.startsWith("@") && !/^@([a-zA-Z0-9_-]+\.)*[a-zA-Z0-9_-]+$/.test(endpoint)) yield `invalid value ${goQuote(endpoint)} passed for \`--service-account-signing-endpoint\`, when prefixed with @ must be a valid abstract socket name`;
}

/** Public or private keys, several in one file, with what else stands between them, as the parameters of curves. Source: kubernetes v1.36 client-go/util/keyutil/key.go ParsePublicKeysPEM */
function readKeys(text: string): KeyObject[] {
  const blocks = text.match(/-----BEGIN [A-Z ]+-----[\s\S]*?-----END [A-Z ]+-----/g) ?? [];
  const keys = blocks.flatMap((pem) => publicKeyOf(pem) ?? []);
  if (keys.length === 0) throw new Error("data does not contain any valid RSA or ECDSA public keys");
  return keys;
}

/** Undefined: it is no key. */
function publicKeyOf(pem: string): KeyObject | undefined {
  try {
    return createPublicKey(pem);
  } catch {
    return undefined;
  }
}

/**
 * In which headers front proxies say who a caller is. Our own, between this server and those behind it, has the standard ones. Throws ConfigError.
 *
 * Source: kubernetes v1.36 apiserver/pkg/server/options/authentication.go RequestHeaderAuthenticationOptions
 */
export function proxyHeaders(args: ApiServerArgs, log: Pick<Log, "warn">): ProxyHeaders {
  const standard = STANDARD_PROXY_HEADERS;
  const has = (names: readonly string[], wanted: string): boolean => names.some((name) => name.toLowerCase() === wanted.toLowerCase());
  function named(setting: Parameters<ApiServerArgs["texts"]>[0], usual: readonly string[]): readonly string[] {
    const given = args.texts(setting).flatMap((text) => text.split(",")).map((name) => name.trim());
    if (given.includes("")) throw new ConfigError(`--kube-apiserver-arg: empty value in "${setting}"`);
    if (given.length > 0 && usual[0] !== undefined && !has(given, usual[0])) log.warn("the standard header is not among those of front proxies: servers behind this one will not know who asks", { setting, given, standard: usual[0] });
    return given.length > 0 ? given : usual;
  }
  const uid = named("requestheader-uid-headers", standard.uid);
  if (uid.length > 0 && !has(uid, "X-Remote-Uid")) throw new ConfigError("--requestheader-uid-headers is set without specifying the standard X-Remote-Uid header - API aggregation will not work");
  return {
    uid, user: named("requestheader-username-headers", standard.user), group: named("requestheader-group-headers", standard.group), extraPrefixes: named("requestheader-extra-headers-prefix", standard.extraPrefixes),
  };
}

/**
 * Common names of those who may say whom they speak for; none: of all whom an authority of theirs vouches for, as it is where one is given without names. Throws ConfigError.
 *
 * Source: kubernetes v1.36 pkg/kubeapiserver/options/authentication.go Validate
 */
export function proxyNames(args: ApiServerArgs, { own, clientCas, proxyCas }: { readonly own: string; readonly clientCas: readonly Certificate[]; readonly proxyCas: readonly Certificate[] }): readonly string[] {
  const given = args.list("requestheader-allowed-names");
  if (given.some((name) => name.trim() === "")) throw new ConfigError('--kube-apiserver-arg: empty value in "requestheader-allowed-names"');
  if (given.length > 0 || proxyCas.length === 0) return [own, ...given];
  if (proxyCas.some(({ raw }) => clientCas.some((other) => Buffer.compare(raw, other.raw) === 0)))
    throw new ConfigError("--requestheader-client-ca-file and --client-ca-file contain overlapping certificates; --requestheader-allowed-names must be specified to ensure regular client certificates cannot set authenticating proxy headers for arbitrary users");
  return [];
}

export interface ExtraCas {
  readonly pem: () => readonly string[];
  /** With ours. The same list as long as both are the same. */
  with(own: () => readonly Certificate[]): () => readonly Certificate[];
  readonly parts: readonly Runnable[];
}

/** Authorities in a file that are trusted beside our own. The file is read again when it changes; one that cannot be used leaves those before. Throws ConfigError. */
export function extraCas(args: ApiServerArgs, setting: "client-ca-file" | "requestheader-client-ca-file", deps: { readonly clock: Clock; readonly log: Log; readonly changed: () => void }): ExtraCas {
  const path = args.text(setting);
  if (path === undefined) return { pem: () => [], with: (own) => own, parts: [] };
  const file = reloadedFile({ setting, path, read: authorities, ...deps });
  return {
    pem: () => [file.current().pem],
    parts: [file.part],
    with(own) {
      let known: { readonly own: readonly Certificate[]; readonly extra: readonly Certificate[]; readonly all: readonly Certificate[] } | undefined;
      return () => {
        const now = own(), extra = file.current().certificates;
        if (known?.own !== now || known.extra !== extra) known = { own: now, extra, all: [...now, ...extra] };
        return known.all;
      };
    },
  };
}

function authorities(pem: string): { readonly pem: string; readonly certificates: readonly Certificate[] } {
  const certificates = readCertificatePems(pem).map(parseCertificate);
  if (certificates.length === 0) throw new Error("data does not contain any valid RSA or ECDSA certificates");
  return { pem, certificates };
}
