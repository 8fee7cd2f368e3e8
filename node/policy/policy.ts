/**
 * NetworkPolicies, enforced on this node by nftables.
 *
 *   informers ─▶ plan.ts ─▶ what differs ─▶ one transaction
 *   kubelet ─▶ a new pod's addresses ─▶ the same, before its containers start (admitting.ts)
 *
 * The rules stay in the kernel when this process ends, and are replaced in one step when it starts again. As long as no namespace has a policy there is no
 * table, and pods are not watched. Addresses of pods on other nodes come with their status; until then they are nobody's, and allowed nowhere.
 */
import type { Pod } from "../../core/api/gen/core.v1.ts";
import { labelsOf, namespaceOf } from "../../core/api/meta/object-meta.ts";
import type { Informers } from "../../core/client/informer-factory.ts";
import { NAMESPACES, NETWORK_POLICIES, PODS } from "../../core/client/resources.ts";
import { aborted } from "../../core/lifecycle/aborted.ts";
import { backoffMs } from "../../core/lifecycle/backoff.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Runnable } from "../../core/lifecycle/run-all.ts";
import { formatIp, parseIp } from "../../core/net/cidr.ts";
import type { Log } from "../../core/observe/log.ts";
import type { Metrics } from "../../core/observe/metrics.ts";
import { trouble } from "../../core/observe/trouble.ts";
import type { Nft } from "../os/exec-nft.ts";
import { type PolicyPod, policyPlanner } from "./plan.ts";
import { differenceText, POLICY_TABLE, type PolicyRuleset, REMOVE_TEXT, wholeText } from "./ruleset.ts";

export interface NetworkPoliciesOptions {
  readonly informers: Informers;
  readonly nodeName: string;
  readonly nft: Nft;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** A pod whose sandbox has its addresses, and whose containers have not been started. */
export interface NewPod { readonly uid: string; readonly namespace: string; readonly labels: Readonly<Record<string, string>>; readonly ips: readonly string[] }

export interface NetworkPolicies extends Runnable {
  /** Resolves once the pod's policies are in force. Throws if that takes too long. */
  admit(pod: NewPod, signal: AbortSignal): Promise<void>;
}

const NONE: readonly string[] = [];
const NO_LABELS = {};
/** A rollout changes many pods within milliseconds. */
const GATHER_MS = 20;
const VERIFY_MS = 30_000;
const RETRY = { minMs: 200, maxMs: 30_000 };
const ADMIT_MS_MAX = 10_000;
/** A pod that was admitted is known to the API by then, or is none of its pods. */
const STRAY_MS = 600_000;
const SECONDS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5];

export function networkPolicies({ informers, nodeName, nft, clock, log, metrics }: NetworkPoliciesOptions): NetworkPolicies {
  const policies = informers.of(NETWORK_POLICIES), namespaces = informers.of(NAMESPACES);
  const admitted = new Map<string, NewPod & { readonly atMs: number; readonly stray: PolicyPod }>();
  const seen = new WeakMap<Readonly<Pod>, { readonly ips: readonly string[]; readonly made: PolicyPod | undefined }>(); // what was made of it, with which addresses
  const plan = policyPlanner();
  const syncSeconds = metrics.histogram("coracle_network_policy_sync_duration_seconds", "How long it took to bring the kernel's rules up to date", SECONDS);
  let applied: PolicyRuleset | undefined; // what the kernel has; undefined: unknown, or nothing
  let hasTable = true; // perhaps one from before
  let wanted = 1, done = 0; // generations: what has been asked for, what is in force
  let wake: () => void = () => {};
  const waiting = new Set<{ readonly generation: number; readonly resolve: () => void }>();
  let unwatchPods: (() => void) | undefined;

  function changed(): void {
    wanted++;
    wake();
  }

  /** Pods are watched once there is something to be done with them. */
  async function watchPods(signal: AbortSignal): Promise<void> {
    const pods = informers.of(PODS);
    unwatchPods ??= pods.onChange(({ object, old, deleted }) => {
      if (deleted) admitted.delete(object.metadata.uid);
      if (deleted || old === undefined || matters(object, old)) changed();
    });
    await Promise.all([pods.whenSynced(signal), namespaces.whenSynced(signal)]);
  }

  function world(): PolicyPod[] {
    const known = new Set<string>();
    const result: PolicyPod[] = [];
    for (const pod of informers.of(PODS).list()) {
      known.add(pod.metadata.uid);
      const made = policyPod(pod);
      if (made) result.push(made);
    }
    for (const [uid, pod] of admitted) {
      if (known.has(uid)) continue;
      if (clock.uptimeMs() - pod.atMs > STRAY_MS) admitted.delete(uid);
      else result.push(pod.stray);
    }
    return result;
  }

  /** The same one for the same pod. Undefined: it has no address, or none of its own any more. */
  function policyPod(pod: Readonly<Pod>): PolicyPod | undefined {
    const local = pod.spec.nodeName === nodeName;
    const given = local ? admitted.get(pod.metadata.uid)?.ips : undefined;
    const before = seen.get(pod);
    if (before && before.ips === (given ?? NONE)) return before.made;
    const ips = given ?? addressesOf(pod);
    const isNone = pod.spec.hostNetwork || ips.length === 0 || pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed";
    const made = isNone ? undefined : { namespace: namespaceOf(pod), labels: labelsOf(pod), ips: canonical(ips), ports: portsOf(pod), local };
    seen.set(pod, { ips: given ?? NONE, made });
    return made;
  }

  async function sync(signal: AbortSignal): Promise<void> {
    const all = [...policies.list()];
    if (all.length === 0) {
      if (hasTable) await nft.apply(REMOVE_TEXT, { signal });
      hasTable = false;
      applied = undefined;
      return;
    }
    await watchPods(signal);
    const ruleset = plan({ policies: all, namespaces: new Map([...namespaces.list()].map((one) => [one.metadata.name, one.metadata.labels ?? NO_LABELS])), pods: world() });
    const before = applied;
    applied = undefined; // until we know better
    hasTable = true;
    if (before === undefined) await nft.apply(wholeText(ruleset), { signal });
    else {
      const { text, cleanup } = differenceText(before, ruleset);
      if (text !== "") await nft.apply(text, { signal });
      if (cleanup !== "") await nft.apply(cleanup, { signal });
    }
    applied = ruleset;
  }

  async function isIntact(signal: AbortSignal): Promise<boolean> {
    if (!hasTable) return true;
    const intact = (await nft.chain("inet", POLICY_TABLE, "forward", { signal }).catch(() => undefined))?.includes("check-ingress") === true; // a failure shows in the sync
    if (!intact && !signal.aborted) {
      log.warn("the network policies are gone from the kernel, writing them again", { table: POLICY_TABLE });
      applied = undefined;
    }
    return intact;
  }

  async function untilWoken(signal: AbortSignal, ms: number): Promise<boolean> {
    const woken = Promise.withResolvers<boolean>();
    wake = () => woken.resolve(true);
    const alarm = clock.after(ms, () => woken.resolve(false));
    const stop = (): void => woken.resolve(false);
    signal.addEventListener("abort", stop, { once: true });
    if (done < wanted) wake();
    const result = await woken.promise;
    alarm.cancel();
    signal.removeEventListener("abort", stop);
    return result;
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
      while (!signal.aborted && done >= wanted) if (!(await untilWoken(signal, VERIFY_MS)) && !signal.aborted && !(await isIntact(signal))) break;
      if (waiting.size === 0) await clock.sleep(GATHER_MS, signal);
    }
  }

  return {
    name: "network-policies",
    async admit(pod, signal) {
      admitted.set(pod.uid, { ...pod, atMs: clock.uptimeMs(), stray: { namespace: pod.namespace, labels: pod.labels, ips: canonical(pod.ips), ports: [], local: true } });
      if (policies.synced && done > 0 && !hasTable && [...policies.list()].length === 0) return;
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
      ];
      ready(); // what the kernel has from before still holds
      await keep(signal);
      for (const end of [...unwatch, unwatchPods]) end?.();
    },
  };
}

function matters(now: Readonly<Pod>, before: Readonly<Pod>): boolean {
  return now.status?.phase !== before.status?.phase || now.spec.nodeName !== before.spec.nodeName || !Bun.deepEquals(now.metadata.labels, before.metadata.labels) || !Bun.deepEquals(now.status?.podIPs, before.status?.podIPs);
}

function addressesOf({ status }: Readonly<Pod>): string[] {
  return status?.podIPs?.length ? status.podIPs.map(({ ip }) => ip) : status?.podIP ? [status.podIP] : [];
}

function canonical(ips: readonly string[]): string[] {
  return ips.flatMap((ip) => { const parsed = parseIp(ip); return parsed ? [formatIp(parsed)] : []; });
}

function portsOf({ spec }: Readonly<Pod>): PolicyPod["ports"] {
  const all = [...spec.containers, ...(spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === "Always")];
  return all.flatMap(({ ports = [] }) => ports.flatMap(({ name, protocol = "TCP", containerPort }) => (name ? [{ name, protocol, port: containerPort }] : [])));
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
