/**
 * Dynamic resource allocation on the node: the drivers that registered prepare the claims of a pod before anything of it starts, and are told when
 * the last pod that used a claim is gone. What was begun is on disk, under upstream's name. Drivers come and go: dra-drivers.ts.
 *
 * Source: kubernetes v1.36 pkg/kubelet/cm/dra
 */
import { join } from "node:path";
import type { Pod, ResourceStatus } from "../../../core/api/gen/core.v1.ts";
import type { ResourceClaim } from "../../../core/api/gen/resource.v1.ts";
import type { Client } from "../../../core/client/client.ts";
import type { EventRecorder } from "../../../core/client/events.ts";
import { RESOURCE_CLAIMS } from "../../../core/client/resources.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Runnable } from "../../../core/lifecycle/run-all.ts";
import type { Log } from "../../../core/observe/log.ts";
import type { Metrics } from "../../../core/observe/metrics.ts";
import { readStateFile, stateFile } from "../../os/state-file.ts";
import { keyedTurns } from "../../../core/lifecycle/keyed-turns.ts";
import type { NodePrepareResourceResponse as Answer } from "../plugins/gen/dra.v1.ts";
import type { PluginHandler } from "../plugins/plugin-watcher.ts";
import { podReference } from "../pod-spec.ts";
import { claimMetrics } from "./claim-metrics.ts";
import { readClaims, storedClaims } from "./checkpoint.ts";
import { checkClaim, claimHealth, claimsOfPod, devicesOfContainer, driversOf, type PreparedClaim, type PreparedDevice } from "./claim-plan.ts";
import { deviceHealths } from "./device-health.ts";
import { draDrivers } from "./dra-drivers.ts";

/** `anew`: the pod has no sandbox. */
interface PrepareCall { readonly anew: boolean; readonly signal: AbortSignal }

export interface ClaimManager extends Runnable {
  readonly handler: PluginHandler;
  /** Throws while something is missing: tried again. */
  prepare(pod: Pod, call: PrepareCall): Promise<void>;
  devicesOf(pod: Pod, container: string): ReturnType<typeof devicesOfContainer>;
  /** How what the container has is, for its status. */
  healthOf(pod: Pod, container: string): ResourceStatus[];
  /** The pod's containers are gone. Throws while a driver cannot do its part. */
  release(podUid: string, signal: AbortSignal): Promise<void>;
  /** Only these pods are left: what others still have, since they went while we did not run, is released, as far as drivers can. */
  retain(pods: ReadonlySet<string>, signal: AbortSignal): Promise<void>;
}

interface Deps {
  readonly dataDir: string;
  readonly nodeName: string;
  readonly client: Client;
  readonly clock: Clock;
  readonly log: Log;
  readonly events: EventRecorder;
  readonly metrics: Metrics;
  readonly onRegistered: () => void;
  /** Drivers say that devices are otherwise. */
  readonly onHealth: () => void;
}

const PREPARE_MS = 45_000;

function keyOf({ metadata: { namespace = "", name } }: Readonly<ResourceClaim>): string { return `${namespace}/${name}`; }

function devicesIn(driver: string, { devices = [] }: Answer): PreparedDevice[] {
  return devices.map(({ request_names = [], pool_name = "", device_name = "", cdi_device_ids = [], share_id }) => ({
    driver, pool: pool_name, device: device_name, requests: request_names, cdiIds: cdi_device_ids, ...(share_id ? { shareId: share_id } : {}),
  }));
}

export function claimManager({ dataDir, nodeName, client, clock, log, events, metrics, onRegistered, onHealth }: Deps): ClaimManager {
  const path = join(dataDir, "dra_manager_state");
  const file = stateFile(path);
  const claims = new Map<string, PreparedClaim>((readStateFile(path, log, readClaims) ?? []).map((claim) => [`${claim.namespace}/${claim.name}`, claim]));
  const prepared = new Set<string>(); // uids of claims, in this process's life
  const inTurn = keyedTurns();
  const measured = claimMetrics({ metrics, clock });
  const healths = deviceHealths({ clock, log, onChange: onHealth });
  const drivers = draDrivers({ nodeName, client, clock, log, onRegistered(name, endpoint, signal) {
    void healths.follow(name, endpoint, signal);
    onRegistered();
  } });

  measured.inUse(() => [...claims.values()].filter(({ devices }) => devices).map(({ drivers: of }) => of));

  /** Undefined: it is prepared no more. Throws while it is not on disk: whoever starts something with it asks again, by `file.written`. */
  async function remember(changes: ReadonlyMap<string, PreparedClaim | undefined>): Promise<void> {
    if (changes.size === 0) return;
    for (const [key, claim] of changes) {
      if (claim) claims.set(key, claim);
      else {
        prepared.delete(claims.get(key)?.uid ?? "");
        claims.delete(key);
      }
    }
    file.save(() => storedClaims(claims.values()));
    await file.written();
  }

  /** In turn for all of them: in the order of their names, so that nobody waits for who waits for him. */
  async function inTurns(keys: readonly string[], work: () => Promise<void>): Promise<void> {
    const [first, ...rest] = [...new Set(keys)].toSorted();
    return await (first === undefined ? work() : inTurn(first, () => inTurns(rest, work)));
  }

  /** All claims of a pod that concern a driver at once, as upstream asks: drivers number what they give by that. Each is answered. */
  async function ask<M extends "NodePrepareResources" | "NodeUnprepareResources">(name: string, method: M, wanted: readonly PreparedClaim[], signal: AbortSignal): Promise<readonly (readonly [PreparedClaim, Answer])[]> {
    const { client: rpc, service } = drivers.driver(name);
    const request = { claims: wanted.map(({ namespace, name: claim, uid }) => ({ namespace, name: claim, uid })) };
    const { claims: answers = {} } = await measured.call(name, `/${service}/${method}`, async () => await rpc.call(`DRAPlugin/${method}`, request, { signal, timeoutMs: PREPARE_MS })).catch((cause: Error) => {
      throw new Error(`${method}: ${cause.message}`, { cause });
    }) as { readonly claims?: Readonly<Record<string, Answer>> };
    const told = Object.entries(answers).map(([uid, answer]) => {
      const claim = wanted.find((one) => one.uid === uid);
      if (!claim) throw new Error(`${method} returned result for unknown claim UID ${uid}`);
      if (answer.error) throw new Error(`${method} failed for ResourceClaim ${claim.name}: ${answer.error}`);
      return [claim, answer] as const;
    });
    if (told.length < wanted.length) throw new Error(`${method} skipped ${wanted.length - told.length} ResourceClaims`);
    return told;
  }

  /** For a pod that begins anew what was prepared before this process is prepared again, as upstream asks: the machine may have been down, and what drivers write where it does not last is gone. */
  function isPrepared(claim: PreparedClaim, anew: boolean): boolean { return claim.devices !== undefined && (!anew || prepared.has(claim.uid)); }

  async function prepareClaims(pod: Pod, wanted: readonly Readonly<ResourceClaim>[], { anew, signal }: PrepareCall): Promise<void> {
    const begun = new Map<string, PreparedClaim>();
    const joined = new Map<string, PreparedClaim>();
    for (const claim of wanted) {
      const { name, namespace = "", uid } = claim.metadata;
      const key = keyOf(claim);
      const old = claims.get(key);
      if (old && old.uid !== uid) throw new Error(`old ResourceClaim with same name ${name} and different UID ${old.uid} still exists (previous pod force-deleted?!)`);
      const pods = [...new Set([...(old?.pods ?? []), pod.metadata.uid])];
      if (!old || !isPrepared(old, anew)) begun.set(key, { ...old, namespace, name, uid, drivers: driversOf(claim), pods }); // its other pods have meanwhile what they had
      else if (pods.length !== old.pods.length) joined.set(key, { ...old, pods });
    }
    const asked = new Set([...begun.values()].flatMap((claim) => claim.drivers));
    for (const one of asked) drivers.driver(one); // nothing has begun where a driver is missing: the pod's end waits for none
    await remember(new Map([...joined, ...begun]));
    const given = new Map<string, PreparedDevice[]>([...begun.values()].map(({ uid }) => [uid, []]));
    for (const driver of asked) {
      const answers = await ask(driver, "NodePrepareResources", [...begun.values()].filter((claim) => claim.drivers.includes(driver)), signal);
      for (const [{ uid }, answer] of answers) given.get(uid)!.push(...devicesIn(driver, answer));
    }
    for (const { uid } of begun.values()) prepared.add(uid);
    await remember(new Map([...begun].map(([key, claim]) => [key, { ...claim, devices: given.get(claim.uid)! }])));
  }

  async function prepareAll(pod: Pod, { anew, signal }: PrepareCall): Promise<void> {
    const wanted: Readonly<ResourceClaim>[] = [];
    try {
      for (const { name, isMade } of claimsOfPod(pod)) {
        const namespace = pod.metadata.namespace ?? "";
        const known = claims.get(`${namespace}/${name}`);
        const isDone = known !== undefined && isPrepared(known, anew);
        if (isDone && known.pods.includes(pod.metadata.uid)) continue;
        const claim = await client.resource(RESOURCE_CLAIMS).get({ metadata: { namespace, name } }, { signal }).catch((cause: Error) => { throw new Error(`fetch ResourceClaim ${name}: ${cause.message}`, { cause }); });
        checkClaim(pod, claim, { isMade });
        for (const one of isDone ? [] : driversOf(claim)) drivers.driver(one);
        wanted.push(claim);
      }
      await inTurns(wanted.map(keyOf), () => prepareClaims(pod, wanted, { anew, signal })); // none where one of them cannot be
      await file.written(); // of those that were prepared by a look before this one, too
    } catch (cause) {
      signal.throwIfAborted();
      const message = `Failed to prepare dynamic resources: prepare dynamic resources: ${(cause as Error).message}`;
      events.event(podReference(pod), "Warning", "FailedPrepareDynamicResources", message);
      throw new Error(message, { cause });
    }
  }

  /** As far as drivers can: what one cannot do keeps no other. Throws what the first of them could not. */
  async function releaseAll(podUid: string, own: readonly string[], signal: AbortSignal): Promise<void> {
    await inTurns(own, async () => {
      const mine = own.flatMap((key) => { const claim = claims.get(key); return claim ? [[key, claim] as const] : []; });
      const left = ({ pods }: PreparedClaim): string[] => pods.filter((uid) => uid !== podUid);
      const last = mine.filter(([, claim]) => left(claim).length === 0).map(([, claim]) => claim);
      const stuck = new Set<PreparedClaim>();
      const errors: unknown[] = [];
      for (const driver of new Set(last.flatMap((claim) => claim.drivers))) {
        const of = last.filter((claim) => claim.drivers.includes(driver));
        await ask(driver, "NodeUnprepareResources", of, signal).catch((error: unknown) => {
          for (const claim of of) stuck.add(claim);
          errors.push(error);
        });
      }
      await remember(new Map(mine.filter(([, claim]) => !stuck.has(claim)).map(([key, claim]) => [key, left(claim).length > 0 ? { ...claim, pods: left(claim) } : undefined])));
      if (errors.length > 0) throw errors[0];
    });
  }

  return {
    name: "resource-claims",
    handler: drivers.handler,
    run: drivers.run,

    async prepare(pod, call) {
      if (!pod.spec.resourceClaims?.length && !pod.status?.extendedResourceClaimStatus) return;
      await measured.operation("PrepareResources", () => prepareAll(pod, call));
    },

    devicesOf: (pod, container) => devicesOfContainer(pod, container, (name) => claims.get(`${pod.metadata.namespace ?? ""}/${name}`)),

    healthOf: (pod, container) => claimHealth(pod, container, { preparedAs: (name) => claims.get(`${pod.metadata.namespace ?? ""}/${name}`), healthOf: ({ driver: name, pool, device }) => healths.of(name, pool, device) }),

    async release(podUid, signal) {
      const own = [...claims].flatMap(([key, { pods }]) => (pods.includes(podUid) ? [key] : []));
      if (own.length > 0) await measured.operation("UnprepareResources", () => releaseAll(podUid, own, signal));
    },

    async retain(pods, signal) {
      const gone = new Set([...claims.values()].flatMap((claim) => claim.pods.filter((uid) => !pods.has(uid))));
      for (const uid of gone) {
        const own = [...claims].flatMap(([key, claim]) => (claim.pods.includes(uid) ? [key] : []));
        await releaseAll(uid, own, signal).catch((error: unknown) => log.info("claims of a pod that is gone not released, next try later", { podUid: uid, error }));
      }
    },
  };
}
