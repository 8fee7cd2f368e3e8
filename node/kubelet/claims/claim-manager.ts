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
import { readStateFile, writeStateFile } from "../../os/state-file.ts";
import { keyedTurns } from "../../../core/lifecycle/keyed-turns.ts";
import type { PluginHandler } from "../plugins/plugin-watcher.ts";
import { podReference } from "../pod-spec.ts";
import { claimMetrics } from "./claim-metrics.ts";
import { readClaims, storedClaims } from "./checkpoint.ts";
import { checkClaim, claimHealth, claimsOfPod, devicesOfContainer, driversOf, type PreparedClaim, type PreparedDevice } from "./claim-plan.ts";
import { deviceHealths } from "./device-health.ts";
import { draDrivers } from "./dra-drivers.ts";

export interface ClaimManager extends Runnable {
  readonly handler: PluginHandler;
  /** Throws while something is missing: tried again. */
  prepare(pod: Pod, signal: AbortSignal): Promise<void>;
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

export function claimManager({ dataDir, nodeName, client, clock, log, events, metrics, onRegistered, onHealth }: Deps): ClaimManager {
  const path = join(dataDir, "dra_manager_state");
  const claims = new Map<string, PreparedClaim>((readStateFile(path, log, readClaims) ?? []).map((claim) => [`${claim.namespace}/${claim.name}`, claim]));
  const inTurn = keyedTurns();
  const measured = claimMetrics({ metrics, clock });
  const healths = deviceHealths({ clock, log, onChange: onHealth });
  const drivers = draDrivers({ nodeName, client, clock, log, onRegistered(name, endpoint, signal) {
    void healths.follow(name, endpoint, signal);
    onRegistered();
  } });

  measured.inUse(() => [...claims.values()].filter(({ devices }) => devices).map(({ drivers: of }) => of));

  async function remember(claim: PreparedClaim | undefined, key: string): Promise<void> {
    if (claim) claims.set(key, claim);
    else claims.delete(key);
    await writeStateFile(path, storedClaims(claims.values()));
  }

  async function ask<M extends "NodePrepareResources" | "NodeUnprepareResources">(name: string, method: M, { namespace, name: claim, uid }: Pick<PreparedClaim, "namespace" | "name" | "uid">, signal: AbortSignal) {
    const { client: rpc, service } = drivers.driver(name);
    try {
      return await measured.call(name, `/${service}/${method}`, async () => await rpc.call(`DRAPlugin/${method}`, { claims: [{ namespace, name: claim, uid }] }, { signal, timeoutMs: PREPARE_MS }));
    } catch (cause) {
      throw new Error(`${method}: ${(cause as Error).message}`, { cause });
    }
  }

  async function prepareClaim(pod: Pod, claim: Readonly<ResourceClaim>, signal: AbortSignal): Promise<void> {
    const { name, namespace = "", uid } = claim.metadata;
    const key = `${namespace}/${name}`;
    const old = claims.get(key);
    if (old && old.uid !== uid) throw new Error(`old ResourceClaim with same name ${name} and different UID ${old.uid} still exists (previous pod force-deleted?!)`);
    const pods = [...new Set([...(old?.pods ?? []), pod.metadata.uid])];
    if (old?.devices) {
      if (pods.length !== old.pods.length) await remember({ ...old, pods }, key);
      return;
    }
    const begun: PreparedClaim = { namespace, name, uid, drivers: driversOf(claim), pods };
    for (const one of begun.drivers) drivers.driver(one); // nothing has begun where a driver is missing: the pod's end waits for none
    await remember(begun, key);
    const devices: PreparedDevice[] = [];
    for (const driverName of begun.drivers) devices.push(...(await devicesFrom(driverName, begun, signal)));
    await remember({ ...begun, devices }, key);
  }

  async function devicesFrom(driver: string, claim: PreparedClaim, signal: AbortSignal): Promise<PreparedDevice[]> {
    const { claims: answers = {} } = await ask(driver, "NodePrepareResources", claim, signal);
    const answer = answers[claim.uid];
    if (!answer) throw new Error("NodePrepareResources skipped 1 ResourceClaims");
    if (answer.error) throw new Error(`NodePrepareResources failed for ResourceClaim ${claim.name}: ${answer.error}`);
    return (answer.devices ?? []).map(({ request_names = [], pool_name = "", device_name = "", cdi_device_ids = [], share_id }) => ({ driver, pool: pool_name, device: device_name, requests: request_names, cdiIds: cdi_device_ids, ...(share_id ? { shareId: share_id } : {}) }));
  }

  async function prepareAll(pod: Pod, signal: AbortSignal): Promise<void> {
    const wanted: Readonly<ResourceClaim>[] = [];
    try {
      for (const { name, isMade } of claimsOfPod(pod)) {
        const namespace = pod.metadata.namespace ?? "";
        const known = claims.get(`${namespace}/${name}`);
        if (known?.devices && known.pods.includes(pod.metadata.uid)) continue;
        const claim = await client.resource(RESOURCE_CLAIMS).get({ metadata: { namespace, name } }, { signal }).catch((cause: Error) => { throw new Error(`fetch ResourceClaim ${name}: ${cause.message}`, { cause }); });
        checkClaim(pod, claim, { isMade });
        for (const one of known?.devices ? [] : driversOf(claim)) drivers.driver(one);
        wanted.push(claim);
      }
      for (const claim of wanted) await inTurn(`${claim.metadata.namespace ?? ""}/${claim.metadata.name}`, () => prepareClaim(pod, claim, signal)); // none where one of them cannot be
    } catch (cause) {
      signal.throwIfAborted();
      const message = `Failed to prepare dynamic resources: prepare dynamic resources: ${(cause as Error).message}`;
      events.event(podReference(pod), "Warning", "FailedPrepareDynamicResources", message);
      throw new Error(message, { cause });
    }
  }

  async function releaseAll(podUid: string, own: readonly string[], signal: AbortSignal): Promise<void> {
    for (const key of own) {
      await inTurn(key, async () => {
        const claim = claims.get(key);
        if (!claim) return;
        const left = claim.pods.filter((uid) => uid !== podUid);
        if (left.length > 0) return await remember({ ...claim, pods: left }, key);
        for (const driverName of claim.drivers) {
          const { claims: answers = {} } = await ask(driverName, "NodeUnprepareResources", claim, signal);
          const answer = answers[claim.uid];
          if (!answer) throw new Error("NodeUnprepareResources skipped 1 ResourceClaims");
          const { error } = answer;
          if (error) throw new Error(`NodeUnprepareResources failed for ResourceClaim ${claim.name}: ${error}`);
        }
        await remember(undefined, key);
      });
    }
  }

  return {
    name: "resource-claims",
    handler: drivers.handler,
    run: drivers.run,

    async prepare(pod, signal) {
      if (!pod.spec.resourceClaims?.length && !pod.status?.extendedResourceClaimStatus) return;
      await measured.operation("PrepareResources", () => prepareAll(pod, signal));
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
