/** The routes of all Ingresses, of each once for as long as it stays as it is. One may have ten thousand, and a namespace many of those: others have their turn between two. */
import type { Ingress } from "../../core/api/gen/networking.v1.ts";
import { ingressRoutes } from "../../core/ingress/ingress-routes.ts";
import type { Route } from "../../core/ingress/route-table.ts";
import type { Breathe } from "../../core/lifecycle/breather.ts";

export function allRoutes(breathe: Breathe): (ingresses: readonly Readonly<Ingress>[]) => Promise<Route[]> {
  const known = new WeakMap<Readonly<Ingress>, readonly Route[]>();
  return async (ingresses) => {
    const found: (readonly Route[])[] = [];
    for (const one of ingresses) {
      let routes = known.get(one);
      if (!routes) {
        await breathe();
        known.set(one, (routes = ingressRoutes(one)));
      }
      found.push(routes);
    }
    return found.flat();
  };
}
