/**
 * How large one write may be: what etcd takes with its settings as they are, also where no etcd is. What is stored here can be stored there, and clients
 * that count on a refusal (helm, which splits what it keeps) have it.
 *
 * Source: etcd v3.6 server/embed/config.go DefaultMaxRequestBytes, client/v3/options.go; kubernetes v1.36 apiserver/pkg/storage/etcd3/store.go
 */
import { type Revision, StoreError } from "./store.ts";

/** Of what goes to the members' log. */
const REQUEST_BYTES_MAX = 1.5 * 1024 * 1024;
/** Of what a client sends. */
const MESSAGE_BYTES_MAX = 2 * 1024 * 1024;
/** What the log has beside the transaction: a header with an id. */
const LOG_HEADER_BYTES = 13;

export interface RequestSize {
  readonly keyBytes: number;
  readonly valueBytes: number;
  /** As of a put: 0 creates. */
  readonly expected: Revision;
}

/** Throws "too-large". */
export function refuseLarge(size: RequestSize): void {
  const bytes = transactionBytes(size);
  refuseMessage(bytes);
  if (LOG_HEADER_BYTES + field(bytes) > REQUEST_BYTES_MAX) throw new StoreError("too-large", { reason: "etcdserver: request is too large" });
}

/** The client's own share of it. Throws "too-large". */
export function refuseMessage(bytes: number): void {
  if (bytes > MESSAGE_BYTES_MAX) throw new StoreError("too-large", { reason: `rpc error: code = ResourceExhausted desc = trying to send message larger than max (${bytes} vs. ${MESSAGE_BYTES_MAX})` });
}

/** A comparison of the key's revision, the put, and for what is there already a look at it if that fails. */
export function transactionBytes({ keyBytes, valueBytes, expected }: RequestSize): number {
  const key = field(keyBytes);
  const compare = field(2 + key + 1 + varint(expected));
  const put = field(field(key + field(valueBytes)));
  return compare + put + (expected === 0 ? 0 : field(field(key)));
}

/** A member of a message with so many bytes: its tag and its length go before it. */
function field(bytes: number): number { return 1 + varint(bytes) + bytes; }

function varint(value: number): number {
  let length = 1;
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) length++;
  return length;
}
