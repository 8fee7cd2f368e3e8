/**
 * Rows as etcd keeps them: the key as it is, the value as JSON text, so that a person with etcdctl can read them.
 *
 * Values are parsed when somebody looks at them: other tenants of the cluster may write what is no JSON, and most events' previous values
 * interest nobody.
 */
import { parseValueText } from "../json-text.ts";
import { StoreError, type Revision, type Row, type StoreEvent, type Value } from "../store.ts";
import { EVENT_DELETE, type KeyValue, type WatchEvent } from "./messages.ts";

export function rowOf({ key, value, mod_revision }: KeyValue): Row {
  return lazyRow(key.toString(), mod_revision, value);
}

/** Undefined: etcd no longer knows what was deleted. */
export function eventOf({ type, kv, prev_kv }: WatchEvent): StoreEvent | undefined {
  if (!kv) return undefined;
  const key = kv.key.toString();
  const previous = prev_kv && lazyRow(key, prev_kv.mod_revision, prev_kv.value);
  if (type !== EVENT_DELETE) return { type: "put", row: lazyRow(key, kv.mod_revision, kv.value), ...(previous && { previous }) };
  return previous && { type: "delete", row: lazyRow(key, kv.mod_revision, prev_kv!.value), previous };
}

function lazyRow(key: string, revision: Revision, text: Buffer): Row {
  let unread: Buffer | undefined = text;
  let value: Value | undefined;
  return {
    key,
    get value() {
      if (unread) {
        value = parse(key, unread);
        unread = undefined;
      }
      return value!;
    },
    revision,
  };
}

function parse(key: string, text: Buffer): Value {
  try {
    const value = parseValueText(text.toString());
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Value;
  } catch {
    // said below
  }
  const foreign = text.subarray(0, 4).equals(Buffer.from("k8s\0")); // how kube-apiserver marks protobuf
  throw new StoreError("corrupt", { key, reason: foreign ? "the value is protobuf: this etcd holds the cluster of another Kubernetes" : "the value is no JSON object" });
}

/** The first key after all that start with `prefix`. */
export function endOf(prefix: string): Buffer {
  const end = Buffer.from(prefix);
  for (let i = end.length - 1; i >= 0; i--) {
    if (end[i]! === 0xff) continue;
    end[i]!++;
    return end.subarray(0, i + 1);
  }
  return ALL_KEYS; // to the end
}

/** As a range's start and end: every key. */
export const ALL_KEYS = Buffer.of(0);

/** The first key after `key`. */
export function keyAfter(key: string): Buffer {
  return Buffer.concat([Buffer.from(key), ALL_KEYS]);
}
