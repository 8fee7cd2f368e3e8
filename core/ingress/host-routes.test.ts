import { expect, test } from "vitest";
import { seededRandom } from "../../test/simulator/seeded.ts";
import type { RoutedRequest, RouteMatch } from "./host-routes.ts";
import { type Route, routeTable } from "./route-table.ts";

const asked = (path: string, method: string, header: string | undefined): RoutedRequest => ({ host: "a", path, method, header: (name) => (name === "h" ? header : undefined), query: () => undefined });

/** As the documents say it. */
function isFor({ path: { type, value }, method, headers = [] }: RouteMatch, { path, ...request }: RoutedRequest): boolean {
  const base = value.replace(/\/$/, "");
  const isPath = type === "Exact" ? path === value : type === "Prefix" ? path === base || path.startsWith(`${base}/`) : path.split("/").slice(2).join("/") === value;
  return isPath && (method === undefined || method === request.method) && headers.every(({ name, value: wanted }) => request.header(name) === wanted);
}

/** The higher, the sooner. */
function rank({ match: { path: { type, value }, method, headers = [] } }: Route): number {
  return (type === "Exact" ? 1e6 : 0) + (type === "Method" ? 1 : value.length > 1 ? value.replace(/\/$/, "").length : value.length) * 1e4 + (type === "Method" ? 1000 : 0) + (method === undefined ? 0 : 100) + headers.length;
}

test("whatever the routes of a host: the most specific that a request is for is found, and of equal ones the first", () => {
  for (let seed = 1; seed <= 60; seed++) {
    const random = seededRandom(seed);
    const of = <T>(all: readonly T[]): T => all[random.integer(0, all.length - 1)]!;
    const path = (): string => `${Array.from({ length: random.integer(0, 3) }, () => `/${of(["a", "ab", "b"])}`).join("")}${of(["", "/"])}` || "/";
    const routes = Array.from({ length: 40 }, (_, i): Route => {
      const type = of(["Exact", "Prefix", "Prefix", "Method"] as const);
      const match: RouteMatch = { path: { type, value: type === "Method" ? of(["a", "ab"]) : path() }, method: of([undefined, undefined, "GET"]), headers: of([[], [], [{ name: "h", value: "1" }]]) };
      return { host: "a", labels: "one", match, fallback: false, action: { type: "fail", status: 500 }, source: String(i), age: "" };
    });
    const table = routeTable(routes);
    for (let i = 0; i < 60; i++) {
      const request = asked(path(), of(["GET", "POST"]), of([undefined, "1"]));
      const [first] = routes.filter(({ match }) => isFor(match, request)).toSorted((a, b) => rank(b) - rank(a));
      expect(table.find(request)?.source, `seed ${seed}: ${request.path}`).toBe(first?.source);
    }
  }
});

test("of ten thousand routes of a host those alone are looked at whose path a request may have", () => {
  let looks = 0;
  const routes = Array.from({ length: 10_000 }, (_, i): Route => ({
    host: "a", labels: "one", match: { path: { type: "Prefix", value: `/p${i}` }, get method() { looks++; return undefined; } }, fallback: false, action: { type: "fail", status: 500 }, source: String(i), age: "",
  }));
  const table = routeTable(routes);
  table.find(asked("/", "GET", undefined));
  looks = 0;
  expect([table.find(asked("/p77/x", "GET", undefined))?.source, table.find(asked("/none", "GET", undefined)), looks <= 4]).toEqual(["77", undefined, true]);
});

test("a path of nothing but slashes is not copied for each of them", () => {
  let copied = 0;
  class Path extends String { override slice(start?: number, end?: number): string { copied += (end ?? this.length) - (start ?? 0); return super.slice(start, end); } }
  const table = routeTable(["/", `/${"x".repeat(50_000)}`].map((value): Route => ({ host: "a", labels: "one", match: { path: { type: "Prefix", value } }, fallback: false, action: { type: "fail", status: 500 }, source: value, age: "" })));
  const path = new Path("/".repeat(10_000)) as unknown as string;
  expect(table.find(asked(path, "GET", undefined))?.source).toBe("/");
  expect(copied).toBeLessThan(20_000);
});
