import { expect, test } from "vitest";
import type { ObjectKey } from "../../core/api/meta/object-meta.ts";
import type { ServedListener } from "../../core/ingress/gateway.ts";
import type { Route, RouteTable } from "../../core/ingress/route-table.ts";
import { type DoorWorld, openDoors } from "./doors.ts";

const route = (service: string, host = ""): Route => ({ host, labels: "many", match: { path: { type: "Prefix", value: "/" } }, fallback: false, source: "", age: service, action: { type: "forward", backends: [{ namespace: "default", service, port: 80, weight: 1 }] } });
const listener = (gateway: string, port: number, protocol: "HTTP" | "HTTPS", hostname = ""): ServedListener => ({ gateway: gateway as ObjectKey, port, protocol, hostname, routes: [route(gateway, hostname)], certificates: protocol === "HTTPS" ? [{ host: hostname, labels: "many", namespace: "default", secret: gateway }] : [], terminates: protocol === "HTTPS" });
const world: DoorWorld = {
  ingressRoutes: [route("ingress", "i.test")], ingressCertificates: [{ host: "i.test", labels: "one", namespace: "default", secret: "ingress" }], listeners: [listener("d/a", 80, "HTTP", "a.test"), listener("d/a", 8443, "HTTPS"), listener("d/b", 8443, "HTTP"), listener("d/b", 80, "HTTP"), listener("d/b", 443, "HTTPS")],
  fronts: { shared: new Map([[80, "HTTP"], [443, "HTTPS"], [8443, "HTTPS"]]), own: new Map([["d/b" as ObjectKey, new Map([[8443, "HTTP"], [80, "HTTP"]])]]) },
  doors: [{ gateway: undefined, port: 8443, target: 10_500 }, { gateway: "d/b" as ObjectKey, port: 8443, target: 10_501 }, { gateway: "d/b" as ObjectKey, port: 80, target: 10_502 }, { gateway: undefined, port: 9, target: 10_503 }, { gateway: "d/gone" as ObjectKey, port: 80, target: 10_504 }],
};

test("each door shows what is behind it: everybody's what goes together, one Gateway's all of its own, which is nowhere else", () => {
  const found = (table: RouteTable, host: string): string => {
    const action = table.find({ host, path: "/", method: "GET", header: () => undefined, query: () => undefined })?.action;
    return action?.type === "forward" ? action.backends[0]!.service : "none";
  };
  expect(openDoors(world).map(({ target, protocol, table, certificates }) => [target, protocol, ["i.test", "a.test", "x"].map((host) => found(table, host)).join(), certificates.map(({ secret }) => secret).join()])).toEqual([
    [10_080, "HTTP", "ingress,d/a,none", ""], [10_443, "HTTPS", "ingress,none,none", "ingress"], [10_500, "HTTPS", "d/a,d/a,d/a", "d/a"], [10_501, "HTTP", "d/b,d/b,d/b", ""], [10_502, "HTTP", "d/b,d/b,d/b", ""],
  ]);
});

test("nothing to serve, nothing open", () => { expect(openDoors({ ...world, ingressRoutes: [], listeners: [] })).toEqual([]); });
