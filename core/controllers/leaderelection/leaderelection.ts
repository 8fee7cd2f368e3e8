/**
 * Coordinated leader election, where it is switched on: components say by LeaseCandidates that they would hold a Lease, and this names the holder among those that are there: the one that behaves
 * as the oldest version. It belongs to the API server, not to its controllers: theirs is a Lease that it may give.
 *
 *   a Lease or a candidate changes ─▶ nextStep (plan.ts) ─▶ candidates are pinged, 5 s for an answer ─▶ the Lease is made, taken from who has lost it, or its holder told whom to leave it to
 *   every 30 minutes: candidates that have told nothing of themselves for as long are deleted
 *
 * API:    https://kubernetes.io/docs/concepts/cluster-administration/coordinated-leader-election/
 * Source: kubernetes v1.36 pkg/controlplane/controller/leaderelection
 */
import type { Lease } from "../../api/gen/coordination.v1.ts";
import type { LeaseCandidate } from "../../api/gen/coordination.v1beta1.ts";
import { keyOf, objectKey, type ObjectKey, splitKey } from "../../api/meta/object-meta.ts";
import { isNotFound } from "../../api/meta/status-error.ts";
import { LEASE_CANDIDATES, LEASES } from "../../client/resources.ts";
import type { Runnable } from "../../lifecycle/run-all.ts";
import type { Log } from "../../observe/log.ts";
import { type Controller, mapped, nameOfKey, type Next } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { type ControllerMetrics, runController } from "../run-controller.ts";
import { Ages } from "./ages.ts";
import { type Candidate, CANDIDATE_VALID_MS, elected, type Election, firstSpec, nextStep, pinged } from "./plan.ts";

type Deps = Pick<ControllerDeps, "client" | "informers" | "clock">;

/** Its queue's, and that of the Lease by which servers that share a datastore agree on who does it. */
export const LEADER_ELECTION = "leader-election-controller";
/** Until the Lease has expired, or candidates have had their time. */
const AGAIN: Next = { againInMs: 5_000 };
const GC_MS = 30 * 60_000;

/** `metrics`: of all controllers. */
export function leaderElection({ log, metrics, ...deps }: Deps & { readonly log: Log; readonly metrics?: ControllerMetrics | undefined }): Runnable[] {
  const renewals = new Ages(deps.clock);
  return [runController(electionController({ ...deps, renewals }), { clock: deps.clock, log, metrics }), candidateCollector({ ...deps, renewals, log })];
}

/** `renewals`: of candidates; kept up to date here. */
function electionController({ client, informers, clock, renewals }: Deps & { readonly renewals: Ages }): Controller {
  const leases = informers.of(LEASES), candidates = informers.of(LEASE_CANDIDATES);
  const leaseClient = client.resource(LEASES), candidateClient = client.resource(LEASE_CANDIDATES);
  const pings = new Ages(clock), held = new Ages(clock);

  function noted(lease: Readonly<Lease>, isGone: boolean): ObjectKey {
    const key = keyOf(lease);
    if (isGone) held.forget(key);
    else held.note(key, lease.spec?.renewTime);
    return key;
  }

  /** The Lease that a candidate is for; none while it owes an answer. */
  function concerned(candidate: Candidate, isGone: boolean): ObjectKey[] {
    const key = keyOf(candidate), { pingTime, renewTime, leaseName } = candidate.spec;
    if (isGone) for (const ages of [pings, renewals]) ages.forget(key);
    else {
      pings.note(key, pingTime);
      renewals.note(key, renewTime);
      if (renewals.ofMs(key) > pings.ofMs(key)) return [];
    }
    return [objectKey(candidate.metadata.namespace ?? "", leaseName)];
  }

  async function elect(key: ObjectKey, election: Election, signal: AbortSignal): Promise<void> {
    const { namespace, name } = splitKey(key);
    if (!leases.get(key)) {
      const made = await leaseClient.create({ apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { namespace, name }, spec: firstSpec(election, clock.nowMs()) }, { signal });
      return await leases.caughtUp([made], signal);
    }
    const current = await leaseClient.get(nameOfKey(key), { signal });
    held.note(key, current.spec?.renewTime);
    const next = elected(current, election, { renewedMs: held.ofMs(key), nowMs: clock.nowMs() });
    if (next) await leases.caughtUp([await leaseClient.update(next, { signal })], signal);
  }

  return {
    name: LEADER_ELECTION,
    workers: 1,
    watches: [mapped(leases, ({ object, deleted }) => [noted(object, deleted)]), mapped(candidates, ({ object, deleted }) => concerned(object, deleted))],
    async reconcile(key, { signal, log }): Promise<Next> {
      const { namespace, name } = splitKey(key), lease = leases.get(key);
      const voters = [...candidates.inNamespace(namespace)].filter(({ spec }) => spec.leaseName === name)
        .map((candidate) => ({ candidate, pingedMs: pings.ofMs(keyOf(candidate)), renewedMs: renewals.ofMs(keyOf(candidate)) }));
      const step = nextStep(voters, { lease, renewedMs: held.ofMs(key) });
      switch (step.does) {
        case "nothing": return;
        case "wait": return AGAIN;
        case "fail":
          log.warn("no leader can be elected", { lease: key, why: step.why });
          return step.again ? AGAIN : undefined;
        case "ping":
          await candidates.caughtUp(await Promise.all(step.whom.map(async (one) => await candidateClient.update(pinged(one, clock.nowMs()), { signal }))), signal);
          return AGAIN;
        case "excuse": // whatever version it is of: it is written again and again
          await candidates.caughtUp(await Promise.all(step.whom.map(async (one) => await candidateClient.patch(one, "application/merge-patch+json", { spec: { pingTime: null } }, { signal }))), signal);
          return AGAIN;
        case "elect":
          await elect(key, step.election, signal);
          return AGAIN;
      }
    },
  };
}

function candidateCollector({ client, informers, clock, renewals, log }: Deps & { readonly renewals: Ages; readonly log: Log }): Runnable {
  const candidates = informers.of(LEASE_CANDIDATES), candidateClient = client.resource(LEASE_CANDIDATES);

  /** Deletes it, if it says so at the source, too. */
  async function collect(candidate: Candidate, signal: AbortSignal): Promise<void> {
    const { metadata: { uid, resourceVersion }, spec }: Readonly<LeaseCandidate> = await candidateClient.get(candidate, { signal });
    if (spec.renewTime !== candidate.spec.renewTime) return;
    await candidateClient.delete(candidate, { preconditions: { uid, resourceVersion } }, { signal });
  }

  return {
    name: "leasecandidate garbage collector",
    async run(signal, ready) {
      ready();
      await candidates.whenSynced(signal);
      for await (const _ of clock.every(GC_MS, signal)) {
        for (const candidate of [...candidates.list()].filter((one) => renewals.ofMs(keyOf(one)) > CANDIDATE_VALID_MS))
          await collect(candidate, signal).catch((error: unknown) => { if (!signal.aborted && !isNotFound(error)) log.warn("a candidate for a lease that has expired could not be deleted, will try again", { candidate: keyOf(candidate), error }); });
      }
    },
  };
}
