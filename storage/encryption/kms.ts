/**
 * A key service on this machine (KMS v2): it keeps the key of keys, and we never see it.
 *
 *   seed (random, made here) ─▶ Encrypt ─▶ kept beside each value, sealed by the service; each value has a key of its own, derived from the seed
 *
 * So the service is asked when the server starts, once a minute how it is, and when its key changes; and once for each seed that is read.
 * It may be a static pod of the server's own node, and come up after the server: until it has answered nothing is sealed or opened, and it is asked every ten seconds.
 * The bytes are an EncryptedObject in protobuf, as upstream writes it.
 *
 * API:    https://github.com/kubernetes/kms/blob/master/apis/v2/api.proto
 * Source: kubernetes v1.36 apiserver/pkg/storage/value/encrypt/{envelope/kmsv2,aes/aes_extended_nonce.go}, apiserver/pkg/server/options/encryptionconfig/config.go
 */
import { createHash, createHmac, randomBytes, randomUUID } from "node:crypto";
import { Client, credentials, type ServiceError, status as grpcStatus } from "@grpc/grpc-js";
import type { StoreClock } from "../engine.ts";
import { bytes, type Decoded, int, many, type Message, message, string } from "../etcd/wire.ts";
import { gcmOpen, gcmSeal, tooShort } from "./ciphers.ts";
import { KeyAwayError, type Provider, type TransformSpan, type TransformTrace } from "./provider.ts";

const annotation = message({ key: string(1), value: bytes(2) });
const encryptedObject = message({ encryptedData: bytes(1), keyID: string(2), encryptedDEKSource: bytes(3), annotations: many(4, annotation), encryptedDEKSourceType: int(5) });
const statusRequest = message({});
const statusResponse = message({ version: string(1), healthz: string(2), keyID: string(3) });
const decryptRequest = message({ ciphertext: bytes(1), uid: string(2), keyID: string(3), annotations: many(4, annotation) });
const decryptResponse = message({ plaintext: bytes(1) });
const encryptRequest = message({ plaintext: bytes(1), uid: string(2) });
const encryptResponse = message({ ciphertext: bytes(1), keyID: string(2), annotations: many(3, annotation) });

const AES_GCM_KEY = 0;
const HKDF_SEED = 1;
const SEED_BYTES = 32;
const AES_KEY_BYTES = [16, 24, 32];
const INFO_BYTES = 32;
const ID_BYTES_MAX = 1024;
const SOURCE_BYTES_MAX = 1024;
const ANNOTATION_BYTES_MAX = 32 * 1024;
const VERSIONS = ["v2", "v2beta1"];
const STATUS_EVERY_MS = 60_000;
const STATUS_AGAIN_MS = 10_000;
/** A seed is used this long after the service last named its key, whether or not it was well. */
const VALID_MS = 180_000;
/** Upstream's words for a service that has not been well since the server started. */
const NO_ANSWER_YET = "got unexpected nil transformer";
/** Seeds remembered: one for each time the service's key changed or a server started. */
const SEEDS_MAX = 1_000;

interface Seed { readonly source: Buffer; readonly keyID: string; readonly annotations: readonly Decoded<typeof annotation>[]; readonly secret: Buffer }

/** Told of each call, and of each key that is named or used. */
export interface KmsMeter {
  /** `code`: gRPC's, as Go names it. */
  called(method: string, ms: number, code: string): void;
  named(keyID: string): void;
  /** What was named is no key's id. */
  misnamed(why: "empty" | "too_long"): void;
  used(type: "from_storage" | "to_storage", keyID: string): void;
  /** How many seeds are remembered. */
  remembers(count: number): void;
}

export interface KmsOptions {
  readonly name: string;
  /** unix:///path, or unix:///@name of an abstract socket. */
  readonly endpoint: string;
  readonly timeoutMs: number;
  readonly clock: StoreClock;
  /** Absent: nothing is traced. */
  readonly trace?: TransformTrace | undefined;
  /** By the service's name. Absent: nothing is counted. */
  readonly meter?: ((name: string) => KmsMeter) | undefined;
  /** Told once for each time it gets worse, and when it is well again (undefined). */
  readonly onTrouble?: (name: string, reason: string | undefined) => void;
}

/** Asks how the service is before it returns. Throws when the service cannot be used, unless it may come later. */
export async function kmsProvider(options: KmsOptions, { mayComeLater }: { readonly mayComeLater: boolean }): Promise<Provider> {
  const service = new KmsProvider(options);
  const problem = await service.check();
  if (problem === undefined || mayComeLater) return service;
  service.close();
  throw new Error(`kms provider ${options.name} at ${options.endpoint}: ${problem}`);
}

class KmsProvider implements Provider {
  readonly prefix: string;
  readonly #options: KmsOptions;
  readonly #client: Client;
  readonly #opened = new Map<string, Buffer>(); // source and its circumstances, hashed, to the seed; oldest use first
  readonly #asking = new Map<string, Promise<Buffer>>();
  #seed: Seed | undefined;
  #validUntilMs = 0;
  #version: string | undefined; // of its first answer, and from then on
  #trouble: string | undefined;
  #next: { cancel(): void } | undefined;
  #closed = false;
  readonly #meter: KmsMeter | undefined;

  constructor(options: KmsOptions) {
    this.#options = options;
    this.#meter = options.meter?.(options.name);
    this.prefix = `k8s:enc:kms:v2:${options.name}:`;
    this.#client = new Client(options.endpoint.replace(/^unix:\/\/(\/@)?/, (_, abstract: string | undefined) => (abstract ? "unix:\0" : "unix:")), credentials.createInsecure(), { "grpc.service_config_disable_resolution": 1, "grpc.enable_http_proxy": 0, "grpc.initial_reconnect_backoff_ms": 100, "grpc.max_reconnect_backoff_ms": 5_000 });
  }

  trouble(): string | undefined { return this.#trouble; }

  close(): void {
    this.#closed = true;
    this.#next?.cancel();
    this.#client.close();
  }

  /** How the service is; a new seed if its key has changed. Comes back by itself. */
  async check(): Promise<string | undefined> {
    const problem = await this.#ask().then(() => undefined, (error: unknown) => (error as Error).message);
    if (problem !== this.#trouble) this.#options.onTrouble?.(this.#options.name, problem);
    this.#trouble = problem;
    if (!this.#closed) this.#next = this.#options.clock.after(problem === undefined ? STATUS_EVERY_MS : STATUS_AGAIN_MS, () => void this.check());
    return problem;
  }

  /** What is sealed goes on while the service says that it is not well, as long as it names its key. Throws an Error with all that is wrong. */
  async #ask(): Promise<void> {
    const askedMs = this.#options.clock.uptimeMs();
    const { version, healthz, keyID } = await this.#status();
    const problems = [...(healthz === "ok" ? [] : [`got unexpected healthz status: ${healthz}`]), ...this.#versionProblems(version)];
    const noKey = idProblem(keyID);
    if (noKey) {
      this.#meter?.misnamed(noKey.code);
      problems.push(`got invalid KMSv2 KeyID hash ${JSON.stringify(keyID === "" ? "" : hashOf(keyID))}: ${noKey.text}`);
    } else {
      this.#meter?.named(keyID);
      try {
        await this.#renew(keyID);
        this.#validUntilMs = askedMs + VALID_MS;
      } catch (error) {
        problems.push((error as Error).message);
      }
    }
    if (problems.length > 0) throw new Error(problems.length === 1 ? problems[0] : `[${problems.join(", ")}]`);
  }

  #status(): Promise<Decoded<typeof statusResponse>> { return this.#call("Status", statusRequest, {}, statusResponse); }

  *#versionProblems(version: string): Iterable<string> {
    if (!VERSIONS.includes(version)) yield `expected KMSv2 API version v2, got ${version}`;
    else if ((this.#version ??= version) !== version) yield `KMSv2 API version should not change after the initial status response version ${this.#version}, got ${version}`;
  }

  /** A new seed, unless there is one under this key. Throws when the service seals under another key than it names, and the seed before stays: it may be about to change its key, so it is asked once more. */
  async #renew(keyID: string): Promise<void> {
    if (this.#seed?.keyID === keyID) return;
    const seed = await this.#newSeed();
    if (seed.keyID !== keyID && (await this.#status()).keyID !== seed.keyID) throw new Error(`failed to rotate DEK: statusKeyIDHash=${hashOf(keyID)}, encryptKeyIDHash=${hashOf(seed.keyID)}`);
    this.#seed = seed;
    this.#remember(cacheKey(HKDF_SEED, seed), seed.secret);
  }

  /** Throws for what upstream could not read again. */
  async #newSeed(): Promise<Seed> {
    const secret = randomBytes(SEED_BYTES);
    const { ciphertext: source, keyID, annotations } = await this.#call("Encrypt", encryptRequest, { plaintext: secret, uid: randomUUID() }, encryptResponse);
    check({ encryptedData: Buffer.of(0), keyID, encryptedDEKSource: source, annotations: [...annotations], encryptedDEKSourceType: HKDF_SEED });
    const bad = annotations.find(({ key }) => !isDomain(key));
    if (bad) throw new Error(`failed to validate annotations: annotations: Invalid value: ${JSON.stringify(bad.key)}: should be a domain with at least two segments separated by dots`);
    return { source, keyID, annotations, secret };
  }

  seal(plain: Buffer, context: Buffer): Buffer {
    const span = this.#span("TransformToStorage with envelopeTransformer");
    try {
      return this.#seal(plain, context, span);
    } finally {
      span?.end();
    }
  }

  #span(name: string): TransformSpan | undefined { return this.#options.trace?.(name, { "transformer.provider.name": this.#options.name }); }

  #seal(plain: Buffer, context: Buffer, span: TransformSpan | undefined): Buffer {
    const seed = this.#seed;
    if (!seed) throw new KeyAwayError(NO_ANSWER_YET);
    if (this.#options.clock.uptimeMs() > this.#validUntilMs) throw new KeyAwayError(`kms provider ${this.#options.name} has not been well for too long: ${this.#trouble ?? "unknown"}`);
    this.#meter?.used("to_storage", seed.keyID);
    span?.event("About to encrypt data using DEK");
    const info = randomBytes(INFO_BYTES);
    const encryptedData = Buffer.concat([info, gcmSeal(keyFrom(seed.secret, info), plain, context)]);
    span?.event("Data encryption succeeded");
    span?.event("About to encode encrypted object");
    const encoded = encryptedObject.encode({ encryptedData, keyID: seed.keyID, encryptedDEKSource: seed.source, annotations: seed.annotations, encryptedDEKSourceType: HKDF_SEED });
    span?.event("Encoded encrypted object");
    return encoded;
  }

  async open(sealed: Buffer, context: Buffer): Promise<Buffer> {
    const span = this.#span("TransformFromStorage with envelopeTransformer");
    let failure: string | undefined = "Decoding encrypted object failed";
    try {
      span?.event("About to decode encrypted object");
      const object = encryptedObject.decode(sealed);
      check(object);
      span?.event("Decoded encrypted object");
      failure = undefined;
      const { encryptedData, encryptedDEKSource: source, keyID, annotations, encryptedDEKSourceType: type } = object;
      if (!this.#seed) throw new KeyAwayError(NO_ANSWER_YET);
      const known = cacheKey(type, { source, keyID, annotations });
      let secret = this.#opened.get(known);
      if (!secret) {
        failure = "DEK decryption failed";
        span?.event("About to decrypt DEK using remote service");
        secret = await this.#secretOf(known, type, { source, keyID, annotations });
        span?.event("DEK decryption succeeded");
      }
      this.#meter?.used("from_storage", keyID);
      failure = "Data decryption failed";
      span?.event("About to decrypt data using DEK");
      const plain = this.#open(type, secret, encryptedData, context, known);
      span?.event("Data decryption succeeded");
      return plain;
    } catch (error) {
      if (failure !== undefined) {
        span?.event(failure);
        span?.event("exception", { "exception.message": (error as Error).message });
      }
      throw error;
    } finally {
      span?.end();
    }
  }

  /** With what does not open it the service may have given a wrong answer: it is asked again the next time. */
  #open(type: number, secret: Buffer, encryptedData: Buffer, context: Buffer, known: string): Buffer {
    try {
      return opened(type, secret, encryptedData, context);
    } catch (error) {
      if (secret !== this.#seed?.secret) this.#opened.delete(known);
      this.#meter?.remembers(this.#opened.size);
      throw error;
    }
  }

  /** Asked once, though a whole store may want it at the same time. Only what can be a key is remembered. */
  #secretOf(known: string, type: number, { source, keyID, annotations }: Omit<Seed, "secret">): Promise<Buffer> {
    const asking = this.#asking.get(known) ?? this.#call("Decrypt", decryptRequest, { ciphertext: source, uid: randomUUID(), keyID, annotations }, decryptResponse).then(({ plaintext }) => {
      const secret = Buffer.from(plaintext), problem = lengthProblem(type, secret.length);
      if (problem !== undefined) throw new KeyAwayError(problem);
      this.#remember(known, secret);
      return secret;
    }, (cause: unknown) => { throw new KeyAwayError(`failed to decrypt DEK, error: ${(cause as Error).message}`, { cause }); }).finally(() => this.#asking.delete(known));
    this.#asking.set(known, asking);
    return asking;
  }

  isStale(sealed: Buffer): boolean {
    const { keyID, encryptedDEKSourceType } = encryptedObject.decode(sealed);
    return this.#seed !== undefined && (keyID !== this.#seed.keyID || encryptedDEKSourceType !== HKDF_SEED);
  }

  #remember(known: string, secret: Buffer): void {
    this.#opened.set(known, secret);
    if (this.#opened.size > SEEDS_MAX) this.#opened.delete(this.#opened.keys().next().value!);
    this.#meter?.remembers(this.#opened.size);
  }

  #call<Request, Read>(method: string, request: Message<unknown, Request>, value: Request, response: Message<Read, never>): Promise<Read> {
    return new Promise((resolve, reject) => {
      let isLate = false;
      const path = `/v2.KeyManagementService/${method}`, calledMs = this.#options.clock.uptimeMs();
      const alarm = this.#options.clock.after(this.#options.timeoutMs, () => {
        isLate = true;
        call.cancel();
      });
      const call = this.#client.makeUnaryRequest<Request, Read>(path, request.encode, response.decode, value, (error: ServiceError | null, answer?: Read) => {
        alarm.cancel();
        this.#meter?.called(path, this.#options.clock.uptimeMs() - calledMs, codeName(isLate ? grpcStatus.DEADLINE_EXCEEDED : (error?.code ?? grpcStatus.OK)));
        if (error) reject(new Error(isLate ? "context deadline exceeded" : error.details || error.message, { cause: error }));
        else resolve(answer!);
      });
    });
  }
}

function opened(type: number, secret: Buffer, encryptedData: Buffer, context: Buffer): Buffer {
  if (type === AES_GCM_KEY) return gcmOpen(secret, encryptedData, context);
  if (encryptedData.length < INFO_BYTES) throw tooShort();
  return gcmOpen(keyFrom(secret, encryptedData.subarray(0, INFO_BYTES)), encryptedData.subarray(INFO_BYTES), context);
}

/** Why a secret of this length is none. */
function lengthProblem(type: number, length: number): string | undefined {
  if (type === HKDF_SEED) return length < SEED_BYTES ? `invalid seed length ${length} used for key generation` : undefined;
  return AES_KEY_BYTES.includes(length) ? undefined : `crypto/aes: invalid key size ${length}`;
}

/** HKDF's second half, for a key as long as the hash. */
function keyFrom(seed: Buffer, info: Buffer): Buffer { return createHmac("sha256", seed).update(info).update(Buffer.of(1)).digest(); }

function cacheKey(type: number, { source, keyID, annotations }: Omit<Seed, "secret">): string {
  const hash = createHash("sha256").update(`${type}\0${keyID}\0${source.length}\0`).update(source);
  for (const { key, value } of [...annotations].sort((a, b) => (a.key < b.key ? -1 : 1))) hash.update(`${key}\0${value.length}\0`).update(value);
  return hash.digest("base64");
}

/** As keys are named where others read along. */
function hashOf(keyID: string): string { return `sha256:${createHash("sha256").update(keyID).digest("hex")}`; }

/** As Go names it: DEADLINE_EXCEEDED is DeadlineExceeded there, and CANCELLED has an l less. */
function codeName(code: number): string {
  if (code === grpcStatus.OK) return "OK";
  if (code === grpcStatus.CANCELLED) return "Canceled";
  return (grpcStatus[code] ?? "UNKNOWN").toLowerCase().replace(/(^|_)(.)/g, (_, _before: string, letter: string) => letter.toUpperCase());
}

/** `a.example.com`, with or without a dot at its end. */
function isDomain(name: string): boolean { return name.length <= 254 && /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)+\.?$/.test(name); }

function checkId(keyID: string): void {
  const problem = idProblem(keyID);
  if (problem) throw new Error(`failed to validate key id: ${problem.text}`);
}

function idProblem(keyID: string): { readonly code: "empty" | "too_long"; readonly text: string } | undefined {
  if (keyID === "") return { code: "empty", text: "keyID is empty" };
  const bytes = Buffer.byteLength(keyID);
  return bytes > ID_BYTES_MAX ? { code: "too_long", text: `keyID is ${bytes} bytes, which exceeds the max size of ${ID_BYTES_MAX}` } : undefined;
}

/** Throws for what no service may answer, and no value may look like. */
function check({ encryptedData, keyID, encryptedDEKSource: source, annotations, encryptedDEKSourceType: type }: Decoded<typeof encryptedObject>): void {
  if (type !== AES_GCM_KEY && type !== HKDF_SEED) throw new Error(`unknown encryptedDEKSourceType: ${type}`);
  if (encryptedData.length === 0) throw new Error("encrypted data is empty");
  if (source.length === 0) throw new Error("failed to validate encrypted DEK source: encrypted DEK source is empty");
  if (source.length > SOURCE_BYTES_MAX) throw new Error(`failed to validate encrypted DEK source: encrypted DEK source is ${source.length} bytes, which exceeds the max size of ${SOURCE_BYTES_MAX}`);
  checkId(keyID);
  const size = annotations.reduce((sum, { key, value }) => sum + Buffer.byteLength(key) + value.length, 0);
  if (size > ANNOTATION_BYTES_MAX) throw new Error(`failed to validate annotations: total size of annotations is ${size}, which exceeds the max size of ${ANNOTATION_BYTES_MAX}`);
}
