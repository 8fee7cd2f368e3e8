/** Which keys of key services are named and used, how long the services take, and how many seeds of theirs are remembered. Source: kubernetes v1.36 apiserver/pkg/storage/value/encrypt/envelope/metrics/metrics.go */
import type { Clock } from "../core/lifecycle/clock.ts";
import { hashLabel } from "../core/observe/hash-label.ts";
import { doubling, type Labels, type Metrics } from "../core/observe/metrics.ts";
import type { KmsMeter } from "../storage/encryption/kms.ts";

/** In seconds. */
const LATENCIES = doubling(1e-4, 20);
/** A service may name another key each time: those that were named or used last are told. */
const KEYS_MAX = 100;

interface Key { readonly labels: Labels; count: number; lastMs: number }

/** `serverId`: this server's, among several. */
export function keyServiceMeter(metrics: Metrics, { serverId, clock }: { readonly serverId: string; readonly clock: Pick<Clock, "nowMs"> }): (name: string) => KmsMeter {
  const prefix = "apiserver_envelope_encryption", apiserver_id_hash = hashLabel(serverId);
  const used = new Map<string, Key>(), named = new Map<string, Key>();
  const latencies = metrics.histogram(`${prefix}_kms_operations_latency_seconds`, "[ALPHA] KMS operation duration with gRPC error code status total.", LATENCIES);
  const misnamed = metrics.counter(`${prefix}_invalid_key_id_from_status_total`, "[ALPHA] Number of times an invalid keyID is returned by the Status RPC call split by error.");
  const seeds = metrics.gauge(`${prefix}_dek_source_cache_size`, "[ALPHA] Number of records in data encryption key (DEK) source cache. On a restart, this value is an approximation of the number of decrypt RPC calls the server will make to the KMS plugin.");
  metrics.counterFrom(`${prefix}_key_id_hash_total`, "[ALPHA] Number of times a keyID is used split by transformation type, provider, and apiserver identity.", () => [...used.values()].map(({ labels, count }) => [labels, count]));
  metrics.gaugeFrom(`${prefix}_key_id_hash_last_timestamp_seconds`, "[ALPHA] The last time in seconds when a keyID was used.", () => lastTimes(used));
  metrics.gaugeFrom(`${prefix}_key_id_hash_status_last_timestamp_seconds`, "[ALPHA] The last time in seconds when a keyID was returned by the Status RPC call.", () => lastTimes(named));

  function note(keys: Map<string, Key>, id: string, labels: () => Labels): void {
    const key = keys.get(id) ?? { labels: labels(), count: 0, lastMs: 0 };
    key.count++;
    key.lastMs = clock.nowMs();
    keys.delete(id); // the one that was longest not seen goes first
    keys.set(id, key);
    if (keys.size > KEYS_MAX) keys.delete(keys.keys().next().value!);
  }

  return (provider_name) => ({
    called: (method_name, ms, code) => latencies.observe(ms / 1000, { grpc_status_code: code, method_name, provider_name }),
    named: (keyID) => note(named, `${provider_name} ${keyID}`, () => ({ apiserver_id_hash, key_id_hash: hashLabel(keyID), provider_name })),
    misnamed: (error) => misnamed.inc({ error, provider_name }),
    used: (transformation_type, keyID) => note(used, `${transformation_type} ${provider_name} ${keyID}`, () => ({ apiserver_id_hash, key_id_hash: hashLabel(keyID), provider_name, transformation_type })),
    remembers: (count) => seeds.set(count, { provider_name }),
  });
}

function lastTimes(keys: ReadonlyMap<string, Key>): [Labels, number][] { return [...keys.values()].map(({ labels, lastMs }) => [labels, lastMs / 1000]); }
