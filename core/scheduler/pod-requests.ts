/**
 * What a pod asks of a node: the sum of its containers, or the most any init container needs while it runs, whichever is more; plus overhead.
 * Sidecars (init containers that restart always) count with the containers and with the init containers started after them.
 *
 * Source: kubernetes v1.36 component-helpers/resource/helpers.go
 */
import type { Container, Pod } from "../api/gen/core.v1.ts";
import { parseQuantity } from "../api/meta/quantity.ts";

/** Whole units: milli-CPUs, bytes, counts. Every resource that is asked for has an entry. */
export type Requests = Readonly<Record<string, number>>;

export function podRequests({ spec }: Readonly<Pod>): Requests {
  const running: Record<string, number> = {};
  for (const container of spec.containers) add(running, requestsOf(container));
  const starting: Record<string, number> = {};
  const sidecars: Record<string, number> = {};
  for (const container of spec.initContainers ?? []) {
    const own = requestsOf(container);
    if (container.restartPolicy === "Always") {
      add(running, own);
      add(sidecars, own);
      raise(starting, sidecars);
    } else {
      const together = { ...sidecars };
      add(together, own);
      raise(starting, together);
    }
  }
  raise(running, starting);
  for (const [name, quantity] of Object.entries(spec.resources?.requests ?? {})) running[name] = amount(name, quantity);
  for (const [name, quantity] of Object.entries(spec.overhead ?? {})) running[name] = (running[name] ?? 0) + amount(name, quantity);
  return running;
}

function requestsOf({ resources }: Container): Requests {
  return amounts(resources?.requests);
}

export function amounts(list: Readonly<Record<string, string>> | undefined): Record<string, number> {
  const out: Record<string, number> = {};
  for (const [name, quantity] of Object.entries(list ?? {})) out[name] = amount(name, quantity);
  return out;
}

function amount(name: string, quantity: string): number {
  const parsed = parseQuantity(quantity);
  return name === "cpu" ? parsed.milliNumber() : parsed.number();
}

function add(to: Record<string, number>, more: Requests): void {
  for (const [name, value] of Object.entries(more)) to[name] = (to[name] ?? 0) + value;
}

function raise(to: Record<string, number>, least: Requests): void {
  for (const [name, value] of Object.entries(least)) to[name] = Math.max(to[name] ?? 0, value);
}

/** What scores assume of a container that asks for nothing. Source: pkg/scheduler/util/pod_resources.go */
export const DEFAULT_MILLI_CPU = 100;
export const DEFAULT_MEMORY_BYTES = 200 * 1024 * 1024;
