/** The program that signs tokens of service accounts in our place (--kube-apiserver-arg service-account-signing-endpoint), by gRPC on a unix socket. */
import type { FetchedKeys, SigningService } from "../core/authn/external-signer.ts";
import type { Clock } from "../core/lifecycle/clock.ts";
import type { Metrics } from "../core/observe/metrics.ts";
import { serviceMethods } from "../node/cri/facts.ts";
import { rpcClient, RpcError } from "../node/cri/rpc-client.ts";

/** Source: kubernetes v1.36 staging/src/k8s.io/externaljwt/apis/v1/api.proto */
const FACTS = `S ExternalJWTSigner.Sign SignJWTRequest SignJWTResponse
S ExternalJWTSigner.FetchKeys FetchKeysRequest FetchKeysResponse
S ExternalJWTSigner.Metadata MetadataRequest MetadataResponse
M SignJWTRequest
 claims 1 string
M SignJWTResponse
 header 1 string
 signature 2 string
M FetchKeysRequest
M FetchKeysResponse
 keys 1 []Key
 data_timestamp 2 Timestamp
 refresh_hint_seconds 3 int64
M Key
 key_id 1 string
 key 2 bytes
 exclude_from_oidc_discovery 3 bool
M Timestamp
 seconds 1 int64
 nanos 2 int32
M MetadataRequest
M MetadataResponse
 max_token_expiration_seconds 1 int64
`;

export type TokenSignerMethods = {
  readonly "ExternalJWTSigner/Sign": { readonly request: { readonly claims: string }; readonly response: { readonly header?: string; readonly signature?: string }; readonly stream: false };
  readonly "ExternalJWTSigner/FetchKeys": { readonly request: object; readonly response: FetchedKeys; readonly stream: false };
  readonly "ExternalJWTSigner/Metadata": { readonly request: object; readonly response: { readonly max_token_expiration_seconds?: number }; readonly stream: false };
};

/** It may come up after us. */
const CALL_MS = 60_000;
const METADATA_MS = 10_000;
const BUCKETS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

export const TOKEN_SIGNER_METHODS = serviceMethods(FACTS, "v1");

/** `endpoint`: a path, or @name of an abstract socket. */
export function signingService({ endpoint, clock, metrics }: { readonly endpoint: string; readonly clock: Clock; readonly metrics: Metrics }): SigningService {
  const client = rpcClient<TokenSignerMethods>({ socket: endpoint.replace(/^@/, "unix:\0"), methods: TOKEN_SIGNER_METHODS, nowMs: clock.nowMs, waitForReady: true, timeoutMs: CALL_MS });
  const seconds = metrics.histogram("apiserver_externaljwt_request_duration_seconds", "[ALPHA] Request duration and time for calls to external-jwt-signer", BUCKETS);
  async function timed<T>(method: keyof TokenSignerMethods & string, call: Promise<T>): Promise<T> {
    const startMs = clock.uptimeMs();
    let code = "OK";
    try {
      return await call;
    } catch (error) {
      code = error instanceof RpcError ? error.code : "Unknown";
      throw error;
    } finally {
      seconds.observe((clock.uptimeMs() - startMs) / 1000, { method: `/v1.${method}`, code });
    }
  }
  return {
    sign: (claims, signal) => timed("ExternalJWTSigner/Sign", client.call("ExternalJWTSigner/Sign", { claims }, { signal })),
    fetchKeys: () => timed("ExternalJWTSigner/FetchKeys", client.call("ExternalJWTSigner/FetchKeys", {})),
    metadata: () => timed("ExternalJWTSigner/Metadata", client.call("ExternalJWTSigner/Metadata", {}, { timeoutMs: METADATA_MS })),
    close: () => client.close(),
  };
}
