/** Who callers are, in all the ways the cluster and kube-apiserver's settings allow, and the ServiceAccount tokens that we issue and let others verify. */
import type { KeyObject } from "node:crypto";
import type { Authenticator } from "../../core/authn/authenticator.ts";
import { authenticatorChain } from "../../core/authn/authn.ts";
import { bearerTokenAuthenticator, type TokenAuthenticator, tokenUnion } from "../../core/authn/bearer-token.ts";
import { bootstrapTokenAuthenticator } from "../../core/authn/bootstrap-token.ts";
import { legacyTokenUse } from "../../core/authn/legacy-token-use.ts";
import { JWKS_PATH } from "../../core/authn/openid.ts";
import { type ProxyHeaders, requestHeaderAuthenticator } from "../../core/authn/request-header.ts";
import { revokedNodes } from "../../core/authn/revoked-nodes.ts";
import { serviceAccountTokenAuthenticator } from "../../core/authn/service-account.ts";
import { staticTokenAuthenticator } from "../../core/authn/static-token.ts";
import { type TokenIssuer, tokenIssuer } from "../../core/authn/token-issuer.ts";
import { certificateAuthenticator } from "../../core/authn/x509.ts";
import type { Client } from "../../core/client/client.ts";
import type { Informers } from "../../core/client/informer-factory.ts";
import { lookup } from "../../core/client/lookup.ts";
import { CONFIG_MAPS, NODES, PODS, SECRETS, SERVICE_ACCOUNTS } from "../../core/client/resources.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Random } from "../../core/lifecycle/random.ts";
import type { Runnable } from "../../core/lifecycle/run-all.ts";
import type { Log } from "../../core/observe/log.ts";
import type { Metrics } from "../../core/observe/metrics.ts";
import type { Pki } from "../../core/pki/pki.ts";
import type { PathHandler } from "../../core/server/scope.ts";
import type { ApiServerArgs } from "../apiserver-args.ts";
import { authenticationSettings, extraCas, proxyHeaders, proxyNames as proxyNamesOf, type ServiceAccountSettings, serviceAccountSettings } from "../authentication.ts";
import { releasedMs } from "../version.ts";
import { openIdAnswer } from "./openid-paths.ts";
import { tokenKeys } from "./token-keys.ts";

/** The common name this server shows to servers behind it. */
const OUR_PROXY = "system:auth-proxy";
const ISSUER_PATH = "https://kubernetes.default.svc";

interface Options {
  readonly args: ApiServerArgs;
  readonly pki: Pki;
  /** The cluster's token, which joining machines show. */
  readonly joinSecret: string;
  readonly clusterDomain: string;
  /** https://address:port of this server. */
  readonly url: string;
  /** This server's, among several. */
  readonly serverId: string;
  readonly client: Client;
  readonly informers: Informers;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: Metrics;
}

export interface Identity {
  readonly authenticator: Authenticator;
  readonly tokens: TokenAuthenticator;
  readonly tokenIssuer: TokenIssuer;
  readonly serviceAccounts: ServiceAccountSettings;
  /** Signs tokens that stand in Secrets; nothing, where another program signs tokens, which does not sign these. */
  readonly legacyTokenKey: KeyObject | undefined;
  /** OpenID discovery: lets others verify our ServiceAccount tokens. */
  readonly paths: PathHandler;
  /** Authorities trusted beside our own, of callers and of front proxies, as they are now. */
  readonly extraCas: { clients(): readonly string[]; proxies(): readonly string[] };
  /** Whenever those are others. */
  onOtherCas(handler: () => void): void;
  /** Common names of front proxies that may say who a caller is. */
  readonly proxyNames: readonly string[];
  /** In which headers. */
  readonly proxyHeaders: ProxyHeaders;
  readonly parts: readonly Runnable[];
}

/** Throws ConfigError, and what keeps another program from signing tokens, where one is to. */
export async function identityOf({ args, pki, joinSecret, clusterDomain, url, serverId, client, informers, clock, random, log, metrics }: Options): Promise<Identity> {
  const serviceAccounts = serviceAccountSettings(args, { ...pki.serviceAccountKeys, issuer: `${ISSUER_PATH}.${clusterDomain}` });
  const { apiAudiences, issuers, jwksUri = `${url}${JWKS_PATH}` } = serviceAccounts;
  const issuer = issuers[0]!;
  const { sign, keys, newerKeys, published, legacyTokenKey, parts, ...lifetimes } = await tokenKeys({ settings: serviceAccounts, clock, log, metrics });
  const secrets = client.resource(SECRETS);
  const lookups = {
    serviceAccounts: lookup(informers.of(SERVICE_ACCOUNTS), client.resource(SERVICE_ACCOUNTS)),
    pods: lookup(informers.of(PODS), client.resource(PODS)),
    secrets: lookup(informers.of(SECRETS), secrets),
    nodes: lookup(informers.of(NODES), client.resource(NODES)),
  };
  const settings = authenticationSettings({ args, apiAudiences, issuers, serverId, clock, metrics, log: log.with({ part: "authentication" }) });
  const tokens = tokenUnion([
    ...settings.before,
    staticTokenAuthenticator([{ token: joinSecret, user: { name: "system:bootstrap:token", groups: ["system:bootstrappers", "system:bootstrappers:coracle"] } }], apiAudiences),
    serviceAccountTokenAuthenticator({ ...lookups, keys, newerKeys, issuers, apiAudiences, clock, metrics, markUsed: legacyTokenUse({ secrets, clock, log }) }),
    bootstrapTokenAuthenticator({ secrets: lookups.secrets, apiAudiences, clock, log }),
    ...settings.after,
  ]);
  const told: (() => void)[] = [];
  const reloaded = { clock, log: log.with({ part: "authentication" }), changed: () => { for (const handler of told) handler(); } };
  const [clientCas, proxyCas] = [extraCas(args, "client-ca-file", reloaded), extraCas(args, "requestheader-client-ca-file", reloaded)];
  const headers = proxyHeaders(args, log);
  const clientRoots = clientCas.with(() => pki.authority("client-ca").bundle);
  const proxyNames = proxyNamesOf(args, { own: OUR_PROXY, clientCas: clientRoots(), proxyCas: proxyCas.with(() => [])() });
  return {
    tokens, serviceAccounts, legacyTokenKey, proxyNames, proxyHeaders: headers,
    extraCas: { clients: clientCas.pem, proxies: proxyCas.pem },
    onOtherCas: (handler) => void told.push(handler),
    authenticator: authenticatorChain({
      anonymous: settings.anonymous,
      log,
      authenticators: [
        requestHeaderAuthenticator({ roots: proxyCas.with(() => pki.authority("request-header-ca").bundle), clock, allowedNames: proxyNames, headers }),
        certificateAuthenticator({ roots: clientRoots, clock, releasedMs: releasedMs(), metrics, revokedNodes: revokedNodes(informers.of(CONFIG_MAPS)) }),
        bearerTokenAuthenticator(tokens, apiAudiences),
      ],
    }),
    tokenIssuer: tokenIssuer({ ...lookups, ...lifetimes, sign, issuer, apiAudiences, clock, random }),
    paths: (request) => openIdAnswer(request, { issuer, jwksUri, ...published() }),
    parts: [...parts, ...settings.parts, ...clientCas.parts, ...proxyCas.parts],
  };
}
