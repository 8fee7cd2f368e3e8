import { expect, test } from "vitest";
import type { Route } from "../os/netlink.ts";
import { ensureServiceRoutes } from "./service-routes.ts";

test("there is a route to each range of Services, and none to one that is gone", () => {
  const routes = new Map<string, Route>();
  const rules: unknown[] = [];
  const netlink = {
    addRule: (rule: unknown) => void rules.push(rule),
    routes: (protocol: number, table?: number) => [...routes.values()].filter((route) => route.protocol === protocol && route.table === table).map(({ table: _, ...route }) => route),
    replaceRoute: (route: Route) => void routes.set(`${route.table} ${route.to}`, route),
    removeRoute: (route: Route) => void routes.delete(`${route.table} ${route.to}`),
  };
  const ensure = (...serviceCidrs: string[]): string[] => {
    ensureServiceRoutes(netlink, { serviceCidrs, device: 7 });
    return [...routes.values()].map(({ to, device }) => `${to} ${device}`);
  };
  expect(ensure("10.43.0.0/16", "10.44.0.0/24")).toEqual(["10.43.0.0/16 7", "10.44.0.0/24 7"]);
  expect(ensure("10.43.0.0/16", "fd43::/112")).toEqual(["10.43.0.0/16 7", "fd43::/112 7"]);
  expect(rules.at(-1)).toMatchObject({ family: 6 });
});
