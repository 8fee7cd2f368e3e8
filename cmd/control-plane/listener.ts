/** Where clients connect: HTTPS with the cluster's own certificate, or with those that kube-apiserver's settings name. */
import { createSecureContext, type SecureContext } from "node:tls";
import { compileRegex } from "../../core/cel/regex.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Random } from "../../core/lifecycle/random.ts";
import type { Runnable } from "../../core/lifecycle/run-all.ts";
import { httpsServer, type HttpsServer } from "../../core/net/http-server.ts";
import { type TlsPolicy, tlsPolicy } from "../../core/net/tls-policy.ts";
import { type TlsMaterial, tlsOptions } from "../../core/net/tls.ts";
import type { Log } from "../../core/observe/log.ts";
import type { Metrics } from "../../core/observe/metrics.ts";
import { SERVING_NAME } from "../../core/pki/identities.ts";
import type { Pki } from "../../core/pki/pki.ts";
import type { ColumnTexts } from "../../core/server/column-texts.ts";
import { crossOrigin, originPatternProblem } from "../../core/server/cross-origin.ts";
import { goaway, GOAWAY_CHANCE_MAX } from "../../core/server/goaway.ts";
import { httpFront } from "../../core/server/http.ts";
import type { Handler } from "../../core/server/scope.ts";
import { strictTransport, strictTransportProblem } from "../../core/server/strict-transport.ts";
import type { ApiServerArgs } from "../apiserver-args.ts";
import { ConfigError } from "../config/config.ts";
import type { Settings } from "../config/flags.ts";
import { givenCertificates, type KeyPair } from "../given-certificates.ts";
import type { ServerTunnel } from "../tunnel.ts";
import type { Identity } from "./identity.ts";

/** Selectors of thousands of words fit. Go reads four times as much, from whoever connects; here a few hundred strangers would take the memory of a small machine. */
const HEADER_BYTES_MAX = 256 * 1024;
/** Source: kubernetes v1.36 apiserver/pkg/server/secure_serving.go */
const STREAMS_MAX = 100;

export interface Listener {
  readonly server: HttpsServer;
  readonly parts: readonly Runnable[];
  /** What it shows, and whose certificates it believes. */
  readonly tls: () => TlsMaterial;
  /** Shows clients the certificates as they are now. */
  reloadCertificates(): void;
  /** Whenever what `tls` says may be another. Returns what ends that. */
  onReload(handler: () => void): () => void;
}

interface Options {
  readonly settings: Pick<Settings, "bindAddress" | "httpsListenPort">;
  readonly args: ApiServerArgs;
  readonly pki: Pki;
  readonly extraCas: Identity["extraCas"];
  readonly handler: Handler;
  /** Whether another server answers at the path. */
  readonly isPassedOn: (path: string) => boolean;
  readonly metrics: Metrics;
  readonly columnTexts: ColumnTexts;
  /** CBOR is read and written. */
  readonly cbor: boolean;
  /** Takes what nodes dial in for. */
  readonly tunnel: Pick<ServerTunnel, "handler">;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

/** Throws ConfigError. */
export function listenerOf({ settings, args, pki, extraCas, handler, isPassedOn, metrics, columnTexts, cbor, tunnel, clock, random, log }: Options): Listener {
  const policy = tlsPolicyOf(args);
  const given = givenCertificates(args, { clusterCas: () => pki.authority("server-ca").bundle, clock, log: log.with({ part: "https" }) });
  const material = (shown: KeyPair | undefined = given.standard()): TlsMaterial => {
    const { keyPem: key, certificatePem: cert } = pki.leaf(SERVING_NAME);
    return { key, cert, ...shown, clientCas: [pki.authority("client-ca").bundlePem, pki.authority("request-header-ca").bundlePem, ...extraCas.clients(), ...extraCas.proxies()], policy };
  };
  const contexts = new Map<KeyPair, SecureContext>(); // until a certificate changes
  const contextFor = (pair: KeyPair): SecureContext => {
    const context = contexts.get(pair) ?? createSecureContext(tlsOptions(material(pair)));
    contexts.set(pair, context);
    return context;
  };
  const front = httpFront({
    handler: goaway(strictTransport(crossOrigin(handler, { isAllowed: originsOf(args), random }), strictTransportOf(args)), { chance: goawayChanceOf(args), random }),
    clock, log: log.with({ part: "server" }), stopping: () => server.stopping, columnTexts, cbor,
  });
  const failedHandshakes = metrics.counter("apiserver_tls_handshake_errors_total", "[ALPHA] Number of requests dropped with 'TLS handshake error from' error").with({});
  const server = httpsServer({
    handshakeFailed: () => failedHandshakes.inc(), limits: { headerBytesMax: HEADER_BYTES_MAX, streamsMax: args.integer("http2-max-streams-per-connection") || STREAMS_MAX },
    host: settings.bindAddress, port: settings.httpsListenPort, portFlag: "--https-listen-port",
    tls: () => material(),
    certificateFor: given.named && ((serverName) => {
      const pair = given.named?.(serverName);
      return pair && contextFor(pair);
    }),
    handler: tunnel.handler(front.request), upgrade: front.upgrade, handsOver: isPassedOn, log: log.with({ part: "https" }), clock,
  });
  const handlers = new Set<() => void>();
  const reloadCertificates = (): void => {
    contexts.clear();
    server.reloadCertificates();
    for (const handler of handlers) handler();
  };
  const onReload = (handler: () => void): (() => void) => {
    handlers.add(handler);
    return () => void handlers.delete(handler);
  };
  return { server, tls: () => material(), parts: [server, given.part(reloadCertificates)], reloadCertificates, onReload };
}

/** Throws ConfigError. */
function tlsPolicyOf(args: ApiServerArgs): TlsPolicy | undefined {
  try {
    return tlsPolicy({ minVersion: args.text("tls-min-version"), cipherSuites: args.list("tls-cipher-suites") });
  } catch (cause) {
    throw new ConfigError(`--kube-apiserver-arg: ${(cause as Error).message}`, { cause });
  }
}

/** Throws ConfigError. */
function strictTransportOf(args: ApiServerArgs): readonly string[] {
  const directives = args.texts("strict-transport-security-directives").filter((text) => text !== "").flatMap((text) => text.split(","));
  const problem = strictTransportProblem(directives);
  if (problem !== undefined) throw new ConfigError(`--kube-apiserver-arg ${problem}`);
  return directives;
}

/** Which origins may ask; undefined: none. Throws ConfigError. */
function originsOf(args: ApiServerArgs): ((origin: string) => boolean) | undefined {
  const patterns = args.texts("cors-allowed-origins").filter((text) => text !== "").flatMap((text) => text.split(","));
  if (patterns.length === 0) return undefined;
  const compiled = patterns.map((pattern) => {
    const problem = originPatternProblem(pattern);
    if (problem !== undefined) throw new ConfigError(`--kube-apiserver-arg ${problem}`);
    try {
      return compileRegex(pattern);
    } catch (cause) {
      throw new ConfigError(`--kube-apiserver-arg cors-allowed-origins has an invalid regular expression: ${(cause as Error).message}`, { cause });
    }
  });
  return (origin) => compiled.some((one) => one.test(origin));
}

/** Throws ConfigError. */
function goawayChanceOf(args: ApiServerArgs): number {
  const chance = args.decimal("goaway-chance") ?? 0;
  if (chance > GOAWAY_CHANCE_MAX) throw new ConfigError(`--kube-apiserver-arg goaway-chance can not be less than 0 or greater than ${GOAWAY_CHANCE_MAX}`);
  return chance;
}
