/**
 * Tokens of service accounts that another program on this machine signs, which alone has the key: a TPM, a smart card, a key service.
 *
 *   token request ─▶ Sign(claims) ─▶ header.claims.signature
 *   who shows a token ─▶ the keys of FetchKeys, asked for again as often as it says, and when a token names one that is not among them
 *
 * Source: kubernetes v1.36 pkg/serviceaccount/externaljwt/{plugin,metrics}, pkg/controlplane/apiserver/options/options.go completeServiceAccountOptions
 */
import { createPublicKey } from "node:crypto";
import { goQuote } from "../api/meta/go-quote.ts";
import type { Clock } from "../lifecycle/clock.ts";
import type { Runnable } from "../lifecycle/run-all.ts";
import type { Log } from "../observe/log.ts";
import type { Metrics } from "../observe/metrics.ts";
import { type Claims, encodePart, type NamedKey, signsTokens, type VerifyingKeys, verifyingKeys } from "../pki/jwt.ts";

/** ExternalJWTSigner of v1. What is absent in an answer has proto's default. Each call ends by itself, and throws in the words of Go's gRPC, with the code's name as `code`. */
export interface SigningService {
  sign(claims: string, signal: AbortSignal): Promise<{ readonly header?: string; readonly signature?: string }>;
  fetchKeys(): Promise<FetchedKeys>;
  metadata(): Promise<{ readonly max_token_expiration_seconds?: number }>;
  close(): void;
}

export interface FetchedKeys {
  readonly keys?: readonly { readonly key_id?: string; readonly key?: Uint8Array; readonly exclude_from_oidc_discovery?: boolean }[];
  readonly data_timestamp?: { readonly seconds?: number; readonly nanos?: number };
  readonly refresh_hint_seconds?: number;
}

export interface ExternalSigner {
  /** Throws what is wrong with what the other side answers. */
  sign(claims: Claims, signal: AbortSignal): Promise<string>;
  /** As last heard. */
  keys(): VerifyingKeys;
  /** As they are now; as last heard, when the other side does not answer. */
  newerKeys(): Promise<VerifyingKeys>;
  /** For relying parties. */
  published(): { readonly keys: readonly NamedKey[]; readonly maxAgeSeconds: number };
  /** How long it lets tokens live. */
  readonly expirationSecondsMax: number;
  /** Asks for keys as often as the other side says. */
  readonly part: Runnable;
}

interface Options {
  readonly service: SigningService;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
}

interface Heard {
  readonly keys: VerifyingKeys;
  readonly published: readonly NamedKey[];
  /** Ids of keys that only verify what was signed before. */
  readonly unpublished: ReadonlySet<string>;
  /** By the clock's uptime. */
  readonly againMs: number;
}

/** After an answer that was no good. */
const AGAIN_MS = 10_000;
const ID_BYTES_MAX = 1_024;
const EXPIRATION_SECONDS_MIN = 600;
const ALGORITHMS: ReadonlySet<unknown> = new Set(["RS256", "ES256", "ES384", "ES512"]);

/** Once the other side has told its keys. Throws when it does not, or tells nothing that can be used. */
export async function externalSigner(options: Options): Promise<ExternalSigner> {
  const signer = new Signer(options);
  try {
    await signer.begin();
    return signer;
  } catch (error) {
    options.service.close();
    throw error;
  }
}

class Signer implements ExternalSigner {
  readonly part: Runnable = { name: "token-signer-keys", run: (signal, ready) => this.#follow(signal, ready) };
  readonly #options: Options;
  readonly #meter: ReturnType<typeof meter>;
  #heard!: Heard;
  #asking: Promise<void> | undefined;
  #expirationSecondsMax = 0;

  constructor(options: Options) {
    this.#options = options;
    this.#meter = meter(options);
  }

  get expirationSecondsMax(): number { return this.#expirationSecondsMax; }

  async begin(): Promise<void> {
    const settingUp = (what: string) => (cause: unknown): never => { throw because(`while setting up external-jwt-signer${what}`, cause); };
    await this.#fetchKeys().catch(settingUp(": while initially filling key cache: while performing initial cache fill: while fetching token verification keys"));
    const { max_token_expiration_seconds: seconds = 0 } = await this.#options.service.metadata().catch(settingUp(""));
    if (seconds < EXPIRATION_SECONDS_MIN) throw new Error(`max token life supported by external-jwt-signer (${seconds}s) is less than acceptable (min ${EXPIRATION_SECONDS_MIN}s)`);
    this.#expirationSecondsMax = seconds;
  }

  async sign(claims: Claims, signal: AbortSignal): Promise<string> {
    return this.#meter.signs(async () => {
      const payload = encodePart(claims);
      const { header = "", signature = "" } = await this.#options.service.sign(payload, signal).catch((cause: unknown) => { throw because("while signing jwt", cause); });
      await this.#checkHeader(header).catch((cause: unknown) => { throw because("while validating header", cause); });
      if (signature === "") throw new Error("empty signature returned");
      return `${header}.${payload}.${signature}`;
    });
  }

  keys(): VerifyingKeys { return this.#heard.keys; }

  async newerKeys(): Promise<VerifyingKeys> {
    await this.#fetchKeys().catch((error: unknown) => this.#options.log.error("the signer of tokens does not tell its keys", { error }));
    return this.#heard.keys;
  }

  published(): { readonly keys: readonly NamedKey[]; readonly maxAgeSeconds: number } {
    return { keys: this.#heard.published, maxAgeSeconds: Math.max(0, Math.floor((this.#heard.againMs - this.#options.clock.uptimeMs()) / 1000)) };
  }

  /** Asked once, though many may want it at the same time. */
  #fetchKeys(): Promise<void> {
    this.#asking ??= this.#fetch().finally(() => { this.#asking = undefined; });
    return this.#asking;
  }

  async #fetch(): Promise<void> {
    await this.#meter.fetches(async () => {
      const answer = await this.#options.service.fetchKeys().catch((cause: unknown) => { throw because("while getting externally supported jwt signing keys", cause); });
      const { clock, log } = this.#options;
      const all = namedIn(answer);
      for (const { id } of all.filter(({ key }) => !signsTokens(key))) log.warn("the signer of tokens tells a key that no token can be signed with", { id });
      const usable = all.filter(({ key }) => signsTokens(key));
      this.#heard = {
        keys: verifyingKeys(usable), published: usable.filter(({ isPublished }) => isPublished), unpublished: new Set(usable.filter(({ isPublished }) => !isPublished).map(({ id }) => id)),
        againMs: clock.uptimeMs() + answer.refresh_hint_seconds! * 1000,
      };
      return timestampSeconds(answer);
    });
  }

  /** A key that is not published would sign what relying parties cannot check. */
  async #checkHeader(text: string): Promise<void> {
    const id = keyIdIn(text);
    if (this.#heard.keys.byId(id).length === 0) await this.newerKeys();
    if (this.#heard.unpublished.has(id)) throw new Error(`key used for signing JWT (kid: ${id}) is excluded from OIDC discovery docs`);
  }

  async #follow(signal: AbortSignal, ready: () => void): Promise<void> {
    const { service, clock, log } = this.#options;
    ready();
    let waitMs = this.#heard.againMs - clock.uptimeMs();
    for (;;) {
      await clock.sleep(waitMs, signal);
      if (signal.aborted) break;
      try {
        await this.#fetchKeys();
        waitMs = this.#heard.againMs - clock.uptimeMs();
      } catch (error) {
        if (!signal.aborted) log.error("the signer of tokens does not tell its keys: those it told before are good until it does", { error });
        waitMs = AGAIN_MS;
      }
    }
    service.close();
  }
}

/** Throws for what no signer may answer. */
function namedIn({ keys = [], data_timestamp: at, refresh_hint_seconds: refreshSeconds = 0 }: FetchedKeys): readonly (NamedKey & { readonly isPublished: boolean })[] {
  if (refreshSeconds <= 0) throw new Error(`found invalid refresh hint (${refreshSeconds}s)`);
  if (keys.length === 0) throw new Error("found no keys");
  if (!at) throw new Error("invalid data timestamp: proto: invalid nil Timestamp");
  return keys.map(({ key_id: id = "", key: der = new Uint8Array(), exclude_from_oidc_discovery: isExcluded = false }) => {
    if (id === "" || Buffer.byteLength(id) > ID_BYTES_MAX) throw new Error(`found invalid public key id ${goQuote(id)}`);
    if (der.length === 0) throw new Error("found empty public key");
    try {
      return { id, key: createPublicKey({ key: Buffer.from(der), format: "der", type: "spki" }), isPublished: !isExcluded };
    } catch (cause) {
      throw because("while parsing external public keys", cause);
    }
  });
}

function timestampSeconds({ data_timestamp: { seconds = 0, nanos = 0 } = {} }: FetchedKeys): number { return seconds + nanos / 1e9; }

/** Of a header that says no more than it may. Throws. */
function keyIdIn(header: string): string {
  const wrong = /[^A-Za-z0-9_-]/.exec(header);
  if (wrong || header.length % 4 === 1) throw new Error(`while unwrapping header: illegal base64 data at input byte ${wrong?.index ?? header.length - 1}`);
  const { alg, kid, typ, ...rest } = parsedHeader(Buffer.from(header, "base64url").toString("utf8"));
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined) throw new Error(`while parsing header JSON: json: unknown field ${goQuote(unknown)}`);
  if (typ !== "JWT") throw new Error("bad type");
  if (typeof kid !== "string" || kid === "") throw new Error("key id missing");
  if (Buffer.byteLength(kid) > ID_BYTES_MAX) throw new Error("key id longer than 1 kb");
  if (!ALGORITHMS.has(alg)) throw new Error(`bad signing algorithm ${goQuote(String(alg ?? ""))}`);
  return kid;
}

function parsedHeader(text: string): Claims {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Claims;
  } catch (cause) {
    throw because("while parsing header JSON", cause);
  }
  throw new Error("while parsing header JSON: it is no object");
}

function because(what: string, cause: unknown): Error { return new Error(`${what}: ${(cause as Error).message}`, { cause }); }

/** Upstream's counts, by the code of gRPC with which it ended. */
function meter({ clock, metrics }: Options) {
  const fetched = metrics.counter("apiserver_externaljwt_fetch_keys_request_total", "[ALPHA] Total attempts at syncing supported JWKs");
  const signed = metrics.counter("apiserver_externaljwt_sign_request_total", "[ALPHA] Total attempts at signing JWT");
  const fetchedAt = metrics.gauge("apiserver_externaljwt_fetch_keys_success_timestamp", "[ALPHA] Unix Timestamp in seconds of the last successful FetchKeys request");
  const dataAt = metrics.gauge("apiserver_externaljwt_fetch_keys_data_timestamp", "[ALPHA] Unix Timestamp in seconds of the last successful FetchKeys data_timestamp value returned by the external signer");
  const counted = async <T>(counter: typeof fetched, work: () => Promise<T>): Promise<T> => {
    try {
      const value = await work();
      counter.inc({ code: "OK" });
      return value;
    } catch (error) {
      counter.inc({ code: codeOf(error) });
      throw error;
    }
  };
  return {
    signs: (work: () => Promise<string>): Promise<string> => counted(signed, work),
    /** `work` returns of when the keys are, in seconds. */
    async fetches(work: () => Promise<number>): Promise<void> {
      const dataSeconds = await counted(fetched, work);
      fetchedAt.set(clock.nowMs() / 1000);
      dataAt.set(dataSeconds);
    },
  };
}

function codeOf(error: unknown): string {
  for (let at = error; at instanceof Error; at = at.cause) if ("code" in at && typeof at.code === "string" && /^[A-Z][a-zA-Z]+$/.test(at.code)) return at.code;
  return "unknown-non-grpc";
}
