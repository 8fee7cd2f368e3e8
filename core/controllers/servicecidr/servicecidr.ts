/**
 * Ranges of service addresses: each gets a condition that says it is ready, and does not go while an address that only it holds is in use.
 *
 * API:    https://kubernetes.io/docs/reference/networking/virtual-ips/#ip-address-objects
 * Source: kubernetes v1.36 pkg/controller/servicecidrs
 */
import type { IPAddress, ServiceCIDR } from "../../api/gen/networking.v1.ts";
import { findCondition } from "../../api/meta/conditions.ts";
import { ifFound } from "../../api/meta/if-found.ts";
import { hasFinalizer, isDeleting, keyOf, labelsOf } from "../../api/meta/object-meta.ts";
import { IP_ADDRESSES, SERVICE_CIDRS } from "../../client/resources.ts";
import { timestamp } from "../../lifecycle/clock.ts";
import { type Cidr, cidrContains, parseCidr, parseIp } from "../../net/cidr.ts";
import { type Controller, itself, mapped, type Next } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { holdsAddress } from "./repair-plan.ts";

const NAME = "service-cidr-controller";
const FINALIZER = "networking.k8s.io/service-cidr-finalizer";
const MANAGED_BY = "ipaddress.kubernetes.io/managed-by";
const ALLOCATOR = "ipallocator.k8s.io";
/** Until every server has heard that the range is going. Source: deletionGracePeriod */
const GRACE_MS = 10_000;
const IN_USE = { status: "False", reason: "Terminating", message: "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR" };
const READY = { status: "True", reason: "", message: "Kubernetes Service CIDR is ready" };

/** Whether addresses would be left that no other range holds. */
export function isNeeded(range: Readonly<ServiceCIDR>, { ranges, addresses }: { readonly ranges: Iterable<Readonly<ServiceCIDR>>; readonly addresses: Iterable<Readonly<IPAddress>> }): boolean {
  const others = [...ranges].filter(({ metadata }) => metadata.name !== range.metadata.name).flatMap(cidrsOf);
  const own = cidrsOf(range);
  if (own.every((cidr) => others.some((other) => other.prefix <= cidr.prefix && cidrContains(other, { family: cidr.family, value: cidr.base })))) return false;
  for (const address of addresses) {
    const ip = labelsOf(address)[MANAGED_BY] === ALLOCATOR ? parseIp(address.metadata.name) : undefined;
    if (ip && own.some((cidr) => holdsAddress(cidr, ip)) && !others.some((cidr) => holdsAddress(cidr, ip))) return true;
  }
  return false;
}

/** A deletion that is further ahead than it is waited for was told by another clock: nobody waits until then. */
export function graceLeftMs(deletedMs: number, nowMs: number): number { return deletedMs - nowMs > GRACE_MS ? 0 : deletedMs + GRACE_MS - nowMs; }

function cidrsOf({ spec }: Readonly<ServiceCIDR>): Cidr[] {
  return (spec.cidrs ?? []).flatMap((text) => parseCidr(text) ?? []);
}

export function serviceCidrController({ client, informers, events, clock }: Pick<ControllerDeps, "client" | "informers" | "events" | "clock">): Controller {
  const ranges = informers.of(SERVICE_CIDRS);
  const addresses = informers.of(IP_ADDRESSES);
  const rangeClient = client.resource(SERVICE_CIDRS);
  const recorder = events.from({ component: NAME });
  const going = () => [...ranges.list()].filter(isDeleting).map(keyOf);
  return {
    name: NAME,
    workers: 5,
    watches: [
      itself(ranges),
      mapped(ranges, going), // another range may hold what is left
      mapped(addresses, ({ deleted }) => (deleted ? going() : [])),
    ],
    async reconcile(key, { signal }): Promise<Next> {
      const range = ranges.get(key);
      if (!range) return;
      if (!isDeleting(range)) {
        if (!hasFinalizer(range, FINALIZER)) await rangeClient.patch(range, "application/strategic-merge-patch+json", { metadata: { finalizers: [FINALIZER] } }, { signal });
        return await tell(range, READY, signal).catch((error: unknown) => {
          if (!signal.aborted) recorder.event(range, "Warning", "KubernetesServiceCIDRError", "The ServiceCIDR Status can not be set to Ready=True");
          throw error;
        });
      }
      if (!hasFinalizer(range, FINALIZER)) return;
      if (isNeeded(range, { ranges: ranges.list(), addresses: addresses.list() })) return await tell(range, IN_USE, signal);
      const leftMs = graceLeftMs(Date.parse(range.metadata.deletionTimestamp!), clock.nowMs());
      if (leftMs > 0) return { againInMs: leftMs };
      await ifFound(rangeClient.patch(range, "application/strategic-merge-patch+json", { metadata: { "$deleteFromPrimitiveList/finalizers": [FINALIZER] } }, { signal }));
    },
  };

  async function tell({ metadata: { name }, status }: Readonly<ServiceCIDR>, said: typeof READY, signal: AbortSignal): Promise<void> {
    const known = findCondition(status?.conditions, "Ready");
    if (known && known.status === said.status && (known.reason ?? "") === said.reason && known.message === said.message) return;
    const condition = { type: "Ready", ...said, lastTransitionTime: timestamp(clock.nowMs()) };
    const body = { apiVersion: "networking.k8s.io/v1", kind: "ServiceCIDR", metadata: { name }, status: { conditions: [condition] } };
    await rangeClient.apply(body as never, { signal, fieldManager: NAME, force: true, subresource: "status" });
  }
}
