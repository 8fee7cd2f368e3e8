/**
 * exec and attach over WebSocket with v5.channel.k8s.io, which runtimes do not speak, or with v4: each channel becomes a SPDY stream.
 *
 *   channel   0 stdin   1 stdout   2 stderr   3 error (a Status, last)   4 resize   255 the client closes the channel named by its payload
 *
 * A client that goes leaves what it has typed to the command, and the end of it. Closing stdin before that is what v5 is for, and all that v4 does not have: `echo hi | kubectl exec -i pod -- cat` ends.
 *
 * Source: kubernetes v1.36 apiserver/pkg/util/proxy/{streamtranslator,websocket}.go
 */
import type { Duplex } from "node:stream";
import { goQuote } from "../../../core/api/meta/go-quote.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import { spdyClient, type SpdyStream, type SpdyStreamEvents } from "../../../core/net/spdy/spdy.ts";
import { webSocket } from "../../../core/net/websocket.ts";
import type { StreamOptions } from "../kubelet-api.ts";

export const V4 = "v4.channel.k8s.io", V5 = "v5.channel.k8s.io";

const STDIN = 0, STDOUT = 1, STDERR = 2, ERROR = 3, RESIZE = 4, CLOSE = 255;
/** A Status is small; a runtime that sends more is not writing one. */
const STATUS_BYTES_MAX = 64 * 1024;
/** What the client has sent is still for the command, if that takes it by then. */
const LINGER_MS = 10_000;
/** RFC 6455: the Status has said what went wrong, if anything did. */
const NORMAL = 1000;
const EXIT_CODE_MAX = 255;

interface Ends {
  readonly protocol: typeof V4 | typeof V5;
  /** After the handshakes of both. */
  readonly client: { readonly socket: Duplex; readonly early: Uint8Array };
  readonly runtime: { readonly socket: Duplex; readonly early: Uint8Array };
  readonly options: StreamOptions;
  readonly clock: Clock;
}

/** Resolves once both connections are done with. */
export function translateStreams({ protocol, client, runtime, options, clock }: Ends): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { stdin = false, stdout = false, tty = false } = options;
  const stderr = (options.stderr ?? false) && !tty;
  const toRuntime = new Map<number, SpdyStream>();
  const status: Buffer[] = [];
  let statusBytes = 0;
  let open = 1 + (stdout ? 1 : 0) + (stderr ? 1 : 0); // streams of the runtime that have not ended
  let told = false; // the client needs no more, or has gone
  let lingering: { cancel(): void } | undefined;

  const spdy = spdyClient(runtime.socket, {
    early: runtime.early,
    drain: () => peer.resume(),
    closed() {
      finish();
      lingering?.cancel();
      resolve();
    },
  });
  function message(data: Buffer): void {
    const channel = data[0];
    if (channel === undefined) return;
    if (channel === CLOSE && protocol === V5) return void toRuntime.get(data[1] ?? -1)?.end();
    const payload = data.subarray(1);
    if (payload.length > 0 && toRuntime.get(channel)?.write(payload) === false) peer.pause();
  }

  function fromRuntime(channel: number): SpdyStreamEvents {
    return {
      data(bytes) { if (!peer.send([Uint8Array.of(channel), bytes])) spdy.pause(); },
      end: ended,
      reset: ended,
    };
  }
  const quiet: SpdyStreamEvents = { data: () => undefined, end: () => undefined, reset: () => undefined };
  const errors: SpdyStreamEvents = {
    data(bytes) {
      statusBytes += bytes.length;
      if (statusBytes <= STATUS_BYTES_MAX) status.push(bytes);
    },
    end: ended,
    reset: ended,
  };

  function ended(): void {
    if (--open === 0) finish();
  }

  /** The Status is the last word, after all output. */
  function finish(): void {
    if (!told) {
      told = true;
      const whole = open === 0;
      const body = status.length > 0 ? Buffer.concat(status) : Buffer.from(JSON.stringify(whole ? SUCCESS : cutOff()));
      peer.send([Uint8Array.of(ERROR), protocol === V5 ? retold(body) : body]);
      peer.close(NORMAL);
    }
    spdy.close();
  }

  function leave(): void {
    told = true;
    const typed = toRuntime.get(STDIN);
    if (!typed) return spdy.close();
    typed.end();
    spdy.resume(); // what the command says meanwhile is for nobody, and must not stop it
    lingering = clock.after(LINGER_MS, () => spdy.close());
  }

  spdy.open({ streamtype: "error" }, errors);
  if (stdin) toRuntime.set(STDIN, spdy.open({ streamtype: "stdin" }, quiet));
  if (stdout) spdy.open({ streamtype: "stdout" }, fromRuntime(STDOUT));
  if (stderr) spdy.open({ streamtype: "stderr" }, fromRuntime(STDERR));
  if (tty) toRuntime.set(RESIZE, spdy.open({ streamtype: "resize" }, quiet));
  const peer = webSocket(client.socket, {
    early: client.early, clock, message, drain: () => spdy.resume(),
    closed: leave,
  });
  // nothing on the lowest channel tells the client that it is connected
  peer.send([Uint8Array.of(stdout ? STDOUT : stderr ? STDERR : ERROR)]);
  return promise;
}

/** What the runtime says to streams it says to upstream's translator, who tells of an exit code in words of its own, and calls anything else that failed an internal error of its own. */
function retold(body: Buffer): Buffer {
  const { status, reason, message = "", details } = statusIn(body.toString("utf8"));
  if (status === "Success") return body;
  if (status !== "Failure") return protocolError("unknown error");
  if (reason !== "NonZeroExitCode") return internalError(message);
  if (!details) return protocolError("details must be set");
  const code = details.causes?.find((cause) => cause.reason === "ExitCode")?.message;
  if (code === undefined) return protocolError("no ExitCode cause given");
  if (!/^\d+$/.test(code) || Number(code) > EXIT_CODE_MAX) return protocolError(`invalid exit code value ${goQuote(code)}`);
  return Buffer.from(JSON.stringify({
    metadata: {}, status, message: `command terminated with non-zero exit code: command terminated with exit code ${Number(code)}`, reason, details: { causes: [{ reason: "ExitCode", message: String(Number(code)) }] },
  }));
}

function protocolError(why: string): Buffer { return internalError(`error stream protocol error: ${why}`); }

function internalError(message: string): Buffer {
  return Buffer.from(JSON.stringify({ metadata: {}, status: "Failure", message: `Internal error occurred: ${message}`, reason: "InternalError", details: { causes: [{ message }] }, code: 500 }));
}

interface Said {
  readonly status?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly details?: { readonly causes?: readonly { readonly reason?: string; readonly message?: string }[] };
}

function statusIn(text: string): Said {
  try {
    return JSON.parse(text) as object;
  } catch (error) {
    return { status: "Failure", message: `error stream protocol error: ${(error as Error).message} in ${JSON.stringify(text)}` };
  }
}

const SUCCESS = { metadata: {}, status: "Success" };

function cutOff(): unknown {
  const message = "Internal error occurred: error executing command in container: the connection to the container runtime was lost";
  return { metadata: {}, status: "Failure", message, reason: "InternalError", code: 500 };
}
