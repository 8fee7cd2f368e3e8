/** Which ports of the nodes Gateways cannot have: those the cluster itself is reached at, and those of load balancers that are there already. */
import type { Service } from "../../api/gen/core.v1.ts";
import { keyOf } from "../../api/meta/object-meta.ts";
import type { Informer } from "../../client/informer.ts";
import { isFrontService } from "../../ingress/gateway-fronts.ts";
import { isOurs, type ReservedPort } from "../servicelb/plan.ts";

/** `reserved` undefined: addresses of load balancers are not the nodes', and every Service has its own. */
export function nodePortProblem(services: Pick<Informer<Service>, "list">, reserved: readonly ReservedPort[] | undefined): (port: number) => string | undefined {
  let taken: ReadonlyMap<number, string> | undefined;
  const read = (): ReadonlyMap<number, string> => new Map([...services.list()].filter((one) => isOurs(one) && !isFrontService(one) && one.status?.loadBalancer?.ingress?.length)
    .flatMap((one) => (one.spec?.ports ?? []).filter(({ protocol = "TCP" }) => protocol === "TCP").map(({ port }): [number, string] => [port, keyOf(one)])));
  return (port) => {
    if (!reserved) return undefined;
    const kept = reserved.find((one) => one.protocol === "TCP" && one.port === port);
    if (kept) return `port ${port}/TCP of the nodes is ${kept.why}`;
    const service = (taken ??= read()).get(port);
    return service && `port ${port}/TCP of the nodes is used by service ${service}`;
  };
}

/** Whether a Service's change gives or takes a port. */
export function holdsPorts(service: Readonly<Service>, old: Readonly<Service> | undefined): boolean {
  const ports = (one: Readonly<Service>): string => (isOurs(one) && one.status?.loadBalancer?.ingress?.length ? (one.spec?.ports ?? []).map(({ port, protocol }) => `${protocol} ${port}`).join() : "");
  return ports(service) !== (old ? ports(old) : "");
}
