import { expect, test } from "vitest";
import { systemClock as clock } from "../../core/lifecycle/clock.ts";
import { chainWatch } from "./chain-watch.ts";
import { attribute, findAttribute, joined, text, u32 } from "./netlink-message.ts";
import { NetlinkError, type NetlinkSocket } from "./netlink-socket.ts";

interface Chain { readonly policy: number; readonly rules: number; readonly packets: number }

test("chains whose policy or number of rules changes are told of, and one that is new in a table that is not our own; not what passes through them, and not more often than now and then", async () => {
  const there = new Map<string, Chain>([["FORWARD", { policy: 1, rules: 0, packets: 0 }], ["INPUT", { policy: 1, rules: 3, packets: 0 }]]);
  let told = 0, looks = 0, own = 0;
  const table = (name: string, chains: number): Uint8Array => joined([Uint8Array.of(2, 0, 0, 0), attribute(1, text(name)), attribute(3, u32(chains))]);
  const dump = (type: number): Uint8Array[] => { expect(type).toBe(0xa01); return [table("filter", there.size), table("coracle", own++)]; };
  const get = (type: number, payload: Uint8Array): Uint8Array[] => {
    expect([type, payload[0]]).toEqual([0xa04, 2]);
    const chain = there.get(Buffer.from(findAttribute(payload.subarray(4), 3)!).toString().replace("\0", ""));
    if (!chain) throw new NetlinkError("no such file or directory", 2);
    return [joined([Uint8Array.of(2, 0, 0, 0), attribute(5, u32(chain.policy)), attribute(6, u32(chain.rules)), attribute(8, u32(chain.packets))])];
  };
  const stop = new AbortController();
  const watch = chainWatch({ netlink: () => ({ get, dump, close: () => undefined }) as unknown as NetlinkSocket, isOwn: (name) => name === "coracle", clock: { ...clock, async *every(ms, signal) { for await (const tick of clock.every(ms / 1000, signal)) { yield tick; looks++; } } } });
  const life = watch.run(stop.signal, () => undefined);
  const toldAfter = async (change: () => void): Promise<number> => {
    told = 0;
    change();
    const so = looks;
    await expect.poll(() => looks).toBeGreaterThan(so + 15);
    return told;
  };
  const change = (name: string, to: Partial<Chain>) => () => void there.set(name, { ...there.get(name)!, ...to });
  const watchAll = () => watch.watchChains(["FORWARD", "INPUT"].map((name) => ({ family: "ip", table: "filter", name })), () => { told++; });
  expect(await toldAfter(() => undefined)).toBe(0);
  expect(await toldAfter(watchAll)).toBe(1);
  expect(await toldAfter(watchAll)).toBe(0);
  expect(await toldAfter(change("FORWARD", { policy: 0 }))).toBe(1); // iptables -P FORWARD DROP
  expect(await toldAfter(change("INPUT", { rules: 0 }))).toBe(1); // iptables -F
  expect(await toldAfter(change("INPUT", { packets: 7 }))).toBe(0);
  expect(await toldAfter(() => there.delete("INPUT"))).toBe(1);
  expect(await toldAfter(() => undefined)).toBe(0);
  expect(await toldAfter(() => there.set("OUTPUT", { policy: 0, rules: 0, packets: 0 }))).toBe(1); // there was none in that table
  told = 0;
  let rules = 0;
  const so = looks;
  await expect.poll(() => { change("FORWARD", { rules: ++rules })(); return looks; }, { interval: 1 }).toBeGreaterThan(so + 30);
  expect(told).toBeLessThanOrEqual(Math.ceil((looks - so) / 5) + 1);
  stop.abort();
  await life;
});
