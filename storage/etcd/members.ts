/**
 * The members of an etcd cluster, and calls that reach whichever of them answers.
 *
 *   const members = openMembers({ endpoints: ["https://a:2379", "https://b:2379"], tls: () => ({ ca, cert, key }), clock });
 *   const { kvs } = await members.call(RANGE, { key });
 *
 * One member is used for everything until it fails; then the next in the order given. A call that no member answered is tried again, also
 * when it may have been carried out: whoever calls must be able to live with that (`write.ts` finds out what became of a write).
 *
 * Throws StoreError: "unavailable" when none answered in time, and what else etcd's errors amount to.
 */
import { isIP } from "node:net";
import { checkServerIdentity, type PeerCertificate } from "node:tls";
import { type CallOptions, type ChannelCredentials, Client, type ClientDuplexStream, credentials, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import type { StoreClock } from "../engine.ts";
import { StoreError } from "../store.ts";
import type { Method } from "./messages.ts";

export interface EtcdTls {
  /** PEM. Without a CA those of the system are trusted. */
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

export interface MembersOptions {
  /** https://host:port, http://host:port or unix:///path. */
  readonly endpoints: readonly string[];
  /** Asked again whenever a member does not answer: its certificates, or ours, may have been renewed since. What it throws then is of no matter. */
  readonly tls?: (() => EtcdTls) | undefined;
  readonly clock: StoreClock;
  /** How long a call is tried, members that fail in between included. Default 15 s. */
  readonly callTimeoutMs?: number | undefined;
  /** A member did not answer: the next one is asked. */
  readonly onFailover?: ((facts: { readonly from: string; readonly to: string; readonly reason: string }) => void) | undefined;
}

export interface CallLimits {
  /** All tries together; default: the option. */
  readonly timeoutMs?: number | undefined;
  /** Ends the try that is under way, and there is no other. */
  readonly signal?: AbortSignal | undefined;
  /** A try failed although the call may have been carried out. */
  readonly onUncertain?: (() => void) | undefined;
}

/** One try. What a member forwarded to a leader that died meanwhile is lost, and it says so only after 7 s: asking again is faster. */
export const TRY_MS = 3_000;
/** All tries: an election of etcd takes 1 to 2 s, and a call may meet more than one member that is gone. */
const CALL_MS = 15_000;
const NOBODY_WAITS = "nobody waits for the answer any more";
const PAUSE_MS_MIN = 50;
const PAUSE_MS_MAX = 1_000;
/** A connection over which nothing came for so long is asked for a sign of life, and given up without one. etcd allows one ask in 5 s. */
const KEEPALIVE_MS = 10_000;
const KEEPALIVE_TIMEOUT_MS = 5_000;

interface Member { readonly endpoint: string; readonly client: Client }

function membersAt(endpoints: readonly string[], tls: EtcdTls): readonly Member[] { return endpoints.map((endpoint) => ({ endpoint, client: connect(endpoint, tls) })); }

export class Members {
  #members: readonly Member[];
  #tls: EtcdTls; // of their connections
  readonly #options: MembersOptions;
  readonly #onMove = new Set<() => void>();
  #current = 0;
  #closed = false;

  /** Throws TypeError for what is no endpoint. */
  constructor(options: MembersOptions) {
    this.#options = options;
    if (options.endpoints.length === 0) throw new TypeError("no etcd endpoint is given");
    this.#tls = options.tls?.() ?? {};
    this.#members = membersAt(options.endpoints, this.#tls);
  }

  async call<Read, Request>(method: Method<Read, never, Request>, request: Request, { timeoutMs = this.#options.callTimeoutMs ?? CALL_MS, signal, onUncertain }: CallLimits = {}): Promise<Read> {
    const { clock } = this.#options;
    const endMs = clock.uptimeMs() + timeoutMs;
    for (let pauseMs = PAUSE_MS_MIN; ; pauseMs = Math.min(2 * pauseMs, PAUSE_MS_MAX)) {
      if (this.#closed) throw new StoreError("closed");
      if (signal?.aborted) throw new StoreError("unavailable", { reason: NOBODY_WAITS });
      const index = this.#current;
      try {
        return await this.#try(this.#members[index]!, method, request, { limitMs: Math.min(TRY_MS, endMs - clock.uptimeMs()), signal });
      } catch (error) {
        const meaning = meaningOf(error as ServiceError, this.#members[index]!.endpoint);
        if (meaning.code !== "unavailable" || meaning.fields["final"]) throw meaning;
        if (this.#closed) throw new StoreError("closed", {}, { cause: meaning });
        if (signal?.aborted) throw new StoreError("unavailable", { reason: NOBODY_WAITS }, { cause: meaning });
        onUncertain?.();
        this.failed(index, String(meaning.fields["reason"]));
        if (clock.uptimeMs() + pauseMs >= endMs) throw meaning;
        await new Promise<void>((resolve) => void clock.after(pauseMs, resolve));
      }
    }
  }

  /** A stream both ways to the member in use, and which one that is. */
  stream<Read, Request>(method: Method<Read, never, Request>, metadata: Readonly<Record<string, string>>): { readonly stream: ClientDuplexStream<Request, Read>; readonly index: number } {
    const headers = new Metadata();
    for (const [name, value] of Object.entries(metadata)) headers.set(name, value);
    const index = this.#current;
    const stream = this.#members[index]!.client.makeBidiStreamRequest<Request, Read>(method.path, method.request.encode, method.response.decode, headers, {});
    return { stream, index };
  }

  /** The member with this number did not do what it should: the next is used, unless somebody was first to say so. */
  failed(index: number, reason: string): void {
    this.#renew();
    if (index !== this.#current || this.#members.length === 1) return;
    this.#current = (index + 1) % this.#members.length;
    this.#options.onFailover?.({ from: this.#members[index]!.endpoint, to: this.#members[this.#current]!.endpoint, reason });
    for (const listener of this.#onMove) listener();
  }

  /** With other certificates than before all connections are made anew. */
  #renew(): void {
    const before = this.#members;
    try {
      const tls = this.#options.tls?.() ?? {};
      if (this.#closed || (["ca", "cert", "key"] as const).every((name) => tls[name] === this.#tls[name])) return;
      this.#members = membersAt(this.#options.endpoints, tls);
      this.#tls = tls;
    } catch {
      return; // half written, or gone: those of before may still do
    }
    for (const { client } of before) client.close();
  }

  /** Calls `listener` whenever another member is used from now on. */
  onMove(listener: () => void): void {
    this.#onMove.add(listener);
  }

  /** The endpoint of the member with this number, by default of the one in use. */
  endpoint(index = this.#current): string {
    return this.#members[index]!.endpoint;
  }

  close(): void {
    this.#closed = true;
    for (const { client } of this.#members) client.close();
  }

  #try<Read, Request>({ client }: Member, { path, request: type, response }: Method<Read, never, Request>, request: Request, { limitMs, signal }: { readonly limitMs: number; readonly signal: AbortSignal | undefined }): Promise<Read> {
    return new Promise((resolve, reject) => {
      const options: CallOptions = {};
      const cancel = (): void => call.cancel();
      const alarm = this.#options.clock.after(Math.max(1, limitMs), cancel);
      signal?.addEventListener("abort", cancel, { once: true });
      const call = client.makeUnaryRequest<Request, Read>(path, type.encode, response.decode, request, options, (error, answer) => {
        alarm.cancel();
        signal?.removeEventListener("abort", cancel);
        if (error) reject(error);
        else resolve(answer!);
      });
    });
  }
}

function connect(endpoint: string, tls: EtcdTls): Client {
  const { target, host, secure } = targetOf(endpoint);
  return new Client(target, secure ? secureCredentials(host, tls) : credentials.createInsecure(), {
    ...(isIP(host) !== 0 && { "grpc.ssl_target_name_override": NAME_OF_ADDRESSES }),
    "grpc.max_receive_message_length": -1, "grpc.max_send_message_length": -1, // etcd limits what it takes; what it took it must be able to give
    "grpc.initial_reconnect_backoff_ms": 100, "grpc.max_reconnect_backoff_ms": 1_000,
    "grpc.keepalive_time_ms": KEEPALIVE_MS, "grpc.keepalive_timeout_ms": KEEPALIVE_TIMEOUT_MS,
    "grpc.enable_http_proxy": 0, "grpc.service_config_disable_resolution": 1,
  });
}

/** Throws TypeError. */
function targetOf(endpoint: string): { readonly target: string; readonly host: string; readonly secure: boolean } {
  const unix = /^unix:\/\/(\/.+)$/.exec(endpoint);
  if (unix) return { target: `unix:${unix[1]}`, host: "localhost", secure: false };
  const [, scheme, host, port = "2379"] = /^(https?):\/\/(\[[0-9a-fA-F:.]+\]|[^/:@?#]+)(?::(\d+))?\/?$/.exec(endpoint) ?? [];
  if (scheme === undefined || host === undefined) throw new TypeError(`${JSON.stringify(endpoint.replace(/\/\/.*@/, "//…@"))} is no etcd endpoint: it must be https://host:port, http://host:port or unix:///path`);
  return { target: `dns:${host}:${port}`, host: host.replace(/^\[|\]$/g, ""), secure: scheme === "https" };
}

/** TLS has no way to ask for an address, and Bun refuses to try: a server that is called by its address is asked for this name, and must show that address. */
const NAME_OF_ADDRESSES = "etcd.invalid";

function secureCredentials(host: string, { ca, cert, key }: EtcdTls): ChannelCredentials {
  const pem = (text: string | undefined): Buffer | null => (text === undefined ? null : Buffer.from(text));
  return credentials.createSsl(pem(ca), pem(key), pem(cert), { checkServerIdentity: (_: string, certificate: PeerCertificate) => checkServerIdentity(host, certificate) });
}

/** etcd's own words; they have not changed since v3.0. */
const MEANINGS: readonly [pattern: RegExp, make: (reason: string, endpoint: string) => StoreError][] = [
  [/required revision has been compacted/, (reason) => new StoreError("compacted", { reason })],
  [/required revision is a future revision/, (reason) => new StoreError("future", { reason })],
  [/database space exceeded/, (reason, endpoint) => new StoreError("full", { reason, endpoint, remedy: "compact and defragment etcd, or give it more room (--quota-backend-bytes); then: etcdctl alarm disarm" })],
  [/request is too large/, (reason) => new StoreError("too-large", { reason })],
  [/corrupt cluster/, (reason, endpoint) => new StoreError("corrupt", { reason, endpoint, remedy: "etcd's members differ: see etcd's documentation on data corruption" })],
];
/** Of no use to ask again, here or elsewhere. */
const FINAL: ReadonlySet<number> = new Set([status.INVALID_ARGUMENT, status.PERMISSION_DENIED, status.UNAUTHENTICATED, status.FAILED_PRECONDITION, status.UNIMPLEMENTED, status.NOT_FOUND]);

/** What a failed call means. */
export function meaningOf(error: ServiceError, endpoint: string): StoreError {
  const reason = error.details || error.message;
  for (const [pattern, make] of MEANINGS) if (pattern.test(reason)) return make(reason, endpoint);
  const final = FINAL.has(error.code) && !/not leader|learner/.test(reason); // a member that has just joined is not yet one to ask
  return new StoreError("unavailable", { reason: error.code === status.CANCELLED ? "no answer in time" : reason, endpoint, ...(final && { final }) }, { cause: error });
}
