/** What the nodes themselves are reached at: no Service of type LoadBalancer gets it, whoever may make one. Pure. */
import type { ReservedPort } from "../../core/controllers/servicelb/plan.ts";
import { HTTP_PORT, HTTPS_PORT } from "../../core/ingress/ingress-class.ts";
import { VXLAN_PORT } from "../../node/os/vxlan-port.ts";
import type { Settings } from "../config/flags.ts";
import { etcdAddresses } from "../relied-on.ts";

export function reservedPorts({ httpsListenPort, kubeletPort, datastoreEndpoint = "", disable }: Pick<Settings, "httpsListenPort" | "kubeletPort" | "datastoreEndpoint" | "disable">): ReservedPort[] {
  return [
    { protocol: "TCP", port: httpsListenPort, why: "the API server's" }, { protocol: "TCP", port: kubeletPort, why: "the kubelet's" }, { protocol: "UDP", port: VXLAN_PORT, why: "the pod network's" },
    ...(disable.includes("ingress") ? [] : [HTTP_PORT, HTTPS_PORT].map((port) => ({ protocol: "TCP" as const, port, why: "the ingress's" }))), // where its own Service leads to, also from other nodes
    ...etcdPorts(datastoreEndpoint).map((port) => ({ protocol: "TCP" as const, port, why: "the datastore's" })),
  ];
}

/** It runs on the servers' machines as a rule: who had its port there had all servers without their objects. */
function etcdPorts(endpoints: string): number[] { return [...new Set(etcdAddresses(endpoints).map(({ port }) => port))]; }
