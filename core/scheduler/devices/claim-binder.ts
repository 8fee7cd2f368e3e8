/**
 * Carries out a DevicePlan once its pod has a node: the allocation and the reservation are written into each claim's status, then it waits until the
 * drivers have made ready what has to be.
 *
 * Source: kubernetes v1.36 pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go Reserve, PreBind, bindClaim, Unreserve
 */
import type { ContainerExtendedResourceRequest, Pod } from "../../api/gen/core.v1.ts";
import type { AllocationResult, ResourceClaim } from "../../api/gen/resource.v1.ts";
import { errorText } from "../../api/meta/error-text.ts";
import { keyOf, type NewObject } from "../../api/meta/object-meta.ts";
import { isConflict, isNotFound } from "../../api/meta/status-error.ts";
import type { Client } from "../../client/client.ts";
import { PODS, RESOURCE_CLAIMS } from "../../client/resources.ts";
import { type Clock, timestamp } from "../../lifecycle/clock.ts";
import type { Random } from "../../lifecycle/random.ts";
import type { Log } from "../../observe/log.ts";
import type { LiveNode } from "../node-info.ts";
import { allocationResult } from "./allocation-result.ts";
import { devicesOf, hasConditions, isOverdue, readiness } from "./binding-conditions.ts";
import { type Devices, isReservedFor, notFound } from "./claims.ts";
import type { DevicePlan } from "./plan.ts";

const FINALIZER = "resource.kubernetes.io/delete-protection";
const POLL_MS = 5_000;
/** As client-go's retry.DefaultRetry. */
const TRIES = 5;

interface Deps { readonly client: Client; readonly clock: Clock; readonly random: Random; readonly log: Log; readonly devices: Devices; readonly onMade?: (status: "success" | "failure") => void }

interface Held {
  claim: Readonly<ResourceClaim>;
  readonly allocation: AllocationResult | undefined;
  /** Another pod of the group was to have it before: whoever comes first writes the allocation. */
  readonly isShared?: boolean;
  /** It is one of those for whom the allocation is pending. */
  isCounted?: boolean;
  /** Set: the claim does not exist yet, and is made of the pod's extended resources. */
  readonly mappings?: readonly ContainerExtendedResourceRequest[];
  made: boolean;
  /** The informer has told of it. */
  isKnown?: true;
}

/** What was decided for one pod, held until it is carried out or taken back. */
export interface DeviceReservation {
  readonly pod: Readonly<Pod>;
  readonly claims: Held[];
}

/** How long a pod has waited for what its devices have, by their drivers, and how that ended. */
export interface DeviceWait {
  readonly status: "success" | "failure" | "timeout" | "error";
  readonly ms: number;
  readonly devices: readonly { readonly driver: string; readonly hasConditions: boolean }[];
}

/** Devices do not become ready. */
class DeviceFault extends Error {
  override readonly name = "DeviceFault";
  readonly status: "failure" | "timeout";

  constructor(status: DeviceFault["status"], message: string) {
    super(message);
    this.status = status;
  }
}

export class ClaimBinder {
  readonly #deps: Deps;
  /** By uid of claim: for how many pods its allocation is pending. */
  readonly #sharers = new Map<string, number>();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** From now on the devices count as taken. undefined: there is nothing to do. */
  reserve(pod: Readonly<Pod>, plan: DevicePlan, { name, node }: LiveNode): DeviceReservation | undefined {
    const here = plan.on(node);
    if ("reason" in here) throw new Error(`running "DynamicResources" reserve plugin: claim allocation not found for node`);
    const { random, devices } = this.#deps;
    const options = { node: name, uuid: () => random.uuid() };
    const claims = plan.claims.map((claim): Held => {
      const at = plan.toAllocate.indexOf(claim), { uid } = claim.metadata;
      if (at >= 0) return { claim, made: true, allocation: allocationResult(claim, here.found[at]!, options) };
      const isShared = devices.shared.has(uid) && devices.pending.has(uid);
      return { claim, made: true, allocation: isShared ? devices.pending.get(uid) : undefined, isShared };
    });
    if (here.extended) claims.push({ claim: here.extended.claim, made: false, mappings: here.extended.mappings, allocation: allocationResult(here.extended.claim, here.extended.found, options) });
    if (claims.length === 0) return undefined;
    for (const one of claims) this.#await(one);
    return { pod, claims };
  }

  /** Resolves once all claims are the pod's and their devices are ready. `waiting`: told when that takes longer; `waited`: and what became of it. */
  async bind(reservation: DeviceReservation, { timeoutMs, waiting, waited, signal }: { readonly timeoutMs: number; readonly waiting: () => void; readonly waited?: (wait: DeviceWait) => void; readonly signal: AbortSignal }): Promise<void> {
    const { devices, clock } = this.#deps;
    const { pod, claims } = reservation;
    for (const one of claims) {
      if (isReservedFor(one.claim, pod)) continue;
      if (one.mappings) await this.#make(one, signal);
      one.claim = await this.#write(one, pod, signal);
      devices.claims.assume(one.claim);
      if (!one.mappings) { // a new one counts so until it is seen
        this.#awaitNoMore(one);
        devices.pending.delete(one.claim.metadata.uid);
      }
      else await this.#tell(pod, one.claim, one.mappings, signal);
    }
    if (!claims.some(({ claim }) => hasConditions(claim))) return;
    waiting();
    const startMs = clock.uptimeMs();
    const came = (status: DeviceWait["status"]): void => waited?.({ status, ms: clock.uptimeMs() - startMs, devices: claims.flatMap(({ claim }) => devicesOf(claim)) });
    try {
      await this.#untilReady(claims, timeoutMs, signal);
    } catch (error) {
      came(error instanceof DeviceFault ? error.status : "error");
      throw error;
    }
    came("success");
  }

  async #untilReady(claims: readonly Held[], timeoutMs: number, signal: AbortSignal): Promise<void> {
    const { devices, clock } = this.#deps;
    const endMs = clock.uptimeMs() + timeoutMs;
    for (;;) {
      let ready = true;
      for (const one of claims) {
        const known = devices.claims.get(keyOf(one.claim));
        if (!known && (one.isKnown || !one.mappings)) throw new Error(notFound(keyOf(one.claim)));
        if (known) Object.assign(one, { claim: known, isKnown: true });
        const state = readiness(one.claim);
        if (state !== undefined && state !== "ready") throw new DeviceFault("failure", state.failed);
        if (state === undefined && isOverdue(one.claim, clock.nowMs(), timeoutMs)) throw new DeviceFault("timeout", `device binding timeout: claim=${one.claim.metadata.name}`);
        ready &&= state === "ready";
      }
      if (ready) return;
      if (clock.uptimeMs() >= endMs) throw new DeviceFault("timeout", "device binding timeout: context deadline exceeded");
      await clock.sleep(POLL_MS, signal);
      signal.throwIfAborted();
    }
  }

  /** The pod goes elsewhere: others may have what it reserved. */
  async takeBack({ pod, claims }: DeviceReservation, signal: AbortSignal): Promise<void> {
    const { client, devices, log } = this.#deps;
    for (const one of claims) if (one.allocation && this.#awaitNoMore(one)) devices.pending.delete(one.claim.metadata.uid);
    for (const { claim, mappings, made } of claims) {
      if (mappings) {
        if (made) await this.#remove(claim, signal);
        continue;
      }
      if (!claim.status?.allocation || !isReservedFor(claim, pod)) continue;
      try {
        const patch = { metadata: { uid: claim.metadata.uid }, status: { reservedFor: [{ $patch: "delete", uid: pod.metadata.uid }] } };
        await client.resource(RESOURCE_CLAIMS).patch(claim, "application/strategic-merge-patch+json", patch, { signal, subresource: "status" });
      } catch (error) { // the next attempt finds it reserved for the pod, or its controller cleans up
        if (!signal.aborted && !isNotFound(error)) log.warn("a claim could not be given back", { claim: keyOf(claim), pod: keyOf(pod), error });
      }
    }
  }

  /** What `deallocateOne` comes to, in upstream's words. */
  deallocation(pod: Readonly<Pod>, plan: DevicePlan): string {
    if (plan.stale) return "deletion of ResourceClaim completed";
    return idleClaim(pod, plan) ? "deallocation of ResourceClaim completed" : "still not schedulable";
  }

  /** A claim that nobody uses, or only this pod would, loses its devices: it may get others. */
  async deallocateOne(pod: Readonly<Pod>, plan: DevicePlan, signal: AbortSignal): Promise<void> {
    if (plan.stale) return await this.#remove(plan.stale, signal);
    const claim = idleClaim(pod, plan);
    if (!claim) return;
    const { allocation: _allocation, reservedFor: _reserved, devices: _devices, ...status } = claim.status ?? {};
    try {
      await this.#deps.client.resource(RESOURCE_CLAIMS).updateStatus({ ...claim, status } as ResourceClaim, { signal });
    } catch (error) { // somebody was faster; the next attempt looks again
      if (!signal.aborted && !isConflict(error) && !isNotFound(error)) this.#deps.log.warn("a claim could not be deallocated", { claim: keyOf(claim), error });
    }
  }

  /** A claim for extended resources, under a name of its own. */
  async #make(one: Held, signal: AbortSignal): Promise<void> {
    const { client, devices, onMade } = this.#deps;
    const { claim: planned } = one;
    const { metadata: { namespace, generateName, ownerReferences, annotations }, apiVersion, kind, spec } = one.claim;
    let claim: ResourceClaim;
    try {
      claim = await client.resource(RESOURCE_CLAIMS).create({ apiVersion, kind, metadata: { namespace, generateName, ownerReferences, annotations }, spec } as NewObject<ResourceClaim>, { signal });
    } catch (cause) {
      onMade?.("failure");
      throw whileDoing(`create claim for extended resources ${namespace}/<extended-resources>`, cause);
    }
    onMade?.("success");
    this.#awaitNoMore(one); // as it was planned
    Object.assign(one, { claim, made: true });
    this.#await(one);
    devices.pending.delete(planned.metadata.uid);
  }

  async #tell(pod: Readonly<Pod>, claim: Readonly<ResourceClaim>, requestMappings: readonly ContainerExtendedResourceRequest[], signal: AbortSignal): Promise<void> {
    const status = { extendedResourceClaimStatus: { requestMappings, resourceClaimName: claim.metadata.name } };
    try {
      await this.#deps.client.resource(PODS).patch(pod, "application/strategic-merge-patch+json", { metadata: { uid: pod.metadata.uid }, status }, { signal, subresource: "status" });
    } catch (error) {
      throw whileDoing(`update pod ${keyOf(pod)} ExtendedResourceClaimStatus`, error);
    }
  }

  async #remove(claim: Readonly<ResourceClaim>, signal: AbortSignal): Promise<void> {
    const { client, log } = this.#deps;
    const claims = client.resource(RESOURCE_CLAIMS);
    try {
      const current = await claims.get(claim, { signal });
      const finalizers = (current.metadata.finalizers ?? []).filter((one) => one !== FINALIZER);
      if (finalizers.length < (current.metadata.finalizers ?? []).length) await claims.update({ ...current, metadata: { ...current.metadata, finalizers } } as ResourceClaim, { signal });
      await claims.delete(claim, { preconditions: { uid: claim.metadata.uid } }, { signal });
    } catch (error) { // the next attempt, or the claim's controller, takes it away
      if (!signal.aborted && !isNotFound(error)) log.warn("a claim for extended resources could not be removed", { claim: keyOf(claim), error });
    }
  }

  #await(one: Held): void {
    const { claim: { metadata: { uid } }, allocation } = one;
    if (!allocation) return;
    this.#deps.devices.pending.set(uid, allocation);
    one.isCounted = true;
    this.#sharers.set(uid, (this.#sharers.get(uid) ?? 0) + 1);
  }

  /** Whether nobody else does, either. */
  #awaitNoMore(one: Held): boolean {
    const { uid } = one.claim.metadata;
    const left = (this.#sharers.get(uid) ?? 0) - (one.isCounted ? 1 : 0);
    one.isCounted = false;
    if (left > 0) this.#sharers.set(uid, left);
    else this.#sharers.delete(uid);
    return left <= 0;
  }

  async #write({ claim: first, allocation, isShared = false }: Held, pod: Readonly<Pod>, signal: AbortSignal): Promise<Readonly<ResourceClaim>> {
    const { client, clock } = this.#deps;
    const claims = client.resource(RESOURCE_CLAIMS);
    for (let tries = 1, claim = first; ; tries++) {
      let doing = `get updated claim ${keyOf(first)} after conflict`;
      try {
        if (tries > 1) claim = await claims.get(first, { signal });
        doing = "";
        if (claim.metadata.deletionTimestamp != null) throw new Error(`claim ${keyOf(claim)} got deleted in the meantime`);
        if (allocation && !isShared && claim.status?.allocation) throw new Error(`claim ${keyOf(claim)} got allocated elsewhere in the meantime`);
        if (!allocation && !claim.status?.allocation) throw new Error(`claim ${keyOf(claim)} got deallocated elsewhere in the meantime`);
        doing = `add finalizer to claim ${keyOf(claim)}`;
        if (allocation && !claim.metadata.finalizers?.includes(FINALIZER))
          claim = await claims.update({ ...claim, metadata: { ...claim.metadata, finalizers: [...(claim.metadata.finalizers ?? []), FINALIZER] } } as ResourceClaim, { signal });
        doing = `add ${allocation ? "allocation and " : ""}reservation to claim ${keyOf(claim)}`;
        const held = (isShared && tries > 1 ? claim.status?.allocation : undefined) ?? allocation ?? claim.status!.allocation!;
        const reservedFor = [...(claim.status?.reservedFor ?? []), { resource: "pods", name: pod.metadata.name, uid: pod.metadata.uid }];
        return await claims.updateStatus({ ...claim, status: { ...claim.status, allocation: { ...held, allocationTimestamp: held.allocationTimestamp ?? timestamp(clock.nowMs()) }, reservedFor } } as ResourceClaim, { signal });
      } catch (error) {
        if (tries < TRIES && isConflict(error)) continue;
        throw doing === "" ? error : whileDoing(doing, error);
      }
    }
  }
}

function whileDoing(what: string, cause: unknown): Error {
  return new Error(`${what}: ${errorText(cause)}`, { cause });
}

function idleClaim({ metadata: { uid } }: Readonly<Pod>, { unavailable }: DevicePlan): Readonly<ResourceClaim> | undefined {
  return [...unavailable].find(({ status }) => (status?.reservedFor ?? []).every((one) => one.uid === uid));
}
