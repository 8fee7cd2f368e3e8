import { expect, test } from "vitest";
import { jsonText } from "../api/codec/json.ts";
import { assemble } from "../api/codec/pieces.ts";
import { renderTable } from "../api/codec/table/table.ts";
import type { ApiObject } from "../api/meta/object-meta.ts";
import { atOnce } from "../lifecycle/breather.ts";
import { Cached } from "../registry/generic/cached.ts";
import type { ServedResource } from "../registry/registry.ts";
import { tableRows } from "./table-rows.ts";

const MADE_MS = Date.parse("2026-01-01T00:00:00Z");
const pod = (name: string, status: object, metadata: object = { creationTimestamp: "2026-01-01T00:00:00Z" }): ApiObject => ({ apiVersion: "v1", kind: "Pod", metadata: { name, ...metadata }, spec: { containers: [{ name: "c" }] }, status }) as unknown as ApiObject;
const containers = (restartCount: number) => [{ name: "c", ready: true, restartCount, state: { running: {} }, ...(restartCount > 0 && { lastState: { terminated: { exitCode: 1, finishedAt: "2026-01-01T00:10:00Z" } } }) }];

test.each([
  ["apps", { kind: "Deployment", spec: { replicas: 2, selector: { matchLabels: { app: "a" } }, template: { spec: { containers: [{ name: "c", image: "i" }] } } }, status: { readyReplicas: 1, updatedReplicas: 2, conditions: [{ type: "Available", lastUpdateTime: "2026-01-01T00:05:00Z" }] } }],
  ["apps", { kind: "ReplicaSet", spec: { replicas: 2, selector: { matchLabels: { app: "a" } }, template: { spec: { containers: [{ name: "c", image: "ü" }] } } }, status: { replicas: 2 } }],
  ["", { kind: "Service", spec: { type: "LoadBalancer", clusterIPs: ["10.0.0.1"], ports: [{ port: 80, nodePort: 30_080, protocol: "TCP" }], selector: { app: "a" } }, status: { loadBalancer: { ingress: [{ ip: "1.2.3.4" }] } } }],
  ["discovery.k8s.io", { kind: "EndpointSlice", addressType: "IPv4", ports: [{ port: 80 }], endpoints: [1, 2, 3, 4].map((n) => ({ addresses: [`10.0.0.${n}`] })) }],
])("of %s %j the row is kept, and its age told anew", (group, object) => {
  const { kind } = object, whole = { apiVersion: "v1", metadata: { name: "a", creationTimestamp: "2026-01-01T00:00:00Z" }, ...object } as unknown as ApiObject;
  const entry = new Cached("/registry/a", whole, 1), served = { row: { group, version: "v1", kind }, custom: undefined } as unknown as ServedResource;
  for (const laterMs of [1_000, 601_000, 86_400_000, -5_000]) {
    const request = { listMeta: {}, nowMs: MADE_MS + laterMs };
    const [row] = atOnce(tableRows(served, [entry], request)).rows;
    expect(assemble([row!.before, row!.age, row!.after]).toString()).toBe(jsonText(renderTable({ ...request, kind: { group, kind }, objects: [whole] }).rows![0]!.cells));
    expect(entry.bytesHeld).toBeGreaterThan(0);
  }
});

test("rows that are kept say at any time what a printer would", () => {
  const objects = [
    pod("running", { phase: "Running", containerStatuses: containers(0) }), pod("restarted", { phase: "Running", containerStatuses: containers(3) }),
    pod("began-again", { phase: "Pending", initContainerStatuses: containers(1) }), pod("failed", { phase: "Failed", reason: 'an "odd" <reason>' }), pod("never", {}, {}),
  ];
  const entries = objects.map((object, i) => new Cached(`/registry/pods/default/${object.metadata.name}`, object, i + 1));
  const served = { row: { group: "", version: "v1", kind: "Pod" }, custom: undefined } as unknown as ServedResource;
  for (const laterMs of [1_000, 601_000, 86_400_000, 1_000]) {
    const request = { listMeta: { resourceVersion: "9" }, nowMs: MADE_MS + laterMs };
    const { head, rows } = atOnce(tableRows(served, entries, request));
    const { rows: wanted, ...rest } = renderTable({ ...request, kind: { group: "", kind: "Pod" }, objects });
    expect(head).toEqual(rest);
    expect(rows.map(({ entry }) => entry)).toEqual(entries);
    expect(rows.map(({ before, age, after }) => JSON.parse(`{"cells":${assemble([before, age, after]).toString()}}`) as unknown)).toEqual(wanted!.map(({ object: _, ...row }) => row));
  }
  expect([entries[0]!.bytesHeld > 0, entries[1]!.bytesHeld]).toEqual([true, 0]);
  entries[0]!.forget();
  expect(entries[0]!.bytesHeld).toBe(0);
});
