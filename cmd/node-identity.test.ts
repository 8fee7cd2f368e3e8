import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { silentLog } from "../core/observe/log.ts";
import { isAtGivenAddress, rememberName, thisNode } from "./node-identity.ts";

test("a node keeps its name when its machine gets another one, unless it is given one", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "node-identity-"));
  const told: string[] = [];
  const log = { ...silentLog, info: (message: string) => void told.push(message) };
  const refused = async (machine: string, nodeName?: string): Promise<string> => (await thisNode({ nodeName, nodeIp: [], dataDir }, { log, machine })).name;
  const name = async (machine: string, nodeName?: string): Promise<string> => {
    const node = await thisNode({ nodeName, nodeIp: [], dataDir }, { log, machine });
    await rememberName({ dataDir }, node);
    return node.name;
  };
  expect(await refused("typo")).toBe("typo"); // it never became a node
  expect(await name("Shed")).toBe("shed");
  expect(told).toEqual([]);
  expect(await name("raspberrypi")).toBe("shed");
  expect(told).toEqual(["this machine has another name than its node, which keeps its own; --node-name makes it another node"]);
  expect(await name("raspberrypi", "barn")).toBe("barn");
  expect(await name("raspberrypi")).toBe("barn");
  expect(readFileSync(join(dataDir, "node-name"), "utf8")).toBe("barn\n");
  for (const text of ["", "ba", "\0\0\0\0\0"]) { // as a broken disk leaves it
    writeFileSync(join(dataDir, "node-name"), text);
    expect(await name("raspberrypi")).toBe("barn");
  }
  writeFileSync(join(dataDir, "node-name"), "loft\n"); // by somebody
  expect(await name("raspberrypi")).toBe("loft");
  await expect(name("not_a_name", "also_not")).rejects.toThrow('"also_not" cannot be a node name');
  expect(await refused("", "x".repeat(63))).toBe("x".repeat(63));
  await expect(name("", `edge.${"x".repeat(59)}`)).rejects.toThrow("cannot be a node name: must be no more than 63 bytes; choose one with --node-name"); // Linux lets a machine have one of 64
  rmSync(dataDir, { recursive: true });
});

test.each([
  [["10.0.0.1", "10.0.0.2"], "--node-ip: must contain either a single IP or a dual-stack pair of IPs"],
  [["10.0.0.1", "fd00::1", "fd00::2"], "--node-ip: must contain either a single IP or a dual-stack pair of IPs"],
  [["10.0.0.1", "::"], "--node-ip: dual-stack node IP cannot include '0.0.0.0' or '::'"],
  [["10.0.0.0/8"], '--node-ip: "10.0.0.0/8" is no IP address'],
])("these are no addresses of a node: %j", async (nodeIp, problem) => {
  await expect(thisNode({ nodeName: "n", nodeIp, dataDir: "/nowhere" }, { log: silentLog })).rejects.toThrow(problem);
});

test("an address that the machine has not is taken, and told", async () => {
  const told: string[] = [];
  const log = { ...silentLog, warn: (message: string) => void told.push(message) };
  const addresses = async (...nodeIp: string[]) => (await thisNode({ nodeName: "n", nodeIp, dataDir: "/nowhere" }, { log })).ips;
  const [own = ""] = await addresses();
  expect([await addresses(own), await addresses("::"), told.filter(() => own !== "127.0.0.1")]).toEqual([[own], expect.anything(), []]);
  told.length = 0;
  expect(await addresses("203.0.113.9")).toEqual(["203.0.113.9"]);
  expect(told).toEqual(["no interface of this machine has the address of --node-ip: others may not find the node there"]);
});

test("a node that has chosen a family of addresses alone looks where it is", () => {
  expect([[], ["::"], ["0.0.0.0"], ["10.0.0.1"], ["fd00::1", "10.0.0.1"]].map((nodeIp) => isAtGivenAddress({ nodeIp }))).toEqual([false, false, false, true, true]);
});
