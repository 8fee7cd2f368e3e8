import { expect, test } from "vitest";
import { type Exec, ExecError } from "../os/exec.ts";
import type { Passage } from "./forward.ts";
import { legacyPassages, legacyRules } from "./legacy-iptables.ts";

const PASSAGE: Passage = { clusterCidrs: ["10.42.0.0/16", "fd42::/48"], ingressPorts: ["10080", "10500-10999"], tunnel: { udpPort: 8472, peers: ["10.9.0.12"] } };
const CLOSED = "-P INPUT DROP\n-P FORWARD DROP\n-P OUTPUT ACCEPT\n-A INPUT -i lo -j ACCEPT\n";

/** As iptables shows what it was called with. */
function after(listed: string, calls: readonly string[][]): string {
  return listed + calls.filter(([verb]) => verb === "-I").map(([, ...args]) => `-A ${args.map((word) => (word.includes(" ") ? `"${word}"` : word)).join(" ")}\n`).join("");
}

test("what is the cluster's passes chains that drop the rest, of its family", () => {
  const calls = legacyRules(CLOSED, 4, PASSAGE).map((args) => args.join(" ").replace(/ -m comment --comment coracle pods [0-9a-f]{8} -j ACCEPT$/, ""));
  expect(calls).toEqual([
    "-I FORWARD -s 10.42.0.0/16", "-I FORWARD -d 10.42.0.0/16",
    "-I INPUT -s 10.42.0.0/16", "-I INPUT -p tcp -m tcp --dport 10080", "-I INPUT -p tcp -m tcp --dport 10500:10999", "-I INPUT -s 10.9.0.12 -p udp -m udp --dport 8472",
  ]);
  expect(legacyRules(CLOSED, 6, PASSAGE)[0]).toContain("fd42::/48");
});

test("it is done once, and again when it is something else; where nothing is dropped any more it is taken back", () => {
  const done = after(CLOSED, legacyRules(CLOSED, 4, PASSAGE));
  expect(legacyRules(done, 4, PASSAGE)).toEqual([]);
  expect(legacyRules(done, 4, { ...PASSAGE, ingressPorts: [] }).map(([verb, chain]) => `${verb} ${chain}`)).toEqual([...Array<string>(4).fill("-D INPUT"), ...Array<string>(2).fill("-I INPUT")]);
  expect(legacyRules(done.replaceAll("DROP", "ACCEPT"), 4, PASSAGE).map(([verb]) => verb)).toEqual(Array<string>(6).fill("-D"));
});

test("so is a chain whose last rule drops the rest, also by way of another; a condition is somebody's own", () => {
  const changed = (...rules: string[]): string[] => [...new Set(legacyRules(`-P INPUT ACCEPT\n-P FORWARD ACCEPT\n-P OUTPUT ACCEPT\n-N most\n${rules.map((rule) => `-A ${rule}\n`).join("")}`, 4, PASSAGE).map(([, chain]) => chain!))];
  expect(changed("FORWARD -j REJECT --reject-with icmp-host-prohibited", "INPUT -p icmp -j DROP")).toEqual(["FORWARD"]);
  expect(changed("INPUT -j most", "OUTPUT -g most", 'most -i lo -j ACCEPT', 'most -m comment --comment "all that" -j LOG --log-prefix "no "', 'most -m comment --comment "the rest" -j DROP')).toEqual(["INPUT", "OUTPUT"]);
  expect(changed("FORWARD -j most", "most -j RETURN", "most -j DROP", "INPUT -j ACCEPT", "INPUT -j DROP")).toEqual([]);
});

test("a machine whose kernel has no such table is asked nothing, and one where iptables is that of nftables no more than which it is", async () => {
  const calls: string[] = [];
  const exec: Exec = async (program, args) => {
    calls.push([program, ...args].join(" "));
    if (program.endsWith("-legacy")) throw new ExecError("not-found", program);
    return { exitCode: 0, stdout: "iptables v1.8.11 (nf_tables)\n", stderr: "" };
  };
  const stop = new AbortController().signal;
  await legacyPassages({ exec, read: () => undefined })([], PASSAGE, stop);
  expect(calls).toEqual([]);
  await legacyPassages({ exec, read: (path) => (path === "/proc/net/ip_tables_names" ? "nat\nfilter\n" : undefined) })([], PASSAGE, stop);
  expect(calls).toEqual(["iptables-legacy -V", "iptables -V"]);
});
