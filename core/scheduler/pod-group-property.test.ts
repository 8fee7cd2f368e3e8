/** Gangs in worlds that change: of each either nobody is bound or enough are, nobody is bound where there is no room, and a gang that fits gets off. */
import { expect, test } from "vitest";
import type { Pod } from "../api/gen/core.v1.ts";
import type { PodGroup } from "../api/gen/scheduling.v1alpha2.ts";
import { keyOf, type ObjectKey } from "../api/meta/object-meta.ts";
import type { Client } from "../client/client.ts";
import type { Informers } from "../client/informer-factory.ts";
import { NODES, POD_GROUPS, PODS } from "../client/resources.ts";
import type { Clock } from "../lifecycle/clock.ts";
import { silentLog } from "../observe/log.ts";
import { metricsRegistry } from "../observe/metrics.ts";
import { node, pod } from "../../test/scheduling-cluster.ts";
import { seededRandom } from "../../test/simulator/seeded.ts";
import { type StaticInformer, staticInformer, stored } from "../../test/static-informer.ts";
import { defaultProfile } from "./plugins.ts";
import { scheduler } from "./scheduler.ts";

/** Time that stands still until it is told to go on. */
function stoppedClock(): Clock & { advance(ms: number): void } {
  let now = 0;
  const timers = new Set<{ readonly atMs: number; readonly work: () => void }>();
  return {
    nowMs: () => now, uptimeMs: () => now, sleep: async () => {}, every: () => { throw new Error("not used"); },
    after(ms, work) {
      const timer = { atMs: now + ms, work };
      timers.add(timer);
      return { cancel: () => void timers.delete(timer) };
    },
    advance(ms) {
      now += ms;
      for (const timer of [...timers].filter(({ atMs }) => atMs <= now)) if (timers.delete(timer)) timer.work();
    },
  };
}

/** All kinds a scheduler looks at. What it writes of pods happens: bindings and evictions. */
function world() {
  const kinds = new Map<string, StaticInformer<never>>();
  const of = (ref: { readonly plural: string }): StaticInformer<never> => {
    let known = kinds.get(ref.plural);
    if (!known) kinds.set(ref.plural, (known = staticInformer<never>()));
    return known;
  };
  const pods = of(PODS) as unknown as StaticInformer<Pod>, groups = of(POD_GROUPS) as unknown as StaticInformer<PodGroup>;
  const evicted: string[] = [];
  const client = {
    resource: (ref: { readonly plural: string }) => ({
      async createSubresource(name: Pod, subresource: string, { target }: { readonly target: { readonly name: string } }) {
        const now = pods.get(keyOf(name));
        if (subresource !== "binding" || !now || now.spec.nodeName) throw new Error("conflict");
        pods.put({ ...now, spec: { ...now.spec, nodeName: target.name } });
      },
      async delete(name: Pod) {
        evicted.push(name.metadata.name);
        const now = pods.get(keyOf(name));
        if (now) pods.remove(now as Pod);
      },
      async patch(name: Pod, _type: string, { status }: { readonly status: { readonly nominatedNodeName?: string | null; readonly conditions?: PodGroup["status"] } }) {
        if (ref.plural === "podgroups") return void groups.put({ ...(groups.get(keyOf(name)) as PodGroup), status: { conditions: status.conditions as never } });
        const now = pods.get(keyOf(name));
        if (now && status.nominatedNodeName !== undefined) pods.put({ ...now, status: { ...now.status, nominatedNodeName: status.nominatedNodeName ?? undefined } });
      },
    }),
  } as unknown as Client;
  return { pods, groups, nodes: of(NODES) as unknown as StaticInformer<ReturnType<typeof node>>, client, evicted, informers: { of, stop: () => {} } as unknown as Informers };
}

interface Gang { readonly name: string; readonly minCount: number; readonly size: number }

async function live(seed: number): Promise<{ readonly scheduled: number; readonly waiting: number; readonly evicted: number }> {
  const random = seededRandom(seed), clock = stoppedClock(), stop = new AbortController();
  const { pods, groups, nodes, client, informers, evicted } = world();
  const ended = scheduler({
    client, informers, clock, random, log: silentLog, metrics: metricsRegistry(), nodeName: "server", events: { reporter: () => ({ report: () => {} }) } as never,
    profiles: [defaultProfile(new Set(["GangScheduling"]))], gates: new Set(["GangScheduling", "GenericWorkload"]),
  }).run(stop.signal, () => {});
  const gangs = Array.from({ length: random.integer(1, 4) }, (_, i): Gang => { const size = random.integer(1, 5); return { name: `g${i}`, size, minCount: random.integer(1, size) }; });
  const cpus = new Map(Array.from({ length: random.integer(1, 4) }, (_, i) => [`n${i}`, random.integer(1, 4)]));
  const others = Array.from({ length: random.integer(0, 6) }, (_, i) => pod(`x${i}`, { cpu: "1", priority: random.pick([1, 5, 100]), schedulerName: "default-scheduler" }));
  const todo: (() => void)[] = [
    ...gangs.map(({ name, minCount }) => () => groups.put(stored<PodGroup>("scheduling.k8s.io/v1alpha2", "PodGroup", `default/${name}`, { spec: { schedulingPolicy: { gang: { minCount } } } }))),
    ...gangs.flatMap(({ name, size }) => Array.from({ length: size }, (_, i) => () => pods.put(pod(`${name}-${i}`, { cpu: "1", priority: 100, schedulerName: "default-scheduler", schedulingGroup: { podGroupName: name } })))),
    ...[...cpus].map(([name, cpu]) => () => nodes.put(node(name, { cpu: String(cpu) }))), ...others.map((one) => () => pods.put(one)),
  ];
  const of = ({ name }: Gang): Readonly<Pod>[] => [...pods.list()].filter(({ spec }) => spec.schedulingGroup?.podGroupName === name);
  const freeOf = (name: string): number => cpus.get(name)! - [...pods.list()].filter(({ spec }) => spec.nodeName === name).length;
  const check = (when: string): void => {
    for (const name of cpus.keys()) expect(freeOf(name), `seed ${seed}, ${when}: ${name}`).toBeGreaterThanOrEqual(0);
    for (const gang of gangs) {
      const bound = of(gang).filter(({ spec }) => spec.nodeName).length;
      expect(bound === 0 || bound >= gang.minCount, `seed ${seed}, ${when}: ${bound} of ${gang.name}, which needs ${gang.minCount}`).toBe(true);
    }
  };
  const settle = async (): Promise<void> => { for (let i = 0; i < 4; i++) await Bun.sleep(0); };
  while (todo.length > 0) {
    todo.splice(random.integer(0, todo.length - 1), 1)[0]!();
    if (random.chance(0.6)) await settle();
    if (random.chance(0.5)) clock.advance(random.integer(1, 3000));
    await settle();
    check(`${todo.length} to come`);
  }
  for (const one of others) if (random.chance(0.5) && pods.get(keyOf(one) as ObjectKey)) pods.remove(pods.get(keyOf(one)) as Pod);
  for (let i = 0; i < 12; i++) {
    clock.advance(4000);
    await settle();
    check(`after ${i}`);
  }
  const waiting = gangs.filter((gang) => of(gang).every(({ spec }) => !spec.nodeName));
  const free = [...cpus.keys()].reduce((sum, name) => sum + freeOf(name), 0);
  for (const { name, minCount } of waiting) expect(free, `seed ${seed}: ${name} would fit`).toBeLessThan(minCount);
  stop.abort();
  await ended;
  return { scheduled: gangs.length - waiting.length, waiting: waiting.length, evicted: evicted.length };
}

test("of a gang either nobody is bound or enough are, whatever else there is; and none waits that fits", async () => {
  const total = { scheduled: 0, waiting: 0, evicted: 0 };
  for (let seed = 1; seed <= 150; seed++) {
    const { scheduled, waiting, evicted } = await live(seed);
    total.scheduled += scheduled;
    total.waiting += waiting;
    total.evicted += evicted;
  }
  expect(total.scheduled).toBeGreaterThan(100);
  expect(total.waiting).toBeGreaterThan(30);
  expect(total.evicted).toBeGreaterThan(10);
});
