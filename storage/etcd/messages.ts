/**
 * etcd's v3 API, as much of it as we use: messages with their fields' numbers, and methods.
 *
 * Only what we read or write is declared. Identifiers of members and clusters use all 64 bits and would not fit a number; we need none.
 *
 * Source: etcd v3.6 api/etcdserverpb/rpc.proto, api/mvccpb/kv.proto; the same numbers since v3.0, `hasleader` and watch fragments aside
 */
import { bytes, type Decoded, type Encodable, flag, int, many, type Message, message, one, string } from "./wire.ts";

const keyValue = message({ key: bytes(1), create_revision: int(2), mod_revision: int(3), version: int(4), value: bytes(5) });
const event = message({ type: int(1), kv: one(2, keyValue), prev_kv: one(3, keyValue) });
const header = message({ revision: int(3) });

const rangeRequest = message({ key: bytes(1), range_end: bytes(2), limit: int(3), revision: int(4), keys_only: flag(8), count_only: flag(9) });
const rangeResponse = message({ header: one(1, header), kvs: many(2, keyValue), more: flag(3), count: int(4) });
const putRequest = message({ key: bytes(1), value: bytes(2), lease: int(3) });
const putResponse = message({ header: one(1, header) });
const deleteRequest = message({ key: bytes(1), range_end: bytes(2) });
const deleteResponse = message({ header: one(1, header), deleted: int(2) });

const compare = message({ result: int(1), target: int(2), key: bytes(3), version: int(4), mod_revision: int(6) });
const requestOp = message({ request_range: one(1, rangeRequest), request_put: one(2, putRequest), request_delete_range: one(3, deleteRequest) });
const responseOp = message({ response_range: one(1, rangeResponse), response_put: one(2, putResponse), response_delete_range: one(3, deleteResponse) });
const txnRequest = message({ compare: many(1, compare), success: many(2, requestOp), failure: many(3, requestOp) });
const txnResponse = message({ header: one(1, header), succeeded: flag(2), responses: many(3, responseOp) });
const compactionRequest = message({ revision: int(1) });
const compactionResponse = message({ header: one(1, header) });

const watchCreateRequest = message({ key: bytes(1), range_end: bytes(2), start_revision: int(3), prev_kv: flag(6) });
const watchRequest = message({ create_request: one(1, watchCreateRequest) });
const watchResponse = message({ header: one(1, header), created: flag(3), canceled: flag(4), compact_revision: int(5), cancel_reason: string(6), events: many(11, event) });

const leaseGrantRequest = message({ TTL: int(1), ID: int(2) });
const leaseGrantResponse = message({ ID: int(2), TTL: int(3), error: string(4) });
const leaseRevokeRequest = message({ ID: int(1) });
const leaseRevokeResponse = message({ header: one(1, header) });

const statusRequest = message({});
const statusResponse = message({ header: one(1, header), version: string(2), dbSize: int(3) });

/** Compare.result and Compare.target, Event.type. */
export const EQUAL = 0;
export const TARGET_VERSION = 0;
export const TARGET_MOD = 2;
export const EVENT_DELETE = 1;

export type KeyValue = Decoded<typeof keyValue>;
export type WatchEvent = Decoded<typeof event>;
export type WatchRequest = Encodable<typeof watchRequest>;
export type WatchResponse = Decoded<typeof watchResponse>;

/** A method with one request and one response. */
export interface Method<Read, Written, Request> {
  readonly path: string;
  readonly request: Message<unknown, Request>;
  readonly response: Message<Read, Written>;
}

function method<Read, Written, Request>(path: string, request: Message<unknown, Request>, response: Message<Read, Written>): Method<Read, Written, Request> {
  return { path: `/etcdserverpb.${path}`, request, response };
}

export const RANGE = method("KV/Range", rangeRequest, rangeResponse);
export const TXN = method("KV/Txn", txnRequest, txnResponse);
export const COMPACT = method("KV/Compact", compactionRequest, compactionResponse);
export const LEASE_GRANT = method("Lease/LeaseGrant", leaseGrantRequest, leaseGrantResponse);
export const LEASE_REVOKE = method("Lease/LeaseRevoke", leaseRevokeRequest, leaseRevokeResponse);
export const STATUS = method("Maintenance/Status", statusRequest, statusResponse);
/** Streams both ways. */
export const WATCH = method("Watch/Watch", watchRequest, watchResponse);
