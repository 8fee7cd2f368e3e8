import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { oldNftDiesOf } from "../../test/old-nft.ts";
import { systemClock as clock } from "../../core/lifecycle/clock.ts";
import { silentLog } from "../../core/observe/log.ts";
import type { Cri } from "../cri/client.ts";
import type { CniRecord } from "./cni-records.ts";
import { differenceText, noSourceGuard, portChains, sourceGuard, wholeText } from "./source-guard.ts";

function record(port: string, mac: string, ...ips: string[]): CniRecord {
  const interfaces = [{ name: "cni0", mac: "0a:58:0a:2a:00:01" }, { name: port, mac: "62:1a:b4:02:e7:9e" }, { name: "eth0", mac, sandbox: "/run/netns/one" }];
  return { kind: "cniCacheV1", networkName: "coracle", ifName: "eth0", result: { interfaces, ips: ips.map((ip) => ({ address: ip })) } };
}
const ports = (script: string): (string | undefined)[] => [...script.matchAll(/add element .*"(.*)"/g)].map(([, port]) => port).toSorted();
const MAC = "e6:7c:d2:be:86:d0", OTHER = "ae:00:fc:4f:9b:af";

test("what a pod sends comes from its own MAC address and addresses, is IP or ARP, tells of no addresses but its own, and of no router", () => {
  const chains = portChains([record("veth1", MAC, "10.42.0.4/24"), record("veth2", OTHER, "10.42.0.5/24", "fd42::5/64"), { kind: "cniCacheV1", result: {} }]);
  expect([...chains.keys()]).toEqual(["veth1", "veth2"]);
  expect(chains.get("veth1")!.map((rule) => rule.replace(" goto refused", ""))).toEqual([
    `ether saddr != ${MAC}`, "ether type != ip ether type != arp ether type != ip6", "ip saddr != 10.42.0.4", "arp saddr ip != 0.0.0.0 arp saddr ip != 10.42.0.4",
    "ip6 saddr != :: ip6 saddr != fe80::/10", "icmpv6 type { nd-router-advert, nd-redirect }", "icmpv6 type nd-neighbor-advert @th,64,10 != 1018",
  ]);
  expect(chains.get("veth2")!.slice(4).map((rule) => rule.replace(" goto refused", ""))).toEqual([
    "ip6 saddr != :: ip6 saddr != fe80::/10 ip6 saddr != fd42::5", "icmpv6 type { nd-router-advert, nd-redirect }",
    "icmpv6 type nd-neighbor-advert @th,64,10 != 1018 @th,64,128 != 0xfd420000000000000000000000000005",
  ]);
  expect(portChains([record("veth3", MAC, "fd42::6/64")]).get("veth3")![2]).toBe("ether type ip goto refused");
  expect(oldNftDiesOf(wholeText(chains))).toEqual([]);
});

test("a pod that comes, goes or has another interface changes its own chain alone", () => {
  const one = portChains([record("veth1", MAC, "10.42.0.4/24")]), both = portChains([record("veth1", MAC, "10.42.0.4/24"), record("veth2", OTHER, "10.42.0.5/24")]);
  expect(differenceText(both, both)).toBe("");
  expect(differenceText(one, both)).toBe(wholeText(both).slice(wholeText(one).length));
  const at = "bridge coracle-sources";
  expect(differenceText(both, one)).toBe(`delete element ${at} ports { "veth2" }\nflush chain ${at} veth2\ndelete chain ${at} veth2\n`);
  const moved = differenceText(one, portChains([record("veth1", OTHER, "10.42.0.4/24")])).split("\n");
  expect([moved[0], moved.at(-2)]).toEqual([`delete element ${at} ports { "veth1" }`, `add element ${at} ports { "veth1" : jump veth1 }`]);
});

test("a sandbox is guarded once it is ready; the table is written again when it is gone, and where the kernel cannot, that is said once", async () => {
  const resultsDir = mkdtempSync(join(tmpdir(), "cni-results-"));
  try {
    const scripts: string[] = [], warned: string[] = [];
    let able = true, flushed = false;
    const nft = { async apply(script: string) { if (!able) throw new Error("Operation not supported"); scripts.push(script); flushed = false; }, chain: async () => (flushed ? undefined : "iifname vmap @ports") };
    const note = (id: string, what: CniRecord): void => writeFileSync(join(resultsDir, `coracle-${id}-eth0`), JSON.stringify(what));
    const runtime = { call: async (_: string, { id }: { id: string }) => { note(id, record(`veth${id}`, MAC, `10.42.0.${id}/24`)); return { pod_sandbox_id: id }; } };
    const quick = { ...clock, every: (ms: number, signal: AbortSignal) => clock.every(ms / 3_000, signal) };
    note("1", record("veth1", OTHER, "10.42.0.1/24")); // of before
    writeFileSync(join(resultsDir, "coracle-9-eth0"), "{"); // being written
    const { cri, keeper, renew } = sourceGuard(runtime as unknown as Cri, { nft, clock: quick, resultsDir, log: { ...silentLog, warn: (text: string) => void warned.push(text) } as typeof silentLog });
    const run = (id: string): Promise<unknown> => cri.call("RuntimeService/RunPodSandbox", { id } as never);
    await run("2");
    expect(scripts.map((script) => [script.includes("delete table"), ports(script)])).toEqual([[true, ["veth1", "veth2"]]]);
    await run("3");
    expect(scripts.at(-1)).toMatch(/^add chain bridge coracle-sources veth3\n/);
    await cri.call("RuntimeService/StopContainer", { id: "4" } as never);
    expect(scripts).toHaveLength(2);
    note("3", record("veth8", MAC, "10.42.0.3/24"));
    await renew(new AbortController().signal);
    expect(scripts.at(-1)).toMatch(/^delete element .* "veth3" [\s\S]*"veth8" : jump veth8 \}\n$/);
    note("3", record("veth3", MAC, "10.42.0.3/24"));

    able = false;
    await run("5");
    await run("6");
    expect(warned).toEqual(["pods cannot be kept from sending as others"]);
    able = true;
    const stop = new AbortController();
    const life = keeper.run(stop.signal, () => undefined);
    await expect.poll(() => scripts.length).toBe(4);
    expect(ports(scripts[3]!)).toEqual(["veth1", "veth2", "veth3", "veth4", "veth5", "veth6"]);
    note("6", record("veth7", MAC, "10.42.0.6/24")); // its interface was made again
    await expect.poll(() => scripts.at(-1)).toMatch(/^delete element .* "veth6" [\s\S]*"veth7" : jump veth7 \}\n$/);
    flushed = true;
    await expect.poll(() => scripts.at(-1)).toContain("delete table");
    rmSync(join(resultsDir, "coracle-6-eth0"));
    await expect.poll(() => scripts.at(-1)).toMatch(/^delete element .* "veth7" /);
    stop.abort();
    await life;
  } finally {
    rmSync(resultsDir, { recursive: true });
  }
});

test("where policies are switched off nobody is kept from anything, and what was there goes", async () => {
  const scripts: string[] = [], stop = new AbortController();
  await noSourceGuard({ nft: { apply: async (text) => void scripts.push(text), chain: async () => undefined }, log: silentLog }).run(stop.signal, () => stop.abort());
  expect(scripts).toEqual(["add table bridge coracle-sources\ndelete table bridge coracle-sources\n"]);
});
