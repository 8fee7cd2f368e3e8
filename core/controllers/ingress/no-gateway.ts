/**
 * Where nodes have no ingress (any more): what is said of Gateways and all that belongs to them is taken back, or it would say for ever that they are served. What is left is what the Gateway API has objects
 * say that no controller has seen yet; other controllers' words stay.
 */
import { type ApiObject, objectKey } from "../../api/meta/object-meta.ts";
import { ifFound } from "../../api/meta/if-found.ts";
import type { Condition } from "../../api/gen/meta.v1.ts";
import type { ResourceClient } from "../../client/client.ts";
import type { GatewaySource } from "../../ingress/gateway-source.ts";
import { BACKEND_TLS_POLICIES, GATEWAY_CLASSES, GATEWAY_CONTROLLER, GATEWAYS, GRPC_ROUTES, HTTP_ROUTES, TCP_ROUTES, TLS_ROUTES } from "../../ingress/gateway-types.ts";
import { timestamp } from "../../lifecycle/clock.ts";
import { settleEach } from "../../lifecycle/settle-all.ts";
import type { Controller } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { watchOf } from "./gateway.ts";

const ALL = objectKey("", "all");

export function noGatewayController({ client, clock, source }: Pick<ControllerDeps, "client" | "clock"> & { readonly source: GatewaySource }): Controller {
  const pending = (...types: readonly string[]): Condition[] => types.map((type) => ({ type, status: "Unknown", reason: "Pending", message: "Waiting for controller", lastTransitionTime: timestamp(clock.nowMs()) }));

  return {
    name: "gateway",
    workers: 1,
    starts: [ALL],
    watches: [watchOf(source, ALL)], // they are read once their definitions are there
    async reconcile(_key, { signal }) {
      const objects = source.objects();
      if (!objects) return;
      const writes: (() => Promise<unknown>)[] = [];
      const write = <T extends ApiObject>(resource: ResourceClient<T>, object: T, status: unknown): void => void writes.push(() => ifFound(resource.updateStatus({ ...object, status }, { signal })));
      const classes = objects.classes.filter(({ spec }) => spec.controllerName === GATEWAY_CONTROLLER), names = new Set(classes.map(({ metadata }) => metadata.name));
      for (const one of classes) if (isTold(one.status)) write(client.resource(GATEWAY_CLASSES), one, { conditions: pending("Accepted") });
      for (const one of objects.gateways) if (names.has(one.spec.gatewayClassName) && isTold(one.status)) write(client.resource(GATEWAYS), one, { conditions: pending("Accepted", "Programmed") });
      for (const [ref, routes] of [[HTTP_ROUTES, objects.routes], [GRPC_ROUTES, objects.grpcRoutes], [TLS_ROUTES, objects.tlsRoutes], [TCP_ROUTES, objects.tcpRoutes]] as const)
        for (const one of routes) if (one.status?.parents?.some(isOurs)) write(client.resource(ref), one as never, { parents: one.status.parents.filter((parent) => !isOurs(parent)) });
      for (const one of objects.tlsPolicies) if (one.status?.ancestors?.some(isOurs)) write(client.resource(BACKEND_TLS_POLICIES), one, { ancestors: one.status.ancestors.filter((ancestor) => !isOurs(ancestor)) });
      await settleEach(writes, 1, (one) => one());
    },
  };
}

function isTold(status: { readonly conditions?: readonly Condition[] } | undefined): boolean { return status?.conditions?.some((one) => one.status !== "Unknown") ?? false; }

function isOurs({ controllerName }: { readonly controllerName: string }): boolean { return controllerName === GATEWAY_CONTROLLER; }
