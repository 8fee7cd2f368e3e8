import { beforeEach, expect, test } from "vitest";
import { apiServer } from "../../../test/api-server.ts";
import type { AdmissionRequest } from "../../admission/plugin.ts";
import { statusError } from "../../api/meta/status-error.ts";
import { systemClock } from "../../lifecycle/clock.ts";

const MAPS = "/api/v1/namespaces/a/configmaps";
const PODS = "/api/v1/namespaces/a/pods";

let told: AdmissionRequest[] = [];
let refusing: (request: AdmissionRequest) => boolean = () => false;
beforeEach(() => {
  told = [];
  refusing = () => false;
});

const askedApi = async () => await apiServer({
  validate(request) {
    if (request.operation !== "DELETE") return;
    told.push(request);
    if (refusing(request)) throw statusError({ code: 403, reason: "Forbidden", message: "not this one" });
  },
});
const pod = (name: string, spec: object = {}) => ({ metadata: { name }, spec: { containers: [{ name: "c", image: "x" }], ...spec } });
const seen = () => told.map(({ oldObject, options }) => ({ grace: oldObject!.metadata.deletionGracePeriodSeconds, asked: options["gracePeriodSeconds"] }));

test("plug-ins are asked of a pod that goes at once when it is marked, and again when it goes", async () => {
  await using api = await askedApi();
  await api.ask("POST", PODS, { body: pod("nowhere") });
  await api.ask("DELETE", `${PODS}/nowhere`, { query: { dryRun: "All" } });
  expect(seen(), "a dry run takes the first step").toEqual([{ grace: undefined, asked: 0 }]);
  told = [];
  expect((await api.ask("DELETE", `${PODS}/nowhere`)).code).toBe(200);
  expect(seen()).toEqual([{ grace: undefined, asked: 0 }, { grace: 0, asked: 0 }]);
});

test("plug-ins are asked once of what has neither grace nor finalizers, and not of a pod whose time runs anyway", async () => {
  await using api = await askedApi();
  await api.ask("POST", MAPS, { body: { metadata: { name: "plain" } } });
  await api.ask("DELETE", `${MAPS}/plain`);
  await api.ask("POST", PODS, { body: pod("placed", { nodeName: "n" }) });
  await api.ask("DELETE", `${PODS}/placed`);
  expect(seen()).toEqual([{ grace: undefined, asked: undefined }, { grace: undefined, asked: 30 }]);
  told = [];
  for (const seconds of ["30", "60"]) expect((await api.ask("DELETE", `${PODS}/placed`, { query: { gracePeriodSeconds: seconds } })).code).toBe(200);
  expect(seen()).toEqual([]);
  await api.ask("DELETE", `${PODS}/placed`, { query: { gracePeriodSeconds: "0" } });
  expect(seen()).toEqual([{ grace: 30, asked: 0 }, { grace: 0, asked: 0 }]);
});

test("plug-ins are asked twice where a delete takes the last finalizer away", async () => {
  await using api = await askedApi();
  await api.ask("POST", MAPS, { body: { metadata: { name: "fore" } } });
  await api.ask("DELETE", `${MAPS}/fore`, { query: { propagationPolicy: "Foreground" } });
  expect(told).toHaveLength(1);
  await api.ask("DELETE", `${MAPS}/fore`);
  expect(told, "held as it is").toHaveLength(2);
  await api.ask("DELETE", `${MAPS}/fore`, { query: { propagationPolicy: "Background" } });
  expect(told).toHaveLength(4);
  expect((await api.ask("GET", `${MAPS}/fore`)).code).toBe(404);
});

test("plug-ins are not asked again of a namespace that is still being emptied", async () => {
  await using api = await askedApi();
  await api.ask("POST", "/api/v1/namespaces", { body: { metadata: { name: "emptied" } } });
  await api.ask("DELETE", "/api/v1/namespaces/emptied");
  await api.ask("DELETE", "/api/v1/namespaces/emptied", { query: { propagationPolicy: "Orphan" } });
  expect(told).toHaveLength(1);
});

test("who is refused at the second step has done the first", async () => {
  await using api = await askedApi();
  await api.ask("POST", PODS, { body: pod("kept") });
  refusing = ({ oldObject }) => oldObject?.metadata.deletionTimestamp !== undefined;
  expect((await api.ask("DELETE", `${PODS}/kept`)).code).toBe(403);
  const { body } = await api.ask("GET", `${PODS}/kept`);
  expect(body.metadata).toMatchObject({ deletionTimestamp: expect.any(String), deletionGracePeriodSeconds: 0 });
  refusing = () => false;
  expect((await api.ask("DELETE", `${PODS}/kept`)).code).toBe(200);
  expect((await api.ask("GET", `${PODS}/kept`)).code).toBe(404);
});

test("a pod that goes at once is seen marked before it is gone", async () => {
  await using api = await askedApi();
  const { body: { metadata } } = await api.ask("POST", PODS, { body: pod("unplaced") });
  const watched = api.events(PODS, 3, { query: { resourceVersion: metadata.resourceVersion } });
  const { uid, resourceVersion } = metadata;
  expect((await api.ask("DELETE", `${PODS}/unplaced`, { body: { preconditions: { uid, resourceVersion } } })).code).toBe(200);
  await api.ask("POST", PODS, { body: pod("unplaced") });
  const events = await watched;
  expect(events.map(({ type, object }) => [type, object.metadata.deletionGracePeriodSeconds])).toEqual([["MODIFIED", 0], ["DELETED", 0], ["ADDED", undefined]]);
  expect(events[0].object.metadata.deletionTimestamp).toBe(events[1].object.metadata.deletionTimestamp);
  expect(Number(events[1].object.metadata.resourceVersion)).toBeGreaterThan(Number(events[0].object.metadata.resourceVersion));
});

test("a pod that somebody else removes between its mark and its end is gone for whoever marked it, too", async () => {
  let api: Awaited<ReturnType<typeof apiServer>>, asked = 0;
  await using server = api = await apiServer({
    async validate({ operation }) {
      if (operation === "DELETE" && ++asked === 2) expect((await api.ask("DELETE", `${PODS}/raced`)).code).toBe(200);
    },
  });
  await server.ask("POST", PODS, { body: pod("raced") });
  expect((await server.ask("DELETE", `${PODS}/raced`)).code).toBe(200);
  expect((await server.ask("GET", `${PODS}/raced`)).code).toBe(404);
});

test("of a collection plug-ins are told what was asked for, whatever grace its pods have", async () => {
  await using api = await askedApi();
  await api.ask("POST", PODS, { body: pod("one") });
  await api.ask("DELETE", PODS);
  expect(seen()).toEqual([{ grace: undefined, asked: undefined }, { grace: 0, asked: undefined }]);
});

test("plug-ins are shown the options of a delete as Go has them, and less than no grace as a second", async () => {
  await using api = await askedApi();
  const { body: { metadata: { uid } } } = await api.ask("POST", MAPS, { body: { metadata: { name: "plain" } } });
  await api.ask("DELETE", `${MAPS}/plain`, { body: { dryRun: ["All"], propagationPolicy: "Background", preconditions: { uid }, gracePeriodSeconds: -3 } });
  expect(told.map(({ options }) => JSON.stringify(options))).toEqual([`{"kind":"DeleteOptions","apiVersion":"meta.k8s.io/v1","gracePeriodSeconds":1,"preconditions":{"uid":"${uid}"},"propagationPolicy":"Background","dryRun":["All"]}`]);
});

test("a generation that a client has given an object of a kind without one grows when it is being deleted", async () => {
  await using api = await apiServer();
  const path = "/api/v1/persistentvolumes";
  await api.ask("POST", path, { body: { metadata: { name: "g", generation: 7, finalizers: ["a.b/c"] }, spec: { capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"], hostPath: { path: "/p" } } } });
  expect((await api.ask("DELETE", `${path}/g`)).body.metadata.generation).toBe(8);
});

test("a query without a body has preconditions, too", async () => {
  await using api = await askedApi();
  const { body: { metadata } } = await api.ask("POST", MAPS, { body: { metadata: { name: "kept" } } }) as { body: { metadata: { uid: string; resourceVersion: string } } };
  const remove = async (query: Record<string, string>, at = `${MAPS}/kept`) => (await api.ask("DELETE", at, { query })).code;
  expect([await remove({ uid: "another" }), await remove({ resourceVersion: "1" }), await remove({ resourceVersion: "0" }, MAPS)]).toEqual([409, 409, 409]);
  expect(await remove({ uid: metadata.uid, resourceVersion: metadata.resourceVersion })).toBe(200);
});

test("finalizers that a delete has nothing to change about stay in their order", async () => {
  await using api = await askedApi();
  await api.ask("POST", MAPS, { body: { metadata: { name: "ordered", finalizers: ["orphan", "a.b/c"] } } });
  const { body } = await api.ask("DELETE", `${MAPS}/ordered`);
  expect(body.metadata.finalizers).toEqual(["orphan", "a.b/c"]);
});

test("of a collection it is told what is wrong with the query, then with the options, then with where a list goes on", async () => {
  await using api = await askedApi();
  const wrong = { kind: "DeleteOptions", apiVersion: "v1", propagationPolicy: "Never" };
  const told = async (query: Record<string, string>, body?: object) => (await api.ask("DELETE", MAPS, { query, body })).body.message as string;
  expect(await told({ limit: "x", continue: "abc" }, wrong)).toContain("strconv.ParseInt");
  expect(await told({ continue: "abc" }, wrong)).toContain("propagationPolicy");
  expect(await told({ continue: "abc" })).toContain("invalid continue token");
});

test("of a namespace, dependents that are not to be orphaned are waited for", async () => {
  await using api = await apiServer();
  const finalizers = async (orphanDependents: boolean): Promise<unknown> => {
    const name = `n-${String(orphanDependents)}`;
    await api.ask("POST", "/api/v1/namespaces", { body: { metadata: { name } } });
    return (await api.ask("DELETE", `/api/v1/namespaces/${name}`, { body: { orphanDependents } })).body.metadata.finalizers;
  };
  expect([await finalizers(true), await finalizers(false)]).toEqual([["orphan"], ["foregroundDeletion"]]);
});

test.each([["events are deleted", "/api/v1/namespaces/a/events", {}], ["a deletion is tried", MAPS, { dryRun: "All" }]] as const)("while many %s others have their turn", async (_, path, query) => {
  let upMs = 0;
  await using api = await apiServer({ clock: { ...systemClock, uptimeMs: () => ++upMs } });
  for (let i = 0; i < 200; i++) await api.ask("POST", path, { body: { metadata: { name: `e${i}`, namespace: "a" }, involvedObject: { namespace: "a" }, reason: "R" } });
  let turns = 0, isOver = false;
  const turn = (): void => { turns++; if (!isOver) setImmediate(turn); };
  setImmediate(turn);
  expect((await api.ask("DELETE", path, { query })).code).toBe(200);
  isOver = true;
  expect(turns).toBeGreaterThan(5);
});
