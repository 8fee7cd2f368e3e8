/**
 * Where API servers are: every server keeps a Lease in kube-system that says it lives and at which address, and makes the endpoints of
 * default/kubernetes those of all who live.
 *
 *   Lease apiserver-<hash of the node's name> ── renewed every 10 s ──▶ Endpoints and EndpointSlice default/kubernetes
 *
 * A server counts as gone when its Lease stays the same over two rounds of ours in which we could renew our own: no clocks are compared, and when the
 * store was away for all, nobody is gone. Which goes in order takes itself out, unless it is the last: its address will be the same when it comes back.
 *
 * Source: kubernetes v1.36 pkg/controlplane/apiserver/server.go (the Lease's name, labels and times), pkg/controlplane/reconcilers/lease.go
 */
import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { Lease } from "../api/gen/coordination.v1.ts";
import type { Endpoints } from "../api/gen/core.v1.ts";
import type { EndpointSlice } from "../api/gen/discovery.v1.ts";
import type { ApiObject, NewObject } from "../api/meta/object-meta.ts";
import { isAlreadyExists, isConflict, isNotFound } from "../api/meta/status-error.ts";
import type { Client, ResourceRef } from "../client/client.ts";
import { ENDPOINT_SLICES, ENDPOINTS, LEASES } from "../client/resources.ts";
import { type Clock, microTimestamp } from "../lifecycle/clock.ts";
import type { Random } from "../lifecycle/random.ts";
import type { Runnable } from "../lifecycle/run-all.ts";
import type { Log } from "../observe/log.ts";

export interface Advertised { readonly address: string; readonly port: number }

export interface KubernetesEndpointsOptions {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly nodeName: string;
  /** Where this server is reached by members of the cluster. */
  readonly advertise: Advertised;
  readonly renewMs?: number;
}

const RENEW_MS = 10_000; // IdentityLeaseRenewIntervalPeriod
const LEASE_SECONDS = 3600; // IdentityLeaseDurationSeconds
const NAMESPACE = "kube-system";
const IDENTITY_LABEL = "apiserver.kubernetes.io/identity";
const IDENTITY = "kube-apiserver";
const ADDRESS_ANNOTATION = "kubernetes.io/peer-advertise-address";
/** Rounds a Lease may stay as it is. */
const SILENT_MAX = 2;
/** What is still done when the server stops. */
const FAREWELL_MS = 2_000;

/** "apiserver-" and a hash, as upstream names its API servers. */
export function apiServerId(nodeName: string): string {
  const part = (text: string): Buffer => Buffer.concat([Buffer.of(Buffer.byteLength(text) >> 8, Buffer.byteLength(text) & 0xff), Buffer.from(text)]);
  return `apiserver-${base32(createHash("sha256").update(part(nodeName)).update(part(IDENTITY)).digest().subarray(0, 16))}`;
}

export interface KubernetesEndpoints extends Runnable {
  /** How many servers live, this one included, as of the last round. */
  serverCount(): number;
}

export function kubernetesEndpoints({ client, clock, random, log, nodeName, advertise, renewMs = RENEW_MS }: KubernetesEndpointsOptions): KubernetesEndpoints {
  const leases = client.resource(LEASES);
  const name = apiServerId(nodeName);
  const own = { metadata: { namespace: NAMESPACE, name } };
  const holderIdentity = `${name}_${random.uuid()}`;
  const seen = new Map<string, { readonly resourceVersion: string; readonly silent: number }>();
  let count = 1;

  function lease(): NewObject<Lease> {
    return {
      apiVersion: "coordination.k8s.io/v1", kind: "Lease",
      metadata: { ...own.metadata, labels: { [IDENTITY_LABEL]: IDENTITY, "kubernetes.io/hostname": nodeName }, annotations: { [ADDRESS_ANNOTATION]: formatAddress(advertise) } },
      spec: { holderIdentity, leaseDurationSeconds: LEASE_SECONDS, renewTime: microTimestamp(clock.nowMs()) },
    };
  }

  async function renew(signal: AbortSignal): Promise<void> {
    const fresh = lease();
    try {
      const { metadata } = await leases.get(own, { signal });
      await leases.update({ ...fresh, metadata: { ...metadata, ...fresh.metadata } } as Lease, { signal });
    } catch (error) {
      if (!isNotFound(error)) throw error;
      await leases.create(fresh, { signal });
    }
  }

  /** The Leases of servers that live; forgets and deletes those of servers that have not for as long as they promised. */
  async function living(signal: AbortSignal): Promise<readonly Readonly<Lease>[]> {
    const { items } = await leases.list({ namespace: NAMESPACE, labelSelector: `${IDENTITY_LABEL}=${IDENTITY}` }, { signal });
    const alive: Readonly<Lease>[] = [];
    for (const item of items) {
      const { name: id, resourceVersion } = item.metadata;
      const before = seen.get(id);
      const silent = before?.resourceVersion === resourceVersion ? before.silent + 1 : 0;
      seen.set(id, { resourceVersion, silent });
      if (id === name || silent < SILENT_MAX) alive.push(item);
      else if (silent * renewMs > LEASE_SECONDS * 1000) await leases.delete(item, { preconditions: { resourceVersion } }, { signal });
      else if (silent === SILENT_MAX) log.warn("an API server is gone", { lease: id, address: addressOf(item)?.address });
    }
    for (const id of seen.keys()) if (!items.some(({ metadata }) => metadata.name === id)) seen.delete(id);
    count = Math.max(1, alive.length);
    return alive;
  }

  async function publish(servers: readonly Readonly<Lease>[], signal: AbortSignal): Promise<void> {
    const addresses = [...new Set(servers.flatMap((one) => addressOf(one)?.address ?? []))].sort();
    if (addresses.length === 0) return;
    await write(client, ENDPOINTS, endpointsOf(addresses, advertise.port), signal);
    await write(client, ENDPOINT_SLICES, sliceOf(addresses, advertise.port), signal);
  }

  async function leave(): Promise<void> {
    const late = new AbortController();
    const alarm = clock.after(FAREWELL_MS, () => late.abort());
    try {
      const others = (await living(late.signal)).filter(({ metadata }) => metadata.name !== name);
      await publish(others, late.signal);
      await leases.delete(own, {}, { signal: late.signal });
    } catch (error) {
      log.debug("this server could not take itself out of the endpoints", { error });
    } finally {
      alarm.cancel();
    }
  }

  return {
    name: "kubernetes endpoints",
    serverCount: () => count,
    async run(signal, ready) {
      let told = ""; // one trouble is logged once
      for await (const _ of clock.every(renewMs, signal)) {
        try {
          await renew(signal);
          await publish(await living(signal), signal);
          told = "";
        } catch (error) {
          const { message } = error as Error;
          if (!signal.aborted && !isConflict(error) && message !== told) log.warn("the endpoints of the API servers could not be written", { error });
          told = message;
        }
        ready();
      }
      await leave();
    },
  };
}

async function write<T extends ApiObject>(client: Client, ref: ResourceRef<T>, wanted: NewObject<T>, signal: AbortSignal): Promise<void> {
  const resource = client.resource(ref);
  try {
    const found = await resource.get({ metadata: { namespace: wanted.metadata.namespace, name: wanted.metadata.name! } }, { signal });
    if (familyOf(found) !== familyOf(wanted)) { // a slice's cannot be changed
      await resource.delete(found, { preconditions: { uid: found.metadata.uid } }, { signal });
      await resource.create(wanted, { signal });
      return;
    }
    const labels = "addressType" in wanted ? wanted.metadata.labels : { ...found.metadata.labels, ...wanted.metadata.labels }; // a slice has no others
    const next = { ...found, ...wanted, metadata: { ...found.metadata, labels } } as T;
    if (!isDeepStrictEqual(plain(next), plain(found))) await resource.update(next, { signal });
  } catch (error) {
    if (!isNotFound(error)) throw error;
    await resource.create(wanted, { signal }).catch((problem: unknown) => {
      if (!isAlreadyExists(problem)) throw problem; // another server was first
    });
  }
}

function familyOf(object: object): unknown { return "addressType" in object ? object.addressType : undefined; }

function plain(object: unknown): unknown { return JSON.parse(JSON.stringify(object)); }

function endpointsOf(addresses: readonly string[], port: number): NewObject<Endpoints> {
  return {
    apiVersion: "v1", kind: "Endpoints",
    metadata: { name: "kubernetes", namespace: "default", labels: { "endpointslice.kubernetes.io/skip-mirror": "true" } },
    subsets: [{ addresses: addresses.map((ip) => ({ ip })), ports: [{ name: "https", port, protocol: "TCP" }] }],
  };
}

/** A slice has one family: IPv4 if any server has it. */
function sliceOf(addresses: readonly string[], port: number): NewObject<EndpointSlice> {
  const v4 = addresses.filter((ip) => !ip.includes(":"));
  return {
    apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice",
    metadata: { name: "kubernetes", namespace: "default", labels: { "kubernetes.io/service-name": "kubernetes" } },
    addressType: v4.length > 0 ? "IPv4" : "IPv6",
    endpoints: (v4.length > 0 ? v4 : addresses).map((ip) => ({ addresses: [ip], conditions: { ready: true } })),
    ports: [{ name: "https", port, protocol: "TCP" }],
  };
}

function formatAddress({ address, port }: Advertised): string { return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`; }

function addressOf({ metadata }: Readonly<Lease>): Advertised | undefined {
  const [, v6, v4, port] = /^(?:\[(.+)\]|([^:]+)):(\d+)$/.exec(metadata.annotations?.[ADDRESS_ANNOTATION] ?? "") ?? [];
  const address = v6 ?? v4;
  return address === undefined ? undefined : { address, port: Number(port) };
}

/** RFC 4648, lower case, without padding. */
function base32(bytes: Uint8Array): string {
  let text = "";
  for (let i = 0, bits = 0, held = 0; i < bytes.length; i++) {
    held = ((held << 8) | bytes[i]!) & 0xfff;
    for (bits += 8; bits >= 5; bits -= 5) text += "abcdefghijklmnopqrstuvwxyz234567"[(held >> (bits - 5)) & 31];
    if (i === bytes.length - 1 && bits > 0) text += "abcdefghijklmnopqrstuvwxyz234567"[(held << (5 - bits)) & 31];
  }
  return text;
}
