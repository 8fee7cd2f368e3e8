/** Why a machine cannot join, in words for who started it. What passes by itself (a server that is not up yet) is no JoinError. */
export type JoinErrorCode =
  | "wrong-ca"        // the server is not the one the token names
  | "bad-certificate" // its certificate does not hold, though its CA is the right one
  | "bad-clock"       // this machine's clock is so wrong that no certificate holds
  | "bad-token"       // unknown, or expired
  | "name-taken"      // another machine's
  | "refused"         // the server's administrator, or a controller, said no
  | "not-a-server"    // something answers, but it is no Coracle server
  | "no-token";

export class JoinError extends Error {
  override readonly name = "JoinError";
  readonly code: JoinErrorCode;
  constructor(code: JoinErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
