import { mkdirSync, mkdtempDisposableSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { silentLog } from "../../core/observe/log.ts";
import { sysctlKeeper } from "../os/sysctl.ts";
import { CONNTRACKING, letPacketsThrough, rememberConnections } from "./host.ts";

function changes(cpus: number, conntrack: Partial<typeof CONNTRACKING>): string[] {
  const told: string[] = [];
  const name = (full: string): string => full.replace(/^net\.netfilter\.nf_conntrack_/, "");
  rememberConnections({
    set: (full, value) => { told.push(`${name(full)} = ${value}`); return true; },
    raise: (full, value) => { told.push(`${name(full)} >= ${value}`); return true; },
  }, cpus, { ...CONNTRACKING, ...conntrack });
  return told;
}

test("the kernel remembers no fewer connections than it would by itself, and none shorter, unless somebody asks for it", () => {
  expect(changes(2, {})).toEqual(["max >= 131072", "tcp_timeout_established >= 86400", "tcp_timeout_close_wait >= 3600"]);
  expect(changes(2, { min: 9, perCpu: 4, establishedSeconds: 3600, asked: new Set(["max", "established"]) })).toEqual(["max = 9", "tcp_timeout_established = 3600", "tcp_timeout_close_wait >= 3600"]);
  expect(changes(2, { perCpu: 0, establishedSeconds: 0, closeWaitSeconds: 0, asked: new Set(["max", "established", "closeWait"]) })).toEqual([]);
});

test("many processors do not make a table that takes a machine's memory", () => {
  expect([changes(32, {})[0], changes(64, {})[0], changes(64, { min: 2_000_000 })[0]]).toEqual(["max >= 1048576", "max >= 1048576", "max >= 1048576"]);
});

test.each([["0", "1"], ["1", "1"], ["2", "2"]])("connections try smaller packets where large ones do not arrive: tcp_mtu_probing of %s is %s", (before, after) => {
  using dir = mkdtempDisposableSync(join(tmpdir(), "coracle-host-"));
  mkdirSync(join(dir.path, "net/ipv4"), { recursive: true });
  const probing = join(dir.path, "net/ipv4/tcp_mtu_probing");
  writeFileSync(probing, before);
  letPacketsThrough({ sysctl: sysctlKeeper({ recordFile: join(dir.path, "record.json"), log: silentLog, root: dir.path }), usesV6: false, interfaceName: "eth0", log: silentLog });
  expect(readFileSync(probing, "utf8")).toBe(after);
});

test("what pods send is forwarded by the interfaces that it comes in by and goes out by, though somebody has switched that off for one of them alone", () => {
  using dir = mkdtempDisposableSync(join(tmpdir(), "coracle-host-"));
  const path = (name: string): string => join(dir.path, "net/ipv4/conf", name, "forwarding");
  const has = (): string[] => ["eth0", "cni0", "eth1"].map((name) => readFileSync(path(name), "utf8"));
  for (const name of ["eth0", "cni0", "eth1"]) {
    mkdirSync(join(path(name), ".."), { recursive: true });
    writeFileSync(path(name), "0");
  }
  writeFileSync(join(dir.path, "net/ipv4/ip_forward"), "1");
  const { keep } = letPacketsThrough({ sysctl: sysctlKeeper({ recordFile: join(dir.path, "record.json"), log: silentLog, root: dir.path }), usesV6: false, interfaceName: "eth0", log: silentLog });
  expect(has()).toEqual(["1", "1", "0"]);
  writeFileSync(path("eth0"), "0");
  keep!();
  expect(has()).toEqual(["1", "1", "0"]);
});
