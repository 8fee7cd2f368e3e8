import { existsSync, mkdirSync, mkdtempSync, rmdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import type { ResourceClaim } from "../../../core/api/gen/resource.v1.ts";
import type { NewObject } from "../../../core/api/meta/object-meta.ts";
import type { Client } from "../../../core/client/client.ts";
import { RESOURCE_CLAIMS } from "../../../core/client/resources.ts";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import { runAll } from "../../../core/lifecycle/run-all.ts";
import { silentLog } from "../../../core/observe/log.ts";
import { metricsRegistry } from "../../../core/observe/metrics.ts";
import { eventually, fakeApi } from "../../../test/fake-api.ts";
import { serviceMethods } from "../../cri/facts.ts";
import { rpcServer } from "../../cri/rpc-server.ts";
import text from "../plugins/dra-facts.txt" with { type: "text" };
import type { Methods } from "../plugins/gen/dra.v1.ts";
import healthText from "../plugins/dra-health-facts.txt" with { type: "text" };
import type { DeviceHealth, Methods as HealthMethods } from "../plugins/gen/dra-health.v1alpha1.ts";
import { claimManager } from "./claim-manager.ts";
import { checkClaim, claimHealth, claimsOfPod, devicesOfContainer, type PreparedClaim } from "./claim-plan.ts";
import { draDrivers } from "./dra-drivers.ts";
import { deviceHealths } from "./device-health.ts";

const DRIVER = "gpu.example.com";
const signal = new AbortController().signal;
let dataDir = "";
beforeEach(() => { dataDir = mkdtempSync(join(tmpdir(), "claims-")); });
afterEach(() => rmSync(dataDir, { recursive: true }));

const pod = (uid: string): Pod => ({
  metadata: { name: `pod-${uid}`, namespace: "d", uid }, status: { resourceClaimStatuses: [{ name: "made", resourceClaimName: "made-1" }] },
  spec: { resourceClaims: [{ name: "gpu", resourceClaimName: "shared" }], containers: [{ name: "all", resources: { claims: [{ name: "gpu" }] } }, { name: "one", resources: { claims: [{ name: "gpu", request: "big" }] } }, { name: "none" }] },
}) as unknown as Pod;

test("a claim is prepared once for all its pods, given to the containers that ask, and unprepared with the last", async () => {
  const api = fakeApi();
  const calls: string[] = [];
  const events: string[] = [];
  const socket = join(dataDir, "dra.sock");
  const driver = rpcServer<Methods>({
    name: "dra", socket, methods: serviceMethods(text, "k8s.io.kubelet.pkg.apis.dra.v1"), log: silentLog,
    calls: {
      "DRAPlugin/NodePrepareResources": ({ claims = [] }) => {
        calls.push("prepare");
        return { claims: Object.fromEntries(claims.map(({ uid = "" }) => [uid, { devices: [{ request_names: ["big"], pool_name: "n1", device_name: "gpu-0", cdi_device_ids: ["example.com/gpu=0"] }, { request_names: ["small/alt"], pool_name: "n1", device_name: "gpu-1", cdi_device_ids: ["example.com/gpu=1"] }] }])) };
      },
      "DRAPlugin/NodeUnprepareResources": ({ claims = [] }) => { calls.push("unprepare"); return { claims: Object.fromEntries(claims.map(({ uid = "" }) => [uid, {}])) }; },
    },
  });
  let metrics = metricsRegistry();
  const counted = (name: string, labels: string): number => Number(new RegExp(`^${name}_count\\{${labels}\\} (.*)$`, "m").exec(metrics.render())?.[1] ?? 0);
  const manager = () => claimManager({ dataDir, nodeName: "n1", client: api.client, clock: systemClock, log: silentLog, events: { event: (_, __, reason, message) => void events.push(`${reason}: ${message}`) }, metrics, onRegistered: () => undefined, onHealth: () => undefined });
  const first = manager();
  const stop = new AbortController();
  const ended = runAll([driver, first], stop.signal);
  await eventually(() => existsSync(socket), Boolean);
  const claim = { apiVersion: "resource.k8s.io/v1", kind: "ResourceClaim", metadata: { name: "shared", namespace: "d" }, spec: {}, status: { allocation: { devices: { results: [{ request: "big", driver: DRIVER, pool: "n1", device: "gpu-0" }] } }, reservedFor: ["u1", "u2"].map((uid) => ({ resource: "pods", name: `pod-${uid}`, uid })) } };
  await api.client.resource(RESOURCE_CLAIMS).create(claim as unknown as NewObject<ResourceClaim>, { signal });

  await expect(first.prepare(pod("u1"), { anew: false, signal })).rejects.toThrow(`Failed to prepare dynamic resources: prepare dynamic resources: DRA driver ${DRIVER} is not registered`);
  expect(events).toEqual([`FailedPrepareDynamicResources: Failed to prepare dynamic resources: prepare dynamic resources: DRA driver ${DRIVER} is not registered`]);
  await first.release("u1", signal); // nothing was begun: the pod can go
  await expect(first.prepare(pod("u9"), { anew: false, signal })).rejects.toThrow("pod pod-u9 (u9) is not allowed to use ResourceClaim shared");
  expect(() => first.handler.validate({ name: DRIVER, endpoint: socket, versions: ["v7.DRAPlugin"] })).toThrow(`invalid supported gRPC versions of DRA driver plugin ${DRIVER} at endpoint ${socket}: none of services supported by the plugin (["v7.DRAPlugin"]) are supported by the kubelet (["v1.DRAPlugin" "v1beta1.DRAPlugin"])`);
  await first.handler.register({ name: DRIVER, endpoint: socket, versions: ["v1beta1.DRAPlugin", "v1.DRAPlugin"] }, signal);
  const both = { ...pod("u1"), spec: { ...pod("u1").spec, resourceClaims: [{ name: "gpu", resourceClaimName: "shared" }, { name: "late", resourceClaimName: "late" }] } };
  await expect(first.prepare(both, { anew: false, signal })).rejects.toThrow("fetch ResourceClaim late: ");
  await api.client.resource(RESOURCE_CLAIMS).create({ ...claim, metadata: { name: "late", namespace: "d" }, status: { ...claim.status, allocation: { devices: { results: [{ driver: "nic.example.com" }] } } } } as unknown as NewObject<ResourceClaim>, { signal });
  await expect(first.prepare(both, { anew: false, signal })).rejects.toThrow("DRA driver nic.example.com is not registered");
  expect(calls, "nothing is begun where one of a pod's claims cannot be").toEqual([]);
  await first.prepare(pod("u1"), { anew: false, signal });
  mkdirSync(join(dataDir, "dra_manager_state.tmp")); // the disk takes nothing
  await expect(first.prepare(pod("u2"), { anew: false, signal })).rejects.toThrow("EISDIR");
  await expect(first.prepare(pod("u2"), { anew: false, signal }), "what is not on disk would be taken from it after a restart").rejects.toThrow("EISDIR");
  rmdirSync(join(dataDir, "dra_manager_state.tmp"));
  await first.prepare(pod("u2"), { anew: false, signal });
  const given = (container: string) => first.devicesOf(pod("u1"), container).flatMap(({ devices }) => devices.flatMap(({ cdiIds }) => cdiIds));
  expect([given("all"), given("one"), given("none")]).toEqual([["example.com/gpu=0", "example.com/gpu=1"], ["example.com/gpu=0"], []]);
  await first.release("u1", signal);
  expect(calls).toEqual(["prepare"]);

  expect([counted("dra_operations_duration_seconds", 'is_error="false",operation_name="PrepareResources"'), counted("dra_operations_duration_seconds", 'is_error="true",operation_name="PrepareResources"')]).toEqual([2, 6]);
  expect(counted("dra_grpc_operations_duration_seconds", `driver_name="${DRIVER}",grpc_status_code="OK",method_name="/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources"`)).toBe(1);

  expect(metrics.render()).toContain('dra_resource_claims_in_use{driver_name="<any>"} 1\n');
  expect(metrics.render()).toContain(`dra_resource_claims_in_use{driver_name="${DRIVER}"} 1\n`);

  metrics = metricsRegistry();
  const second = manager(); // knows from the disk
  await second.handler.register({ name: DRIVER, endpoint: socket, versions: ["v1.DRAPlugin"] }, signal);
  await second.prepare(pod("u2"), { anew: false, signal });
  await second.retain(new Set(["u2"]), signal);
  expect(calls).toEqual(["prepare"]);
  for (let tries = 0; tries < 2; tries++) await second.prepare(pod("u2"), { anew: true, signal });
  expect(calls, "the machine may have been down, and what the driver had written in /run is gone").toEqual(["prepare", "prepare"]);
  expect(second.devicesOf(pod("u2"), "one").flatMap(({ devices }) => devices.map(({ device }) => device))).toEqual(["gpu-0"]);
  calls.pop();
  await second.release("u2", signal);
  expect(calls).toEqual(["prepare", "unprepare"]);
  expect(counted("dra_operations_duration_seconds", 'is_error="false",operation_name="UnprepareResources"')).toBe(1);
  await second.prepare(pod("u2"), { anew: false, signal });
  await second.retain(new Set(["u3"]), signal); // gone while nobody looked
  expect(calls).toEqual(["prepare", "unprepare", "prepare", "unprepare"]);
  stop.abort();
  await ended;
});

test("a driver is asked for all of a pod's claims at once; what one driver cannot take back keeps no other", async () => {
  const api = fakeApi();
  const calls: string[] = [];
  let answer: (uids: readonly string[]) => object = (uids) => Object.fromEntries(uids.map((uid) => [uid, { devices: [{ pool_name: "n1", device_name: uid }] }]));
  const driver = (name: string) => rpcServer<Methods>({
    name, socket: join(dataDir, `${name}.sock`), methods: serviceMethods(text, "k8s.io.kubelet.pkg.apis.dra.v1"), log: silentLog,
    calls: {
      "DRAPlugin/NodePrepareResources": ({ claims = [] }) => { calls.push(`${name} prepares ${claims.map((one) => one.name).join()}`); return { claims: answer(claims.map(({ uid = "" }) => uid)) } as never; },
      "DRAPlugin/NodeUnprepareResources": ({ claims = [] }) => {
        calls.push(`${name} unprepares ${claims.map((one) => one.name).join()}`);
        return { claims: Object.fromEntries(claims.map(({ uid = "" }) => [uid, name === "nic" ? { error: "busy" } : {}])) };
      },
    },
  });
  const manager = claimManager({ dataDir, nodeName: "n1", client: api.client, clock: systemClock, log: silentLog, events: { event: () => undefined }, metrics: metricsRegistry(), onRegistered: () => undefined, onHealth: () => undefined });
  const stop = new AbortController();
  const ended = runAll([driver("gpu"), driver("nic"), manager], stop.signal);
  await eventually(() => existsSync(join(dataDir, "nic.sock")), Boolean);
  for (const name of ["gpu", "nic"]) await manager.handler.register({ name, endpoint: join(dataDir, `${name}.sock`), versions: ["v1.DRAPlugin"] }, signal);
  const claim = (name: string, drivers: readonly string[]) => ({ apiVersion: "resource.k8s.io/v1", kind: "ResourceClaim", metadata: { name, namespace: "d" }, spec: {}, status: { allocation: { devices: { results: drivers.map((one) => ({ request: "r", driver: one, pool: "n1", device: "x" })) } }, reservedFor: [{ resource: "pods", name: "pod-u1", uid: "u1" }] } });
  for (const one of [claim("b", ["gpu"]), claim("a", ["gpu"]), claim("both", ["gpu", "nic"])]) await api.client.resource(RESOURCE_CLAIMS).create(one as unknown as NewObject<ResourceClaim>, { signal });
  const one = { metadata: { name: "pod-u1", namespace: "d", uid: "u1" }, spec: { resourceClaims: ["b", "a", "both", "b"].map((resourceClaimName, i) => ({ name: `c${i}`, resourceClaimName })), containers: [] } } as unknown as Pod; // one of them twice

  const all = answer;
  answer = (uids) => all(uids.slice(1));
  await expect(manager.prepare(one, { anew: false, signal })).rejects.toThrow("NodePrepareResources skipped 1 ResourceClaims");
  answer = () => ({ other: {} });
  await expect(manager.prepare(one, { anew: false, signal })).rejects.toThrow("NodePrepareResources returned result for unknown claim UID other");
  answer = all;
  calls.length = 0;
  await manager.prepare(one, { anew: false, signal });
  await manager.prepare(one, { anew: false, signal });
  expect(calls).toEqual(["gpu prepares b,a,both", "nic prepares both"]);
  calls.length = 0;
  for (let tries = 0; tries < 2; tries++) await expect(manager.release("u1", signal)).rejects.toThrow("NodeUnprepareResources failed for ResourceClaim both: busy");
  expect(calls).toEqual(["gpu unprepares b,a,both", "nic unprepares both", "gpu unprepares both", "nic unprepares both"]);
  stop.abort();
  await ended;
});

test("what a driver has published goes once the driver does not answer any more, whenever the API server takes it; not if it is back before", async () => {
  const wiped: string[] = [];
  let isAway = true;
  const client = { resource: () => ({ async deleteCollection({ fieldSelector }: { fieldSelector: string }) { if (isAway) throw new Error("no server"); wiped.push(fieldSelector); } }) } as unknown as Client;
  const clock = { ...systemClock, sleep: async (ms: number, quit: AbortSignal) => await systemClock.sleep(ms / 200, quit) };
  const drivers = draDrivers({ nodeName: "n1", client, clock, log: silentLog, onRegistered: () => undefined });
  const stop = new AbortController();
  const ended = runAll([drivers], stop.signal);
  const socket = join(dataDir, "dra.sock");
  const serve = (quit: AbortSignal) => runAll([rpcServer<Methods>({ name: "dra", socket, methods: serviceMethods(text, "k8s.io.kubelet.pkg.apis.dra.v1"), log: silentLog, calls: { "DRAPlugin/NodePrepareResources": () => ({}) } })], quit);
  const first = new AbortController();
  const served = serve(first.signal);
  await eventually(() => existsSync(socket), Boolean);
  await drivers.handler.register({ name: DRIVER, endpoint: socket, versions: ["v1.DRAPlugin"] }, signal);
  isAway = false;
  await eventually(() => wiped.length, (count) => count === 1);
  await Bun.sleep(300); // twice as long as a driver has
  expect(wiped).toEqual(["spec.nodeName=n1"]);
  first.abort();
  await served;
  await eventually(() => wiped.length, (count) => count === 2);
  expect(wiped[1]).toBe(`spec.nodeName=n1,spec.driver=${DRIVER}`);
  stop.abort();
  await ended;
});

test("a driver that watches its devices tells how they are, until it has been silent for too long", async () => {
  const socket = join(dataDir, "health.sock");
  const told: DeviceHealth[][] = [[
    { device: { pool_name: "n1", device_name: "gpu-0" }, health: "HEALTHY" },
    { device: { pool_name: "n1", device_name: "gpu-1" }, health: "UNHEALTHY", message: "x".repeat(2000), health_check_timeout_seconds: 3600 },
  ]];
  const server = rpcServer<HealthMethods>({
    name: "health", socket, methods: serviceMethods(healthText, "v1alpha1"), log: silentLog, calls: {},
    streams: { "DRAResourceHealth/NodeWatchResources": async function* () { for (const devices of told) yield { devices }; await new Promise(() => undefined); } },
  });
  let sinceMs = 0;
  let changes = 0;
  const healths = deviceHealths({ clock: { ...systemClock, uptimeMs: () => systemClock.uptimeMs() + sinceMs }, log: silentLog, onChange: () => void changes++ });
  const stop = new AbortController();
  const ended = runAll([server, { name: "follow", async run(quit, ready) { ready(); await healths.follow(DRIVER, socket, quit); } }], stop.signal);
  await eventually(() => changes, (count) => count === 1);
  const all = () => ["gpu-0", "gpu-1", "gpu-2"].map((device) => healths.of(DRIVER, "n1", device));
  expect(all()).toEqual([{ health: "Healthy" }, { health: "Unhealthy", message: `${"x".repeat(1021)}...` }, { health: "Unknown" }]);
  sinceMs = 31_000;
  expect(all().map(({ health }) => health)).toEqual(["Unknown", "Unhealthy", "Unknown"]);
  stop.abort();
  await ended;
});

test("a container's status tells of what it has of its claims, as its spec names them", () => {
  const prepared: PreparedClaim = { namespace: "d", name: "shared", uid: "c", drivers: [DRIVER], pods: ["u1"], devices: [
    { driver: DRIVER, pool: "n1", device: "gpu-0", requests: ["big"], cdiIds: ["example.com/gpu=0", "example.com/more=0"] }, { driver: DRIVER, pool: "n1", device: "gpu-1", requests: ["small/alt"], cdiIds: [] },
  ] };
  const health = (container: string) => claimHealth(pod("u1"), container, { preparedAs: (name) => (name === "shared" ? prepared : undefined), healthOf: ({ device }) => ({ health: device === "gpu-0" ? "Healthy" : "Unknown" }) });
  expect(health("all")).toEqual([{ name: "claim:gpu", resources: [{ resourceID: "example.com/gpu=0", health: "Healthy" }, { resourceID: `${DRIVER}/n1/gpu-1`, health: "Unknown" }] }]);
  expect(health("one")).toEqual([{ name: "claim:gpu/big", resources: [{ resourceID: "example.com/gpu=0", health: "Healthy" }] }]);
  expect(health("none")).toEqual([]);
});

test("of a pod one of whose claims has not been made yet, what it has of the others is told", () => {
  const half = { ...pod("u1"), spec: { resourceClaims: [{ name: "gpu", resourceClaimName: "shared" }, { name: "later", resourceClaimTemplateName: "t" }], containers: [{ name: "both", resources: { claims: [{ name: "gpu" }, { name: "later" }] } }] } } as unknown as Pod;
  const devices = [{ driver: DRIVER, pool: "n1", device: "gpu-0", requests: [], cdiIds: ["example.com/gpu=0"] }];
  const preparedAs = (name: string): PreparedClaim | undefined => (name === "shared" ? { namespace: "d", name, uid: "c", drivers: [DRIVER], pods: ["u1"], devices } : undefined);
  expect(claimHealth(half, "both", { preparedAs, healthOf: () => ({ health: "Healthy" }) })).toEqual([{ name: "claim:gpu", resources: [{ resourceID: "example.com/gpu=0", health: "Healthy" }] }]);
  expect(devicesOfContainer(half, "both", preparedAs).map((one) => one.devices)).toEqual([devices]);
  expect(() => claimsOfPod(half)).toThrow("pod claim later: ResourceClaim not created yet"); // it does not start
});

test("of a claim that a container asks for by parts it has each device once", () => {
  const device = (name: string, request: string) => ({ driver: DRIVER, pool: "n1", device: name, requests: [request], cdiIds: [] });
  const shared: PreparedClaim = { namespace: "d", name: "shared", uid: "c", drivers: [DRIVER], pods: ["u1"], devices: [device("a", "big"), device("b", "small/alt"), device("c", "other")] };
  const asking = (claims: object[]) => ({ ...pod("u1"), spec: { resourceClaims: [{ name: "gpu", resourceClaimName: "shared" }], containers: [{ name: "c", resources: { claims } }] } }) as unknown as Pod;
  const given = (...requests: (string | undefined)[]) => devicesOfContainer(asking(requests.map((request) => ({ name: "gpu", request }))), "c", () => shared).map(({ devices }) => devices.map((one) => one.device).join());
  expect([given("small", "big"), given("big", undefined), given("none"), given()]).toEqual([["a,b"], ["a,b,c"], [""], []]);
});

test("a claim that is said to have been made for a pod is the pod's", () => {
  const claim = (owner: string) => ({ metadata: { name: "made-1", namespace: "d", uid: "c", ownerReferences: [{ controller: true, uid: owner }] }, status: { reservedFor: [{ uid: "u1" }] } }) as unknown as ResourceClaim;
  expect(() => checkClaim(pod("u1"), claim("u2"), { isMade: true })).toThrow("ResourceClaim d/made-1 was not created for Pod d/pod-u1 (Pod is not owner)");
  expect(() => checkClaim(pod("u1"), claim("u1"), { isMade: true })).toThrow("ResourceClaim made-1: not allocated");
});
