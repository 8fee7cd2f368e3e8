import type { Pod } from "../api/gen/core.v1.ts";

/** The ports of its node that a pod wants: "ip/protocol/port". */
export function* hostPortsOf({ containers, initContainers = [] }: Readonly<Pod["spec"]>): Iterable<string> {
  for (const { ports } of containers) yield* hostPorts(ports);
  for (const { ports, restartPolicy } of initContainers) if (restartPolicy === "Always") yield* hostPorts(ports);
}

function* hostPorts(ports: Pod["spec"]["containers"][number]["ports"]): Iterable<string> {
  for (const { hostPort, hostIP, protocol } of ports ?? []) if (hostPort) yield `${hostIP || "0.0.0.0"}/${protocol ?? "TCP"}/${hostPort}`;
}
