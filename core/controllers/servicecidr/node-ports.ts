/**
 * Tells of node ports that Services have and may not have: those outside of the range, since it was another one when they were made, and those of two Services, since
 * somebody wrote past the API. Nobody but the user can mend that. What is in use is told by the Services (core/registry/core/service/allocator/pool.ts), so nothing leaks.
 *
 * Source: kubernetes v1.36 pkg/registry/core/service/portallocator/controller/repair.go
 */
import type { Service } from "../../api/gen/core.v1.ts";
import { keyOf, objectKey } from "../../api/meta/object-meta.ts";
import { SERVICES } from "../../client/resources.ts";
import type { Controller, Next } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";

export interface NodePortRange { readonly first: number; readonly last: number }

export interface NodePortProblem { readonly service: Readonly<Service>; readonly type: "duplicate" | "outOfRange"; readonly reason: string; readonly message: string }

/** How often it is looked and told; upstream's. */
const PERIOD_MS = 180_000;

/** Of two Services the first by name has a port. */
export function nodePortProblems(services: Iterable<Readonly<Service>>, { first, last }: NodePortRange): NodePortProblem[] {
  const taken = new Set<number>();
  return [...services].toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1)).flatMap((service) => nodePortsOf(service).flatMap((port): NodePortProblem[] => {
    if (port < first || port > last) return [{ service, type: "outOfRange", reason: "PortOutOfRange", message: `Port ${port} is not within the port range ${first}-${last}; please recreate service` }];
    if (taken.has(port)) return [{ service, type: "duplicate", reason: "PortAlreadyAllocated", message: `Port ${port} was assigned to multiple services; please recreate service` }];
    taken.add(port);
    return [];
  }));
}

/** Each once, unless one protocol has it twice. */
function nodePortsOf({ spec }: Readonly<Service>): number[] {
  const seen = new Set<string>();
  const ports = (spec.ports ?? []).flatMap(({ nodePort = 0, protocol = "TCP" }) => {
    const isOther = seen.has(`${nodePort}`) && !seen.has(`${protocol} ${nodePort}`);
    for (const one of [`${nodePort}`, `${protocol} ${nodePort}`]) seen.add(one);
    return nodePort === 0 || isOther ? [] : [nodePort];
  });
  const health = spec.healthCheckNodePort ?? 0;
  return health !== 0 && (!seen.has(`${health}`) || seen.has(`TCP ${health}`)) ? [...ports, health] : ports;
}

/** `nodeName`: the machine it runs on. */
export function serviceNodePortController({ informers, events, metrics, nodeName, nodePortRange }: Pick<ControllerDeps, "informers" | "events" | "metrics"> & { readonly nodeName: string; readonly nodePortRange: NodePortRange }): Controller {
  const services = informers.of(SERVICES);
  const reporter = events.reporter({ component: "portallocator-repair-controller", host: nodeName });
  const errors = metrics?.counter("apiserver_nodeport_repair_port_errors_total", "[ALPHA] Number of errors detected on ports by the repair loop broken down by type of error: leak, repair, full, outOfRange, duplicate, unknown");
  metrics?.counter("apiserver_nodeport_repair_reconcile_errors_total", "[ALPHA] Number of reconciliation failures on the nodeport repair reconcile loop").with({});
  const all = objectKey("", "node-ports");
  return {
    name: "service-node-ports",
    workers: 1,
    watches: [],
    reads: [services],
    starts: [all],
    async reconcile(): Promise<Next> {
      for (const { service, type, reason, message } of nodePortProblems(services.list(), nodePortRange)) {
        errors?.inc({ type });
        reporter.report(service, { type: "Warning", reason, action: "PortAllocation", note: message });
      }
      return { againInMs: PERIOD_MS };
    },
  };
}
