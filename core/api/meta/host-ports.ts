import type { Pod } from "../gen/core.v1.ts";

/** The ports of its node that a pod wants: "ip/protocol/port". */
export function* hostPortsOf({ containers, initContainers = [] }: Readonly<Pod["spec"]>): Iterable<string> {
  for (const { ports } of containers) yield* hostPorts(ports);
  for (const { ports, restartPolicy } of initContainers) if (restartPolicy === "Always") yield* hostPorts(ports);
}

function* hostPorts(ports: Pod["spec"]["containers"][number]["ports"]): Iterable<string> {
  for (const { hostPort, hostIP, protocol } of ports ?? []) if (hostPort) yield `${hostIP || "0.0.0.0"}/${protocol ?? "TCP"}/${hostPort}`;
}

const ANY = "0.0.0.0";

/** Ports that a pod wants, by protocol and number: of thousands, each that is taken is held against those alone that are its like. */
export class HostPorts {
  readonly #addresses = new Map<string, Set<string>>(); // by "protocol/port"

  constructor(ports: Iterable<string>) {
    for (const one of ports) {
      const { address, port } = split(one);
      let addresses = this.#addresses.get(port);
      if (!addresses) this.#addresses.set(port, (addresses = new Set()));
      addresses.add(address);
    }
  }

  get isEmpty(): boolean { return this.#addresses.size === 0; }

  /** The same port and protocol on the same address, or on all of them. */
  conflictWith(used: Iterable<string>): boolean {
    for (const one of used) {
      const { address, port } = split(one);
      const addresses = this.#addresses.get(port);
      if (addresses && (address === ANY || addresses.has(address) || addresses.has(ANY))) return true;
    }
    return false;
  }
}

function split(hostPort: string): { readonly address: string; readonly port: string } {
  const slash = hostPort.indexOf("/");
  return { address: hostPort.slice(0, slash), port: hostPort.slice(slash + 1) };
}
