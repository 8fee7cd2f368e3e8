/** One way to seal a value: a cipher with its key, or a key service. What it writes starts with its prefix, by which it is known again. */
export interface Provider {
  /** "k8s:enc:aescbc:v1:key1:", as upstream writes it; "" for what is not sealed. */
  readonly prefix: string;
  /** `context` must be the same when it is opened: a value cannot be moved to another key. Throws when the key service does not answer. */
  seal(plain: Buffer, context: Buffer): Buffer | Promise<Buffer>;
  /** `sealed` is without the prefix. Throws when it was not sealed with this key. */
  open(sealed: Buffer, context: Buffer): Buffer | Promise<Buffer>;
  /** Whether what is sealed so should be sealed anew, although it is this provider's own. */
  isStale?(sealed: Buffer): boolean;
  /** Why it cannot be used now; undefined: it can. */
  trouble?(): string | undefined;
  close?(): void;
}

/** A part of the trace of whoever reads or writes. */
export interface TransformSpan {
  event(name: string, attributes?: Readonly<Record<string, string>>): void;
  end(): void;
}

/** Undefined: what goes on is not traced. */
export type TransformTrace = (name: string, attributes: Readonly<Record<string, string>>) => TransformSpan | undefined;

/** Of `seal` and `open`: the key service cannot be asked now, and nobody knows whether the value is as it should be. */
export class KeyAwayError extends Error {
  override readonly name = "KeyAwayError";
}

/** Nothing is sealed. Put first, it takes encryption back, value by value. */
export const identity: Provider = { prefix: "", seal: (plain) => plain, open: (plain) => plain };
