import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { silentLog as log } from "../../core/observe/log.ts";
import type { Link } from "../os/netlink.ts";
import { ensurePodLinks } from "./pod-links.ts";

test("a pod's interface that is off the bridge is put back; those of others, and those that are where they should be, are left alone", () => {
  const resultsDir = mkdtempSync(join(tmpdir(), "results-"));
  const record = (networkName: string, ...names: string[]): string => JSON.stringify({ kind: "cniCacheV1", networkName, result: { interfaces: [{ name: "cni0" }, ...names.map((name) => ({ name })), { name: "eth0", sandbox: "/run/netns/x" }] } });
  writeFileSync(join(resultsDir, "coracle-1-eth0"), record("coracle", "veth1", "veth2"));
  writeFileSync(join(resultsDir, "coracle-2-eth0"), record("other", "veth3"));
  writeFileSync(join(resultsDir, "coracle-3-eth0"), "{ half");
  const link = (name: string, index: number, master: number, kind = "veth"): Link => ({ name, index, master, kind, mac: "", mtu: 1450, up: true, vxlan: undefined });
  const links = [link("eth0", 1, 0, ""), link("cni0", 2, 0, "bridge"), link("veth1", 3, 2), link("veth2", 4, 0), link("veth3", 5, 0), link("docker", 6, 0)];
  const set: unknown[] = [];
  ensurePodLinks({ links: () => links, setLink: (index, change) => void set.push([index, change]) }, { bridge: 2, network: "coracle", resultsDir, log });
  expect(set).toEqual([[4, { up: true, master: 2, hairpin: true }]]);
  rmSync(resultsDir, { recursive: true });
});
