/** What the kubelet's server answers with. */
import type { Readable } from "node:stream";

export interface Answer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string | Uint8Array | Readable;
  /** Packed, for who takes it so: it is long and says much again and again. */
  readonly mayGzip?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
}

export function text(status: number, body: string): Answer { return { status, contentType: "text/plain; charset=utf-8", body }; }
export function json(value: unknown, status = 200): Answer { return { status, contentType: "application/json", body: JSON.stringify(value) }; }

/** An error that is an answer. */
export class AnswerError extends Error {
  readonly answer: Answer;
  constructor(status: number, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.name = "AnswerError";
    this.answer = { ...text(status, message), headers };
  }
}
