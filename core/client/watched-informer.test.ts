import { expect, test, vi } from "vitest";
import type { Pod } from "../api/gen/core.v1.ts";
import { keyOf, type ObjectKey } from "../api/meta/object-meta.ts";
import { resourceVersionTooLarge, resourceVersionTooOld } from "../api/meta/status-error.ts";
import { systemClock } from "../lifecycle/clock.ts";
import { silentLog } from "../observe/log.ts";
import { clientOver } from "./resource-client.ts";
import { PODS } from "./resources.ts";
import type { ApiWatchEvent, Transport } from "./transport.ts";
import { watchedInformer } from "./watched-informer.ts";

const fast = { ...systemClock, sleep: (_: number, signal: AbortSignal) => systemClock.sleep(1, signal) };
const random = { next: () => 0, uuid: () => "u", bytes: (n: number) => new Uint8Array(n) };

function pod(name: string, resourceVersion: number, more: Partial<Pod["metadata"]> = {}): Pod {
  return { apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "default", uid: `uid-${name}`, resourceVersion: String(resourceVersion), creationTimestamp: "", ...more }, spec: { containers: [] } };
}

/** Answers each list and each watch with the next of what the test has laid out; a watch stays open once its events are told. */
function script(lists: ({ revision: number; items: Pod[] } | Error)[], watches: (ApiWatchEvent | Error)[][]) {
  const requests: string[] = [];
  const transport: Transport = {
    async call({ query }) {
      requests.push(`list ${query?.["resourceVersion"] ?? "newest"}`);
      const next = lists.shift()!;
      if (next instanceof Error) throw next;
      const { revision, items } = next;
      return { kind: "PodList", apiVersion: "v1", metadata: { resourceVersion: String(revision) }, items };
    },
    async *watch({ query, signal }) {
      requests.push(`watch ${query?.["resourceVersion"]}`);
      const events = watches.shift() ?? [];
      for (const event of events) { if (event instanceof Error) throw event; yield event; }
      if (watches.length > 0) return;
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    },
  };
  return { requests, pods: clientOver(transport).resource(PODS) };
}

async function running(pods: ReturnType<typeof script>["pods"], work: (informer: ReturnType<typeof watchedInformer<Pod>>, log: string[]) => Promise<void>) {
  const stop = new AbortController();
  const informer = watchedInformer(pods, { clock: fast, random, log: silentLog });
  const log: string[] = [];
  informer.onChange(({ object, old, deleted }) => void log.push(`${deleted ? "delete" : old ? "update" : "add"} ${object.metadata.name}@${object.metadata.resourceVersion}`));
  const life = informer.run(stop.signal, () => {});
  try {
    await informer.whenSynced(stop.signal);
    await work(informer, log);
  } finally {
    stop.abort();
    await life;
  }
}

test("a server that has lost its last versions is believed: what it has now is listed and watched", async () => {
  const { pods, requests } = script(
    [{ revision: 90, items: [pod("a", 1), pod("lost", 90)] }, resourceVersionTooLarge(90, 50), { revision: 50, items: [pod("a", 1)] }],
    [[resourceVersionTooOld(90, 50)], [{ type: "ADDED", object: pod("b", 51) }], []],
  );
  await running(pods, async (informer, log) => {
    await informer.caughtUp([pod("b", 91)], AbortSignal.timeout(200)); // never: as long as it takes
    await expect.poll(() => requests.length).toBe(6);
    expect(log).toEqual(["add a@1", "add lost@90", "delete lost@90", "add b@51"]);
    expect(requests).toEqual(["list 0", "watch 90", "list 90", "list newest", "watch 50", "watch 51"]);
  });
});

test("after 410 the list is read again and what was missed is told as changes", async () => {
  const { pods, requests } = script(
    [{ revision: 5, items: [pod("a", 1), pod("b", 2), pod("c", 3)] }, { revision: 20, items: [pod("a", 1), pod("b", 18), pod("c", 19, { uid: "another" }), pod("d", 20)] }],
    [[{ type: "MODIFIED", object: pod("b", 7) }, { type: "BOOKMARK", object: pod("", 9) }, resourceVersionTooOld(9, 15)], []],
  );
  await running(pods, async (informer, log) => {
    await informer.caughtUp([pod("d", 20)], AbortSignal.timeout(60_000));
    expect(log).toEqual(["add a@1", "add b@2", "add c@3", "update b@7", "update b@18", "delete c@3", "add c@19", "add d@20"]);
    await Bun.sleep(5);
    expect(requests).toEqual(["list 0", "watch 5", "list 9", "watch 20"]);
  });
});

test("a watch that ends is taken up again where it was, without a list", async () => {
  const { pods, requests } = script([{ revision: 5, items: [] }], [[{ type: "ADDED", object: pod("a", 6) }], [{ type: "DELETED", object: pod("a", 8) }], []]);
  await running(pods, async (informer, log) => {
    await informer.caughtUp([pod("a", 8)], AbortSignal.timeout(60_000));
    expect(log).toEqual(["add a@6", "delete a@8"]);
    expect([...informer.list()]).toEqual([]);
    await Bun.sleep(5);
    expect(requests).toEqual(["list 0", "watch 5", "watch 6", "watch 8"]);
  });
});

test("indexes follow changes", async () => {
  const owned = { ownerReferences: [{ apiVersion: "apps/v1", kind: "ReplicaSet", name: "rs", uid: "rs-1", controller: true }] };
  const { pods } = script([{ revision: 5, items: [pod("a", 1, owned), pod("b", 2, { namespace: "other" })] }], [[{ type: "MODIFIED", object: pod("a", 6) }, { type: "ADDED", object: pod("c", 7, owned) }]]);
  await running(pods, async (informer) => {
    const names = (objects: Iterable<Pod>) => [...objects].map(({ metadata }) => metadata.name);
    const byName = { name: "first letter", valuesOf: (object: Pod) => [object.metadata.name[0]!] };
    await informer.caughtUp([pod("c", 7)], AbortSignal.timeout(60_000));
    expect(names(informer.ownedBy("rs-1"))).toEqual(["c"]);
    expect(names(informer.inNamespace("other"))).toEqual(["b"]);
    expect(names(informer.by(byName, "a"))).toEqual(["a"]);
    expect(informer.get("default/a" as ObjectKey)).toEqual(pod("a", 6));
  });
});

test("what an index finds is as it is now, also where its values come from parts that have not changed; of those it is not asked again", async () => {
  const asked: string[] = [];
  const byApp = {
    name: "app", partsOf: ({ metadata }: Readonly<Pod>) => [metadata.labels],
    valuesOf: ({ metadata: { name, labels = {}, resourceVersion } }: Readonly<Pod>) => { asked.push(`${name}@${resourceVersion}`); return Object.values(labels); },
  };
  const labels = { app: "a" }, changed = { app: "b" };
  const { pods } = script([{ revision: 2, items: [pod("a", 1, { labels }), pod("b", 2, { labels })] }], [
    [{ type: "MODIFIED", object: pod("a", 3, { labels }) }, { type: "MODIFIED", object: pod("b", 4, { labels: changed }) }, { type: "DELETED", object: pod("a", 5, { labels }) }, { type: "ADDED", object: pod("a", 6, { labels: changed }) }],
  ]);
  await running(pods, async (informer, log) => {
    const seen: string[][] = [];
    const found = (app: string): string[] => informer.by(byApp, app).map(({ metadata }) => `${metadata.name}@${metadata.resourceVersion}`);
    informer.onChange(() => void seen.push([found("a").join(), found("b").join()]));
    await expect.poll(() => log.at(-1)).toBe("add a@6");
    expect(seen).toEqual([["a@1,b@2", ""], ["a@1,b@2", ""], ["a@3,b@2", ""], ["a@3", "b@4"], ["", "b@4"], ["", "b@4,a@6"]]);
    expect(asked).toEqual(["a@1", "b@2", "b@4", "b@2", "a@3", "a@6"]);
  });
});

test("of a namespace no more is looked at than is asked for", async () => {
  const { pods } = script([{ revision: 9, items: Array.from({ length: 1000 }, (_, i) => pod(`p${i}`, 1)) }], [[]]);
  await running(pods, async (informer) => {
    expect([[...informer.inNamespace("default")].length, [...informer.inNamespace("nobody")].length]).toEqual([1000, 0]);
    const gets = vi.spyOn(Map.prototype, "get"), all = informer.inNamespace("default"), first = all[Symbol.iterator]().next(), looked = gets.mock.calls.length;
    gets.mockRestore();
    expect([(first.value as Pod).metadata.name, looked < 50, [...all].length, [...all].length]).toEqual(["p0", true, 1000, 1000]);
  });
});

test("sawDeleted waits for the mark, or the end, of exactly that object", async () => {
  const gate = Promise.withResolvers<void>();
  const { pods } = script([{ revision: 5, items: [pod("a", 1), pod("b", 2)] }], []);
  const watch = pods.watch.bind(pods);
  const gated: typeof pods = {
    ...pods,
    async *watch(query, call) {
      await gate.promise;
      yield { type: "MODIFIED", object: pod("a", 6, { deletionTimestamp: "2026-01-01T00:00:00Z" }) };
      yield { type: "DELETED", object: pod("b", 7) };
      yield* watch(query, call);
    },
  };
  await running(gated, async (informer) => {
    let seen = false;
    const waiting = informer.sawDeleted([pod("a", 1), pod("b", 2)], AbortSignal.timeout(60_000)).then(() => { seen = true; });
    await Bun.sleep(5);
    expect(seen).toBe(false);
    gate.resolve();
    await waiting;
    expect(informer.get(keyOf(pod("b", 2)))).toBeUndefined();
  });
});
