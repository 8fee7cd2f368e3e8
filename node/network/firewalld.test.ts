import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { silentLog } from "../../core/observe/log.ts";
import type { FilterChain } from "../os/exec-nft.ts";
import { firewalldPassages, zonesBefore, zonesOf } from "./firewalld.ts";
import type { Passage, TellFirewall } from "./forward.ts";

const { signal } = new AbortController();
const rule = (address: string): string => `rule family="ipv${address.includes(":") ? 6 : 4}" source address="${address}" port port="8472" protocol="udp" accept`;

test("firewalld is told what is the cluster's once, of other nodes what has changed, and all of it when its table is another one", async () => {
  const dir = mkdtempSync(join(tmpdir(), "firewalld-"));
  try {
    const noteFile = join(dir, "network/firewalld"), calls: string[][] = [];
    let refusal = "";
    const start = (): TellFirewall => firewalldPassages({
      noteFile, log: silentLog,
      exec: async (command, args, { timeoutMs } = {}) => {
        expect(timeoutMs).toBeLessThan(30_000); // what else the network wants waits for it
        calls.push([command, ...args]);
        if (args[0] === "--get-active-zones") return { exitCode: 0, stdout: `docker\n  interfaces: docker0\n${zone} (default)\n  interfaces: eth0\ntrusted\n  sources: 10.42.0.0/16\n`, stderr: "" };
        if (args[0] === "--get-default-zone") return { exitCode: 0, stdout: "public\n", stderr: "" };
        return { exitCode: refusal === "" ? 0 : 252, stdout: "", stderr: refusal };
      },
    });
    let tell = start();
    let zone = "public";
    const chain = (tableHandle: number, table = "firewalld"): FilterChain => ({ family: "inet", table, tableHandle, name: "filter_INPUT", hook: "input", rest: "drop", handedTo: [`filter_IN_${zone}`], commented: [] });
    const passage = (...peers: string[]): Passage => ({ clusterCidrs: ["10.42.0.0/16", "fd42::/56"], ingressPorts: ["10080"], tunnel: { udpPort: 8472, peers } });
    const said = async (chains: readonly FilterChain[], of: Passage): Promise<string[][]> => {
      await tell(chains, of, signal);
      return calls.splice(0).filter(([, option]) => option!.startsWith("--zone")).map(([command, ...args]) => [command!, ...args]);
    };
    const trusted = ["firewall-cmd", "--zone=trusted", "--add-source=10.42.0.0/16", "--add-source=fd42::/56"];

    expect(await said([chain(1, "filter")], passage("192.168.0.2"))).toEqual([]); // another firewall
    expect(await said([chain(1, "filter"), chain(7)], passage("192.168.0.2", "fd00::2"))).toEqual([
      trusted, ...["docker", "public"].map((zone) => ["firewall-cmd", `--zone=${zone}`, `--add-rich-rule=${rule("192.168.0.2")}`, `--add-rich-rule=${rule("fd00::2")}`]),
    ]);
    expect(readFileSync(noteFile, "utf8").split("\n").slice(0, 3)).toEqual(["trusted\t--remove-source=10.42.0.0/16", "trusted\t--remove-source=fd42::/56", `docker\t--remove-rich-rule=${rule("192.168.0.2")}`]);
    expect(await said([chain(7)], passage("192.168.0.2", "fd00::2"))).toEqual([]);
    expect((await said([chain(7)], passage("192.168.0.2"))).slice(-2)).toEqual(["docker", "public"].map((zone) => ["firewall-cmd", `--zone=${zone}`, `--remove-rich-rule=${rule("fd00::2")}`]));
    zone = "home"; // eth0 was put there
    expect((await said([chain(7)], passage("192.168.0.2"))).slice(1)).toEqual(["docker", "home", "public"].map((one) => ["firewall-cmd", `--zone=${one}`, `--add-rich-rule=${rule("192.168.0.2")}`]));
    expect(await said([chain(7)], passage("192.168.0.2"))).toEqual([]);
    zone = "public";
    expect(await said([chain(9)], passage())).toEqual([trusted]); // reloaded: it has forgotten all

    await said([chain(10)], passage("192.168.0.3"));
    tell = start(); // and the node has gone meanwhile
    const back = ["docker", "public"].map((zone) => ["firewall-cmd", `--zone=${zone}`, `--remove-rich-rule=${rule("192.168.0.3")}`]);
    expect(await said([chain(10)], passage())).toEqual([trusted, ...back]);
    expect(readFileSync(noteFile, "utf8")).toBe("trusted\t--remove-source=10.42.0.0/16\ntrusted\t--remove-source=fd42::/56\n");

    refusal = "FirewallD is not running";
    await expect(said([chain(11)], passage())).rejects.toThrow("firewall-cmd --zone=trusted --add-source=10.42.0.0/16 --add-source=fd42::/56: FirewallD is not running");
    refusal = "";
    calls.length = 0;
    expect(await said([chain(11)], passage())).toEqual([trusted]); // tried again
  } finally {
    rmSync(dir, { recursive: true });
  }
});

test("zones are those in use and the one for all else, whichever way they are told", () => {
  expect(zonesOf("internal\n  interfaces: eth1\n  sources: 10.0.0.0/8\n", "public\n")).toEqual(["internal", "public"]);
  expect(zonesOf("", "trusted\n")).toEqual([]);
});

test("whoever has given another zone pods' addresses is told: firewalld goes by the names of zones", () => {
  const active = "home\n  sources: 192.168.0.0/16\ninternal\n  interfaces: eth1\n  sources: 172.16.0.0/12 10.0.0.0/8\npublic (default)\n  interfaces: eth0\ntrusted\n  sources: 10.42.0.0/16\nwork\n  sources: 10.0.0.0/8\n";
  expect(zonesBefore(active, ["10.42.0.0/16", "fd42::/56"])).toEqual(["internal"]);
  expect(zonesBefore("public (default)\ndmz\n  sources: fd00::/8 ipset:lan 00:11:22:33:44:55\n", ["10.42.0.0/16", "fd42::/56"])).toEqual(["dmz"]);
  expect(zonesBefore("", ["10.42.0.0/16"])).toEqual([]);
});
