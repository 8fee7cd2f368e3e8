/** What the status of a Gateway and of its listeners says. Pure. */
import { parseIp } from "../net/cidr.ts";
import { condition, type Problem, type StatusCondition } from "./conditions.ts";
import { isSupported, type ListenerProblem, type Protocol } from "./gateway-fronts.ts";
import { GATEWAY_GROUP, type Gateway, type GatewayAddress, type GatewayStatus, type Listener, type ListenerStatus, type ParametersRef } from "./gateway-types.ts";
import type { CertificateUse } from "./ingress-routes.ts";
import type { Route } from "./route-table.ts";

/** A listener, and what is planned for it. */
export interface Accepted {
  readonly gateway: Gateway;
  readonly listener: Listener;
  readonly routes: Route[];
  readonly certificates: CertificateUse[];
  attached: number;
  /** Of the whole Gateway, of the listener, of what it refers to: with either of the first two nothing is served. */
  readonly refused: Problem | undefined;
  readonly invalid: ListenerProblem | undefined;
  readonly unresolved: Problem | undefined;
}

export interface PlannedGatewayStatus {
  readonly addresses: GatewayStatus["addresses"];
  readonly conditions: readonly StatusCondition[];
  readonly listeners: readonly (Omit<ListenerStatus, "conditions"> & { readonly conditions: readonly StatusCondition[] })[];
}

const ROUTE_KINDS: Readonly<Record<Protocol, readonly string[]>> = { HTTP: ["HTTPRoute", "GRPCRoute"], HTTPS: ["HTTPRoute", "GRPCRoute"], TLS: ["TLSRoute"], TCP: ["TCPRoute"] };
const ADDRESS_TYPES: ReadonlySet<string> = new Set(["IPAddress", "Hostname"]);

/** `alone`: at a Service of its own, because on some port nothing tells it apart from an older Gateway. */
export interface Reached { readonly at: readonly string[]; readonly alone: boolean }

export function gatewayStatus({ metadata: { generation: observedGeneration = 0 }, spec }: Gateway, listeners: readonly Accepted[], { at, alone }: Reached): PlannedGatewayStatus {
  const broken = listeners.some(({ invalid }) => invalid), working = listeners.some(({ invalid }) => !invalid);
  const refused = parametersProblem(spec.infrastructure?.parametersRef) ?? addressTypeProblem(spec.addresses) ?? (working ? undefined : { reason: "ListenersNotValid", message: "no listener can be served" });
  const { addresses, problem } = addressesFor(spec.addresses ?? [], at.map((value) => ({ type: parseIp(value) ? "IPAddress" : "Hostname", value })));
  return {
    addresses: refused ? [] : addresses,
    conditions: [
      condition("Accepted", refused, { reason: broken ? "ListenersNotValid" : "Accepted", message: broken ? "some listeners cannot be served" : "Gateway is accepted", observedGeneration }),
      condition("Programmed", refused ? { reason: "Invalid", message: refused.message } : problem, { reason: "Programmed", message: alone ? "every node serves the Gateway, at a Service of its own: on a port, nothing tells it apart from an older one" : "every node serves the Gateway", observedGeneration }),
    ],
    listeners: listeners.map((one) => listenerStatus(one, observedGeneration)),
  };
}

function listenerStatus({ listener: { name, allowedRoutes, protocol }, attached, refused, invalid, unresolved }: Accepted, observedGeneration: number): PlannedGatewayStatus["listeners"][number] {
  const isKnown = isSupported(protocol) && invalid?.reason !== "UnsupportedProtocol" && invalid?.reason !== "UnsupportedValue";
  const kinds = !isKnown ? [] : allowedRoutes?.kinds?.length ? allowedRoutes.kinds.filter((one) => isKindOf(one, protocol)).map(({ kind }) => kind) : ROUTE_KINDS[protocol];
  const problem = refused ?? invalid ?? unresolved;
  const conflict: Problem | undefined = invalid?.conflicts ? { reason: invalid.reason, message: invalid.message } : undefined;
  return {
    name, attachedRoutes: attached, supportedKinds: kinds.map((kind) => ({ group: GATEWAY_GROUP, kind })),
    conditions: [
      condition("Accepted", invalid && { reason: invalid.reason, message: invalid.message }, { reason: "Accepted", message: "Listener is accepted", observedGeneration }),
      condition("Programmed", problem && { reason: "Invalid", message: problem.message }, { reason: "Programmed", message: "every node serves the listener", observedGeneration }),
      condition("ResolvedRefs", unresolved, { reason: "ResolvedRefs", message: "All references resolved", observedGeneration }),
      conflict ? { type: "Conflicted", status: "True", observedGeneration, ...conflict } : { type: "Conflicted", status: "False", reason: "NoConflicts", message: "", observedGeneration },
    ],
  };
}

function addressTypeProblem(asked: readonly GatewayAddress[] = []): Problem | undefined {
  const other = asked.find(({ type = "IPAddress" }) => !ADDRESS_TYPES.has(type));
  return other && { reason: "UnsupportedAddress", message: `addresses of type ${other.type} are not supported` };
}

/** Those that are asked for, if there are such; without a value any of the type will do. */
function addressesFor(asked: readonly GatewayAddress[], at: readonly { readonly type: string; readonly value: string }[]): { readonly addresses: typeof at; readonly problem: Problem | undefined } {
  if (at.length === 0) return { addresses: [], problem: { reason: "AddressNotAssigned", message: "the Service it is reached through has no address yet" } };
  if (asked.length === 0) return { addresses: at, problem: undefined };
  const found = asked.map(({ type = "IPAddress", value = "" }) => ({ type, value, given: at.filter((one) => one.type === type && (value === "" || one.value === value)) }));
  const missing = found.find(({ given }) => given.length === 0);
  const addresses = [...new Set(found.flatMap(({ given }) => given))];
  if (!missing) return { addresses, problem: undefined };
  return { addresses, problem: missing.value === "" ? { reason: "AddressNotAssigned", message: `there is no address of type ${missing.type}` } : { reason: "AddressNotUsable", message: `the Gateway is not reached at ${missing.value}` } };
}

/** What is wrong with parameters of a GatewayClass or a Gateway: that there are any. */
export function parametersProblem(ref: ParametersRef | undefined): Problem | undefined {
  return ref && { reason: "InvalidParameters", message: `parameters of kind ${ref.kind} in group ${JSON.stringify(ref.group)} are not supported` };
}

/** Whether routes of this kind may be attached to listeners that speak this. */
export function isKindOf({ group = GATEWAY_GROUP, kind }: { readonly group?: string; readonly kind: string }, protocol: string): boolean { return group === GATEWAY_GROUP && isSupported(protocol) && ROUTE_KINDS[protocol].includes(kind); }
