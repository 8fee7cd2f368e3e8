/**
 * How a gRPC call ends: a code and a message, in the trailers.
 *
 * API: https://github.com/grpc/grpc/blob/master/doc/statuscodes.md
 */
const GRPC_CODES = {
  ok: 0, cancelled: 1, unknown: 2, "invalid-argument": 3, "deadline-exceeded": 4, "not-found": 5, "already-exists": 6, "permission-denied": 7, "resource-exhausted": 8,
  "failed-precondition": 9, aborted: 10, "out-of-range": 11, unimplemented: 12, internal: 13, unavailable: 14, "data-loss": 15, unauthenticated: 16,
} as const;
export type GrpcCode = keyof typeof GRPC_CODES;

export class GrpcError extends Error {
  override readonly name = "GrpcError";
  readonly code: GrpcCode;
  constructor(code: GrpcCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** grpc-status and grpc-message, as trailers or, where nothing else is answered, as headers. */
export function grpcTrailers(code: GrpcCode, message = ""): Record<string, string> {
  return { "grpc-status": String(GRPC_CODES[code]), ...(message === "" ? {} : { "grpc-message": encodeMessage(message) }) };
}

/** What a call ended with; undefined: it ended well. `status` is HTTP's, for answers of what is no gRPC server. */
export function grpcErrorOf(headers: Readonly<Record<string, string | readonly string[] | undefined>>, status = 200): GrpcError | undefined {
  const text = headers["grpc-status"];
  if (typeof text !== "string") return status === 200 ? undefined : new GrpcError(codeOfHttp(status), `unexpected HTTP status code received from server: ${status}`);
  if (text === "0") return undefined;
  const code = (Object.keys(GRPC_CODES) as GrpcCode[]).find((name) => String(GRPC_CODES[name]) === text) ?? "unknown";
  const message = headers["grpc-message"];
  return new GrpcError(code, typeof message === "string" ? decodeMessage(message) : `code ${text}`);
}

/** Source: https://github.com/grpc/grpc/blob/master/doc/http-grpc-status-mapping.md */
function codeOfHttp(status: number): GrpcCode {
  switch (status) {
    case 400: return "internal";
    case 401: return "unauthenticated";
    case 403: return "permission-denied";
    case 404: return "unimplemented";
    case 429: case 502: case 503: case 504: return "unavailable";
    default: return "unknown";
  }
}

/** Percent-encoded: all but printable ASCII, and "%". */
function encodeMessage(message: string): string {
  return [...Buffer.from(message)].map((byte) => (byte >= 0x20 && byte <= 0x7e && byte !== 0x25 ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`)).join("");
}

function decodeMessage(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // not encoded as it should be: better read as it is than not at all
  }
}
