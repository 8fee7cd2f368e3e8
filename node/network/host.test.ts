import { expect, test } from "vitest";
import { CONNTRACKING, rememberConnections } from "./host.ts";

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
