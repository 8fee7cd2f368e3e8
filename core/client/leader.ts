/**
 * Leader election: of several processes that contend for one Lease, one at a time does the work.
 *
 *   whileLeader({ … lease: { namespace: "kube-system", name: "kube-controller-manager" }, identity }, { name, run })
 *
 * Every retry period (2 s) a contender looks at the Lease and takes it when its holder has not renewed it for the lease's duration (15 s),
 * counted on the contender's own clock from when it saw the last renewal: clocks of different machines are never compared.
 * A leader that cannot renew for 10 s stops its work, then contends again. A leader that is stopped gives the Lease back.
 *
 * Source: kubernetes v1.36 client-go/tools/leaderelection/leaderelection.go (rules and figures)
 */
import type { Lease } from "../api/gen/coordination.v1.ts";
import type { NewObject } from "../api/meta/object-meta.ts";
import { isConflict, isNotFound } from "../api/meta/status-error.ts";
import { aborted } from "../lifecycle/aborted.ts";
import { type Clock, microTimestamp } from "../lifecycle/clock.ts";
import type { Random } from "../lifecycle/random.ts";
import type { Runnable } from "../lifecycle/run-all.ts";
import type { Log } from "../observe/log.ts";
import type { Client } from "./client.ts";
import type { EventRecorder } from "./events.ts";
import { LEASES } from "./resources.ts";

export interface LeaseTimes {
  readonly leaseDurationMs?: number | undefined;
  readonly renewDeadlineMs?: number | undefined;
  readonly retryPeriodMs?: number | undefined;
}

interface Options extends LeaseTimes {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly lease: { readonly namespace: string; readonly name: string };
  /** Unique among the contenders: upstream's is "<host name>_<uuid>". */
  readonly identity: string;
  readonly events?: EventRecorder | undefined;
  /** Is told when the Lease has to be looked at anew before it is renewed: somebody else wrote it, or a write's end is not known. */
  readonly lookedAnew?: (() => void) | undefined;
}

/** Of giving the Lease back: a renewal that was under way may be written between our look and our write. */
const RELEASE_TRIES_MAX = 2;
/** Each wait is longer by up to this much of itself, so that contenders do not march in step. */
const JITTER = 1.2;

export function whileLeader(options: Options, work: Runnable): Runnable {
  const { client, clock, random, lease: { namespace, name }, identity, leaseDurationMs = 15_000, renewDeadlineMs = 10_000, retryPeriodMs = 2_000 } = options;
  const log = options.log.with({ lease: `${namespace}/${name}`, identity });
  const leases = client.resource(LEASES);
  let seen: { readonly resourceVersion: string; readonly atMs: number } | undefined; // the newest Lease, and when we first saw it
  let held: Readonly<Lease> | undefined; // the Lease as we wrote it last, while it is ours
  let last: Readonly<Lease> | undefined; // the same, whoever has it now: what events are about

  function own(lease: Readonly<Lease>): true {
    held = last = lease;
    return true;
  }

  /** Tries to take or renew the Lease. True: it is ours. */
  async function acquireOrRenew(signal: AbortSignal): Promise<boolean> {
    const now = microTimestamp(clock.nowMs());
    const claim = { holderIdentity: identity, leaseDurationSeconds: Math.round(leaseDurationMs / 1000), renewTime: now };
    if (held !== undefined) {
      try {
        return own(await leases.update({ ...held, spec: { ...held.spec, ...claim } }, { signal }));
      } catch {
        held = undefined; // someone wrote it, or we cannot reach the server: look at it afresh
      }
    }
    let current: Readonly<Lease>;
    try {
      current = await leases.get({ metadata: { namespace, name } }, { signal });
    } catch (error) {
      if (!isNotFound(error)) throw error;
      const draft: NewObject<Lease> = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { namespace, name }, spec: { ...claim, acquireTime: now, leaseTransitions: 0 } };
      return own(await leases.create(draft, { signal }));
    }
    if (seen?.resourceVersion !== current.metadata.resourceVersion) seen = { resourceVersion: current.metadata.resourceVersion, atMs: clock.uptimeMs() };
    const holder = current.spec?.holderIdentity ?? "";
    const ours = holder === identity;
    const theirsForMs = (current.spec?.leaseDurationSeconds ?? 0) * 1000;
    if (!ours && holder !== "" && clock.uptimeMs() < seen.atMs + theirsForMs) return false;
    const transitions = current.spec?.leaseTransitions ?? 0;
    if (ours) options.lookedAnew?.();
    const taken = ours ? {} : { acquireTime: now, leaseTransitions: transitions + 1 };
    return own(await leases.update({ ...current, spec: { ...current.spec, ...claim, ...taken } }, { signal }));
  }

  async function attempt(signal: AbortSignal, limitMs: number): Promise<boolean> {
    const late = new AbortController();
    const alarm = clock.after(limitMs, () => late.abort(new Error(`no answer within ${limitMs} ms`)));
    try {
      // A leader must stop in time, also when a call does not end although it was told to.
      return await Promise.race([acquireOrRenew(AbortSignal.any([signal, late.signal])), aborted(late.signal).then(() => Promise.reject(late.signal.reason as Error))]);
    } catch (error) {
      if (!signal.aborted) log.warn("lease could not be taken or renewed", { error });
      return false;
    } finally {
      alarm.cancel();
    }
  }

  /** Does the work while the Lease is renewed in time. */
  async function lead(signal: AbortSignal, ready: () => void): Promise<void> {
    const stop = new AbortController();
    let failure: unknown;
    const life = work.run(AbortSignal.any([signal, stop.signal]), ready).then(
      () => { if (!signal.aborted && !stop.signal.aborted) failure = new Error(`${work.name} ended on its own`); },
      (error: unknown) => { failure = error; },
    ).finally(() => stop.abort());
    let renewedMs = clock.uptimeMs();
    while (!signal.aborted && !stop.signal.aborted) {
      await clock.sleep(retryPeriodMs, AbortSignal.any([signal, stop.signal]));
      if (signal.aborted || stop.signal.aborted) break;
      if (await attempt(signal, Math.max(1, renewedMs + renewDeadlineMs - clock.uptimeMs()))) renewedMs = clock.uptimeMs();
      else if (clock.uptimeMs() - renewedMs >= renewDeadlineMs) stop.abort();
    }
    await life;
    if (failure !== undefined) throw failure;
  }

  /** Lets the next contender in at once. */
  async function release(): Promise<void> {
    held = undefined;
    const late = new AbortController();
    const alarm = clock.after(retryPeriodMs, () => late.abort());
    const released = giveBack(late.signal).catch((error: unknown) => log.debug("lease could not be released", { error }));
    await Promise.race([released, aborted(late.signal)]);
    alarm.cancel();
  }

  /** Looks at the Lease first: whether a renewal that was under way at the end has been written is not known. */
  async function giveBack(signal: AbortSignal): Promise<void> {
    for (let tries = 1; ; tries++) {
      const current = await leases.get({ metadata: { namespace, name } }, { signal });
      if (current.spec?.holderIdentity !== identity) return;
      const now = microTimestamp(clock.nowMs());
      try {
        await leases.update({ ...current, spec: { ...current.spec, holderIdentity: "", leaseDurationSeconds: 1, renewTime: now, acquireTime: now } }, { signal });
        return;
      } catch (error) {
        if (!isConflict(error) || tries === RELEASE_TRIES_MAX) throw error;
      }
    }
  }

  return {
    name: `${work.name} (while leader)`,
    async run(signal, ready) {
      ready(); // to contend is to be ready: the work may be another's for years
      while (!signal.aborted) {
        if (await attempt(signal, renewDeadlineMs)) {
          log.info("became leader");
          if (last !== undefined) options.events?.event(last, "Normal", "LeaderElection", `${identity} became leader`);
          try {
            await lead(signal, () => {});
          } finally {
            log.info("stopped leading");
            if (last !== undefined) options.events?.event(last, "Normal", "LeaderElection", `${identity} stopped leading`);
            await release();
          }
        }
        await clock.sleep(retryPeriodMs * (1 + JITTER * random.next()), signal);
      }
    },
  };
}
