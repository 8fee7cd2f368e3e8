/**
 * NetworkPolicies, enforced on this node by nftables.
 *
 *   informers ─▶ policy-pods.ts ─▶ plan.ts ─▶ what differs ─▶ one transaction (policy-table.ts)
 *   kubelet ─▶ a new pod's addresses ─▶ the same, before its containers start (admitting.ts)
 *
 * The rules stay in the kernel when this process ends, and are replaced in one step when it starts again. As long as no namespace has a policy there is no
 * table, and pods are not watched. Addresses of pods on other nodes come with their status; until then they are nobody's, and allowed nowhere.
 */
import type { Pod } from "../../core/api/gen/core.v1.ts";
import type { Informer } from "../../core/client/informer.ts";
import type { Informers } from "../../core/client/informer-factory.ts";
import { NAMESPACES, NETWORK_POLICIES, PODS } from "../../core/client/resources.ts";
import { aborted } from "../../core/lifecycle/aborted.ts";
import { backoffMs } from "../../core/lifecycle/backoff.ts";
import { type Breathe, breathers, inPieces } from "../../core/lifecycle/breather.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Runnable } from "../../core/lifecycle/run-all.ts";
import { Waker } from "../../core/lifecycle/waker.ts";
import type { Log } from "../../core/observe/log.ts";
import type { Metrics } from "../../core/observe/metrics.ts";
import { trouble } from "../../core/observe/trouble.ts";
import type { Nft } from "../os/exec-nft.ts";
import type { OnTables } from "../os/table-watch.ts";
import { policyPlanner } from "./plan.ts";
import { matters, type NewPod, PolicyPods } from "./policy-pods.ts";
import { PolicyTable } from "./policy-table.ts";
import { REMOVE_TEXT } from "./ruleset.ts";

export interface NetworkPoliciesOptions {
  readonly informers: Informers;
  readonly nodeName: string;
  readonly nft: Nft;
  /** Somebody may have emptied the packet filter. Absent: that is seen at the end of a period alone. */
  readonly onTables?: OnTables | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
}

export interface NetworkPolicies extends Runnable {
  /** Resolves once the pod's policies are in force. Throws if that takes too long. */
  admit(pod: NewPod, signal: AbortSignal): Promise<void>;
}

const NO_LABELS = {};
/** A rollout changes many pods within milliseconds. */
const GATHER_MS = 20;
const VERIFY_MS = 30_000;
const RETRY = { minMs: 200, maxMs: 30_000 };
const ADMIT_MS_MAX = 10_000;
const SECONDS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5];

export function networkPolicies({ informers, nodeName, nft, onTables, clock, log, metrics }: NetworkPoliciesOptions): NetworkPolicies {
  const policies = informers.of(NETWORK_POLICIES), namespaces = informers.of(NAMESPACES);
  const pods = new PolicyPods({ nodeName, clock });
  const table = new PolicyTable({ nft, log });
  const plan = policyPlanner(), breather = breathers(clock);
  const waker = new Waker(clock);
  const syncSeconds = metrics.histogram("coracle_network_policy_sync_duration_seconds", "How long it took to bring the kernel's rules up to date", SECONDS);
  let wanted = 1, done = 0; // generations: what has been asked for, what is in force
  const waiting = new Set<{ readonly generation: number; readonly resolve: () => void }>();
  let unwatchPods: (() => void) | undefined;
  let isSuspect = false; // rules may be gone

  function changed(): void {
    wanted++;
    waker.wake();
  }

  /** Pods are watched once there is something to be done with them. */
  async function watchPods(signal: AbortSignal): Promise<Informer<Pod>> {
    const known = informers.of(PODS);
    unwatchPods ??= known.onChange(({ object, old, deleted }) => {
      if (deleted) pods.forget(object.metadata.uid);
      if (deleted || old === undefined || matters(object, old)) changed();
    });
    await Promise.all([known.whenSynced(signal), namespaces.whenSynced(signal)]);
    return known;
  }

  async function sync(signal: AbortSignal): Promise<void> {
    const all = [...policies.list()];
    if (all.length === 0) return await table.remove(signal);
    const known = await watchPods(signal);
    const slices = breather();
    const breathe: Breathe = () => {
      signal.throwIfAborted();
      return slices();
    };
    const world = { policies: all, namespaces: new Map([...namespaces.list()].map((one) => [one.metadata.name, one.metadata.labels ?? NO_LABELS])), pods: pods.all(known.list()) };
    await table.apply(await inPieces(plan(world), breathe), { breathe, signal });
  }

  async function keep(signal: AbortSignal): Promise<void> {
    await Promise.all([policies.whenSynced(signal), namespaces.whenSynced(signal)]);
    let failures = 0;
    const ill = trouble("network policies cannot be written", { log, clock });
    while (!signal.aborted) {
      const generation = wanted, beganMs = clock.uptimeMs();
      try {
        await sync(signal);
        failures = 0;
        ill.over();
      } catch (error) {
        if (signal.aborted) return;
        const retryInMs = backoffMs(++failures, RETRY);
        ill.tell(error, { retryInMs });
        await clock.sleep(retryInMs, signal);
        continue;
      }
      done = generation;
      syncSeconds.observe((clock.uptimeMs() - beganMs) / 1000);
      for (const one of waiting) if (one.generation <= done) one.resolve();
      while (!signal.aborted && done >= wanted) {
        const isWoken = await waker.sleep(VERIFY_MS, { isDue: isSuspect, signal }), looks = !isWoken || isSuspect;
        isSuspect = false;
        if (looks && !signal.aborted && !(await table.isIntact(signal))) break;
      }
      if (waiting.size === 0) await clock.sleep(GATHER_MS, signal);
    }
  }

  return {
    name: "network-policies",
    async admit(pod, signal) {
      pods.admit(pod);
      if (policies.synced && done > 0 && !table.exists && [...policies.list()].length === 0) return;
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      changed();
      const entry = { generation: wanted, resolve };
      waiting.add(entry);
      const late = clock.after(ADMIT_MS_MAX, () => reject(new Error("the network policies of the pod are not in force yet")));
      const quit = (): void => reject(new Error("canceled"));
      signal.addEventListener("abort", quit, { once: true });
      if (signal.aborted) quit();
      try {
        await promise;
      } finally {
        waiting.delete(entry);
        late.cancel();
        signal.removeEventListener("abort", quit);
      }
    },
    async run(signal, ready) {
      const unwatch = [
        policies.onChange(({ object, old, deleted }) => { if (deleted || old === undefined || object.metadata.generation !== old.metadata.generation) changed(); }),
        namespaces.onChange(({ object, old, deleted }) => { if (deleted || old === undefined || !Bun.deepEquals(object.metadata.labels, old.metadata.labels)) changed(); }),
        onTables?.(() => {
          isSuspect = true;
          waker.wake();
        }),
      ];
      ready(); // what the kernel has from before still holds
      await keep(signal);
      for (const end of [...unwatch, unwatchPods]) end?.();
    },
  };
}

/** Where somebody else enforces them: what we have left in the kernel from before would stay in force for ever. */
export function noNetworkPolicies({ nft, log }: Pick<NetworkPoliciesOptions, "nft" | "log">): Runnable {
  return {
    name: "network-policies",
    async run(signal, ready) {
      await nft.apply(REMOVE_TEXT, { signal }).catch((error: unknown) => { if (!signal.aborted) log.warn("network policies of before cannot be removed", { error }); });
      ready();
      await aborted(signal);
    },
  };
}
