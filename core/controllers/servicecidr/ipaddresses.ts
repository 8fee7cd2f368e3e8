/**
 * Sees to it that each address of a Service has its IPAddress, and that there is none of the allocator's without a Service.
 *
 * The API server makes and deletes them with the Service (core/registry/core/service/allocator/address-objects.ts). What is missing or left over is from a server that ended in between, of an
 * earlier version, or somebody's doing.
 *
 * Source: kubernetes v1.36 pkg/registry/core/service/ipallocator/controller/repairip.go
 */
import type { Service } from "../../api/gen/core.v1.ts";
import type { IPAddress } from "../../api/gen/networking.v1.ts";
import { ifFound } from "../../api/meta/if-found.ts";
import { objectKey, type ObjectKey, splitKey } from "../../api/meta/object-meta.ts";
import { isAlreadyExists } from "../../api/meta/status-error.ts";
import type { Index } from "../../client/informer.ts";
import { IP_ADDRESSES, SERVICE_CIDRS, SERVICES } from "../../client/resources.ts";
import { type Controller, itself, mapped, nameOfKey, type Next } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { addressesOf, addressFor, type Known, planAddress, planService, type ServiceStep, type Told } from "./repair-plan.ts";

const SERVICES_BY_ADDRESS: Index<Service> = { name: "cluster IP", valuesOf: addressesOf };

/** Keys with a namespace are those of Services, others those of addresses. `nodeName`: the machine it runs on. */
export function serviceAddressController({ client, informers, events, clock, nodeName }: Pick<ControllerDeps, "client" | "informers" | "events" | "clock"> & { readonly nodeName: string }): Controller {
  const services = informers.of(SERVICES);
  const addresses = informers.of(IP_ADDRESSES);
  const ranges = informers.of(SERVICE_CIDRS);
  const addressClient = client.resource(IP_ADDRESSES);
  const serviceClient = client.resource(SERVICES);
  const reporter = events.reporter({ component: "ipallocator-repair-controller", host: nodeName });
  /** Addresses nobody has, and since when. */
  const strayFrom = new Map<ObjectKey, number>();
  const known = (): Known => ({ service: (key) => services.get(key), address: (name) => addresses.get(name as ObjectKey), ranges: [...ranges.list()] });
  return {
    name: "service-ip-addresses",
    workers: 2,
    watches: [
      itself(services),
      mapped(services, ({ object, old }) => [object, ...(old ? [old] : [])].flatMap((service) => addressesOf(service).map((address) => objectKey("", address)))),
      itself(addresses),
      mapped(addresses, ({ object }) => [...services.by(SERVICES_BY_ADDRESS, object.metadata.name)].map(({ metadata }) => objectKey(metadata.namespace ?? "", metadata.name))),
    ],
    reads: [ranges],
    async reconcile(key, { signal }) {
      if (splitKey(key).namespace === "") return await repairAddress(key, signal);
      const service = services.get(key);
      if (service) for (const step of planService(service, known())) await mend(service, step, signal);
    },
  };

  async function repairAddress(key: ObjectKey, signal: AbortSignal): Promise<Next> {
    const address = addresses.get(key);
    const nowMs = clock.nowMs();
    const plan = address ? planAddress(address, known(), { nowMs, strayMs: clock.uptimeMs() - (strayFrom.get(key) ?? clock.uptimeMs()) }) : { type: "keep" as const };
    if (plan.type === "keep") return void strayFrom.delete(key);
    if (!strayFrom.has(key)) strayFrom.set(key, clock.uptimeMs());
    if (plan.type === "again") return { againInMs: plan.inMs };
    tell(address!, "IPAddressAllocation", plan.told);
    await remove(address!, signal);
    strayFrom.delete(key);
  }

  async function mend(service: Readonly<Service>, step: ServiceStep, signal: AbortSignal): Promise<void> {
    if (step.type !== "tell" && !(await isNeeded(service, step, signal))) return;
    if (step.told) tell(service, "ClusterIPAllocation", step.told);
    if (step.type === "tell") return;
    const before = step.type === "replace" ? addresses.get(objectKey("", step.address)) : undefined;
    if (before) await remove(before, signal);
    const made = await addressClient.create(addressFor(step.address, service), { signal }).catch((error: unknown) => {
      if (isAlreadyExists(error)) return undefined; // looked at again when the informer has it
      throw error;
    });
    if (made) await addresses.caughtUp([made], signal);
  }

  function tell(about: Readonly<Service> | Readonly<IPAddress>, action: string, { reason, message: note }: Told): void { reporter.report(about, { type: "Warning", reason, action, note }); }

  /** Informers do not hear of a Service and its IPAddress at the same time: what comes and goes with one may not have come or gone for the other. */
  async function isNeeded({ metadata }: Readonly<Service>, { type, address }: Exclude<ServiceStep, { readonly type: "tell" }>, signal: AbortSignal): Promise<boolean> {
    if (type === "create" && (await ifFound(addressClient.get(nameOfKey(objectKey("", address)), { signal })))) return false;
    const now = await ifFound(serviceClient.get(nameOfKey(objectKey(metadata.namespace ?? "", metadata.name)), { signal }));
    return now !== undefined && addressesOf(now).includes(address);
  }

  async function remove(address: Readonly<IPAddress>, signal: AbortSignal): Promise<void> {
    await ifFound(addressClient.delete(address, { preconditions: { uid: address.metadata.uid } }, { signal }));
    await addresses.sawDeleted([address], signal);
  }
}
