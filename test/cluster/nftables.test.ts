/**
 * The rules of the service proxy in a real kernel, by the bundled nft: whatever a Service becomes is written as what differs, and a proxy that starts anew takes over the
 * table it finds. Where the machine has an nft of its own, that one can list what has come of it.
 */
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { nftProgram } from "../../node/os/exec-nft.ts";
import type { PortPlan } from "../../node/proxy/desired.ts";
import { LiveRuleset } from "../../node/proxy/nftables/live-ruleset.ts";
import { NftTable } from "../../node/proxy/nftables/nftables.ts";
import { renderPort } from "../../node/proxy/nftables/render.ts";
import { eventually, Host, switchDown } from "./host.ts";

let wall: Host;
let nftPath: string;
beforeAll(async () => {
  wall = await Host.up("wall", "172.30.0.41");
  await wall.start();
  nftPath = join(wall.dataDir, "agent/current/bin/nft");
  await eventually("the bundled tools are unpacked", async () => (await wall.run([nftPath, "--version"])).code === 0);
});
afterAll(async () => {
  await wall?.[Symbol.asyncDispose]();
  await switchDown();
});

const { signal } = new AbortController();
const CIDRS = { 4: ["10.42.0.0/16"], 6: ["fd42::/56"] } as const;
/** Everything a Service may become, and back. */
function lives(family: 4 | 6): PortPlan[] {
  const ip = (v4: string, v6: string): string => (family === 4 ? v4 : v6);
  const backend = (n: number, local = false) => ({ ip: ip(`10.42.0.${n}`, `fd42::${n}`), port: 8080, local });
  const base: PortPlan = {
    family, namespace: "default", service: "web", portName: "http", protocol: "tcp", clusterIp: ip("10.43.0.5", "fd43::5"), port: 80, nodePort: 0, externalIps: [], loadBalancerIps: [], sourceRanges: [], nodeInSourceRanges: false,
    affinitySeconds: 0, internalLocal: false, externalLocal: false, clusterBackends: [], localBackends: [], servingBackends: [], anyBackend: true,
  };
  const outside = { nodePort: 30080, externalIps: [ip("192.0.2.1", "2001:db8::1")], loadBalancerIps: [ip("192.0.2.2", "2001:db8::2")], sourceRanges: [ip("10.0.0.0/8", "fd00::/8")], nodeInSourceRanges: true };
  const kinds: Partial<PortPlan>[] = [{}, { ...outside, externalLocal: true }, { affinitySeconds: 60 }, { ...outside, affinitySeconds: 90 }, { protocol: "udp" }, { ...outside, protocol: "udp" }, { ...outside, protocol: "sctp" }];
  const crews = [[backend(1, true), backend(2)], [backend(1, true), backend(2), backend(3)], []];
  return kinds.flatMap((kind) => crews.map((crew): PortPlan => ({ ...base, ...kind, clusterBackends: crew, localBackends: crew.filter(({ local }) => local), anyBackend: crew.length > 0 })));
}

test.each([4, 6] as const)("IPv%i: each change is written as what differs; a new start takes over", async (family) => {
  const nft = nftProgram({
    path: nftPath, run: async (command, args, { stdin = "" } = {}) => {
      const { code, ...output } = await wall.run([command, ...args], { input: String(stdin) });
      return { exitCode: code, ...output };
    },
  });
  const trouble: string[] = [];
  const say = (message: string): void => void trouble.push(message);
  const log = { debug: say, info: say, warn: say, error: say, with: () => log };
  const open = (): NftTable => new NftTable({ nft, frame: { table: "rehearsal", family, clusterCidrs: CIDRS[family], serviceCidrs: [] }, log });
  const live = new LiveRuleset();
  let table = open();
  const plans = lives(family), outcomes: string[] = [];
  for (const [i, plan] of plans.entries()) {
    live.set("default/web", [renderPort(plan, CIDRS[family])]);
    if (i % 10 === 9) table = open();
    outcomes.push(await table.sync(live, signal, live.delta()));
    live.commit();
    if (i % 10 === 4 && Bun.which("nft") !== null) expect(await wall.ok(["nft", "list", "ruleset"])).toContain("rehearsal");
  }
  expect(outcomes).toEqual(plans.map((_, i) => (i === 0 || i % 10 === 9 ? "full" : "partial")));
  live.set("default/web", undefined);
  await table.sync(live, signal, live.delta());
  const left = await nft.names(family === 4 ? "ip" : "ip6", "rehearsal", {});
  expect([...left!.chains, ...left!.sets, ...left!.maps].filter((name) => name.includes("/"))).toEqual([]);
  expect(trouble).toEqual([]);
});
