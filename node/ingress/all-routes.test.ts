import { expect, test } from "vitest";
import type { Ingress } from "../../core/api/gen/networking.v1.ts";
import { allRoutes } from "./all-routes.ts";

test("between the routes of two Ingresses others have their turn; those of one that is as it was are known", async () => {
  const ingress = (host: string) => ({ metadata: { name: host, namespace: "default" }, spec: { rules: [{ host, http: { paths: [{ path: "/", pathType: "Prefix", backend: { service: { name: "s", port: { number: 80 } } } }] } }] } }) as Ingress;
  const [a, b, c] = [ingress("a"), ingress("b"), ingress("c")];
  let turns = 0;
  const routesOf = allRoutes(async () => void turns++);
  const first = await routesOf([a, b]);
  expect([first.map(({ host }) => host), turns]).toEqual([["a", "b"], 2]);
  const next = await routesOf([c, b]);
  expect([next.map(({ host }) => host), turns, next[1] === first[1]]).toEqual([["c", "b"], 3, true]);
});
