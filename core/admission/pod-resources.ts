/**
 * What a whole pod asks for: containers together, or the largest init container if that is more, with sidecars counted beside both.
 *
 * Source: kubernetes v1.36 plugin/pkg/admission/limitranger/admission.go (podRequests, podLimits)
 */
import type { Container, Pod } from "../api/gen/core.v1.ts";
import { addQuantity, maxQuantity, parseQuantity, type Quantity } from "../api/meta/quantity.ts";

export type Resources = ReadonlyMap<string, Quantity>;

const POD_LEVEL: ReadonlySet<string> = new Set(["cpu", "memory"]);

export function podResources({ spec }: Readonly<Pod>, which: "requests" | "limits"): Resources {
  const total = new Map<string, Quantity>();
  const sidecars = new Map<string, Quantity>();
  const largest = new Map<string, Quantity>();
  for (const container of spec.containers ?? []) addTo(total, containerResources(container, which));
  for (const container of spec.initContainers ?? []) {
    const own = containerResources(container, which);
    const sidecar = container.restartPolicy === "Always";
    if (sidecar) {
      addTo(total, own);
      addTo(sidecars, own);
    }
    for (const [name, quantity] of own) { // of what others ask for the sidecars so far have raised it already
      const beside = sidecars.get(name), running = sidecar ? beside! : beside ? addQuantity(quantity, beside) : quantity; // amounts are written as the container's own
      largest.set(name, maxQuantity(largest.get(name) ?? running, running));
    }
  }
  for (const [name, quantity] of largest) total.set(name, maxQuantity(total.get(name) ?? quantity, quantity));
  for (const [name, quantity] of Object.entries(spec.resources?.[which] ?? {})) if (POD_LEVEL.has(name)) total.set(name, parseQuantity(String(quantity)));
  return total;
}

export function containerResources({ resources }: Readonly<Container>, which: "requests" | "limits"): Resources { return resourcesOf(resources?.[which]); }

export function resourcesOf(list: Readonly<Record<string, unknown>> | undefined): Resources {
  return new Map(Object.entries(list ?? {}).map(([name, quantity]) => [name, parseQuantity(String(quantity))]));
}

function addTo(total: Map<string, Quantity>, more: Resources): void {
  for (const [name, quantity] of more) {
    const before = total.get(name);
    total.set(name, before ? addQuantity(before, quantity) : quantity);
  }
}
