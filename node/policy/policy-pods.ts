/**
 * The pods that policies are about, as plan.ts wants them: all that the API has, and those of this node whose addresses the kubelet has told and the API has not yet.
 */
import type { Pod } from "../../core/api/gen/core.v1.ts";
import { labelsOf, namespaceOf } from "../../core/api/meta/object-meta.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import { formatIp, parseIp } from "../../core/net/cidr.ts";
import type { PolicyPod } from "./plan.ts";

/** A pod whose sandbox has its addresses, and whose containers have not been started. */
export interface NewPod { readonly uid: string; readonly namespace: string; readonly labels: Readonly<Record<string, string>>; readonly ips: readonly string[] }

const NONE: readonly string[] = [];
/** A pod that was admitted is known to the API by then, or is none of its pods. */
const STRAY_MS = 600_000;

export class PolicyPods {
  readonly #nodeName: string;
  readonly #clock: Clock;
  readonly #admitted = new Map<string, NewPod & { readonly atMs: number; readonly stray: PolicyPod }>(); // by uid
  readonly #seen = new WeakMap<Readonly<Pod>, { readonly ips: readonly string[]; readonly made: PolicyPod | undefined }>(); // what was made of it, with which addresses

  constructor({ nodeName, clock }: { readonly nodeName: string; readonly clock: Clock }) {
    this.#nodeName = nodeName;
    this.#clock = clock;
  }

  admit(pod: NewPod): void {
    this.#admitted.set(pod.uid, { ...pod, atMs: this.#clock.uptimeMs(), stray: { namespace: pod.namespace, labels: pod.labels, ips: canonical(pod.ips), ports: [], local: true } });
  }

  forget(uid: string): void { this.#admitted.delete(uid); }

  /** `pods`: all that the API has. */
  all(pods: Iterable<Readonly<Pod>>): PolicyPod[] {
    const known = new Set<string>();
    const result: PolicyPod[] = [];
    for (const pod of pods) {
      known.add(pod.metadata.uid);
      const made = this.#policyPod(pod);
      if (made) result.push(made);
    }
    for (const [uid, pod] of this.#admitted) {
      if (known.has(uid)) continue;
      if (this.#clock.uptimeMs() - pod.atMs > STRAY_MS) this.#admitted.delete(uid);
      else result.push(pod.stray);
    }
    return result;
  }

  /** The same one for the same pod. Undefined: it has no address, or none of its own any more. */
  #policyPod(pod: Readonly<Pod>): PolicyPod | undefined {
    const local = pod.spec.nodeName === this.#nodeName;
    const given = local ? this.#admitted.get(pod.metadata.uid)?.ips : undefined;
    const before = this.#seen.get(pod);
    if (before && before.ips === (given ?? NONE)) return before.made;
    const ips = given ?? addressesOf(pod);
    const isNone = pod.spec.hostNetwork || ips.length === 0 || pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed";
    const made = isNone ? undefined : { namespace: namespaceOf(pod), labels: labelsOf(pod), ips: canonical(ips), ports: portsOf(pod), local };
    this.#seen.set(pod, { ips: given ?? NONE, made });
    return made;
  }
}

/** Whether a change of a pod may change what policies say. */
export function matters(now: Readonly<Pod>, before: Readonly<Pod>): boolean {
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
