/**
 * Whether an APIService can be available, as far as its Service and endpoints tell. What passes here is asked.
 *
 * Source: kubernetes v1.36 kube-aggregator/pkg/controllers/status/{remote/remote,local/local}_available_controller.go
 */
import type { Service } from "../../api/gen/core.v1.ts";
import type { EndpointSlice } from "../../api/gen/discovery.v1.ts";
import { isConditionTrue } from "../../api/meta/conditions.ts";
import { goQuote } from "../../api/meta/go-quote.ts";
import type { APIService, APIServiceCondition } from "../../registry/apiregistration/api-service.ts";

export interface Verdict { readonly status: "True" | "False"; readonly reason: string; readonly message: string }

export const LOCAL: Verdict = { status: "True", reason: "Local", message: "Local APIServices are always available" };
export const PASSED: Verdict = { status: "True", reason: "Passed", message: "all checks passed" };

export function failedDiscovery(message: string): Verdict { return { status: "False", reason: "FailedDiscoveryCheck", message }; }

/** `service` and its `slices` as they are; undefined: ask the server itself. */
export function planAvailability({ spec }: Readonly<APIService>, service: Readonly<Service> | undefined, slices: readonly Readonly<EndpointSlice>[]): Verdict | undefined {
  if (!spec.service) return LOCAL;
  const { name = "", namespace = "", port = 443 } = spec.service;
  const which = `service/${name} in ${goQuote(namespace)}`;
  const no = (reason: string, message: string): Verdict => ({ status: "False", reason, message });
  if (!service) return no("ServiceNotFound", `${which} is not present`);
  if ((service.spec?.type ?? "ClusterIP") !== "ClusterIP") return undefined;
  const servicePort = service.spec?.ports?.find((one) => one.port === port);
  if (!servicePort) return no("ServicePortError", `${which} is not listening on port ${port}`);
  if (slices.length === 0) return no("EndpointsNotFound", `cannot find endpointslices for ${which}`);
  const portName = servicePort.name ?? "";
  if (!slices.some((slice) => isReady(slice, portName))) return no("MissingEndpoints", `endpointslices for ${which} have no addresses with port name ${goQuote(portName)}`);
  return undefined;
}

function isReady({ endpoints, ports }: Readonly<EndpointSlice>, portName: string): boolean {
  return (endpoints ?? []).some(({ conditions }) => conditions?.ready !== false) && (ports ?? []).some(({ name, port }) => (name ?? "") === portName && port !== undefined);
}

/** The conditions with the verdict among them; undefined: they say so already. */
export function withAvailable(conditions: readonly APIServiceCondition[] = [], { status, reason, message }: Verdict, now: string): APIServiceCondition[] | undefined {
  const known = conditions.find(({ type }) => type === "Available");
  if (known && known.status === status && known.reason === reason && known.message === message) return undefined;
  const lastTransitionTime = known?.status === status && known.lastTransitionTime ? known.lastTransitionTime : now;
  const made: APIServiceCondition = { type: "Available", status, lastTransitionTime, reason, message };
  return known ? conditions.map((one) => (one === known ? made : { ...one })) : [...conditions.map((one) => ({ ...one })), made];
}

/** Undefined: nobody has looked yet. */
export function availabilityOf({ status }: Readonly<APIService>): string | undefined { return status?.conditions?.find(({ type }) => type === "Available")?.status; }

export function isAvailable({ status }: Readonly<APIService>): boolean { return isConditionTrue(status?.conditions, "Available"); }
