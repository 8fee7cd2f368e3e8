/** Now and then an HTTP/2 connection takes no more requests than it has, so that clients of several servers behind one address spread anew. Source: kubernetes v1.36 apiserver/pkg/server/filters/goaway.go */
import type { Random } from "../lifecycle/random.ts";
import type { Handler } from "./scope.ts";

/** Source: kubernetes v1.36 apiserver/pkg/server/options/server_run_options.go */
export const GOAWAY_CHANCE_MAX = 0.02;

/** `chance`: of each request to be its connection's last, 0 to GOAWAY_CHANCE_MAX. */
export function goaway(handler: Handler, { chance, random }: { readonly chance: number; readonly random: Pick<Random, "next"> }): Handler {
  if (chance === 0) return handler;
  return (request) => {
    if (request.takeNoMore && random.next() < chance) request.takeNoMore();
    return handler(request);
  };
}
