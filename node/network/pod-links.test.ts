import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { silentLog as log } from "../../core/observe/log.ts";
import type { Link } from "../os/netlink.ts";
import type { Exec } from "../os/exec.ts";
import { cniConfig } from "./cni-config.ts";
import { ensurePodLinks, lostPodLinks } from "./pod-links.ts";

const link = (name: string, index: number, master: number, kind = "veth", mac = ""): Link => ({ name, index, master, kind, mac, mtu: 1450, up: true, vxlan: undefined });

test("a pod's interface that is off the bridge is put back; those of others, and those that are where they should be, are left alone", async () => {
  const resultsDir = mkdtempSync(join(tmpdir(), "results-"));
  const record = (networkName: string, ...names: string[]): string => JSON.stringify({ kind: "cniCacheV1", networkName, result: { interfaces: [{ name: "cni0" }, ...names.map((name) => ({ name })), { name: "eth0", sandbox: "/run/netns/x" }] } });
  writeFileSync(join(resultsDir, "coracle-1-eth0"), record("coracle", "veth1", "veth2"));
  writeFileSync(join(resultsDir, "coracle-2-eth0"), record("other", "veth3"));
  writeFileSync(join(resultsDir, "coracle-3-eth0"), "{ half");
  const links = [link("eth0", 1, 0, ""), link("cni0", 2, 0, "bridge"), link("veth1", 3, 2), link("veth2", 4, 0), link("veth3", 5, 0), link("docker", 6, 0)];
  const set: unknown[] = [];
  await ensurePodLinks({ links: () => links, setLink: (index, change) => void set.push([index, change]) }, { bridge: 2, network: "coracle", resultsDir, log });
  expect(set).toEqual([[4, { up: true, master: 2, hairpin: true }]]);
  rmSync(resultsDir, { recursive: true });
});

test("a pod's interface that has been deleted is made again with its addresses and noted, unless the pod is just ending; one that was renamed is there", async () => {
  const dir = mkdtempSync(join(tmpdir(), "results-"));
  const config = Buffer.from(cniConfig({ podCidrs: ["10.42.0.0/24"], mtu: 1450, ipamDir: "/ipam" })).toString("base64");
  const put = (id: string, { veth = `veth${id}`, mac = `0a:${id}`, netns = "/proc/self/ns/net" } = {}): void => writeFileSync(join(dir, `coracle-${id}-eth0`), JSON.stringify({
    kind: "cniCacheV1", containerId: id, config, ifName: "eth0", networkName: "coracle", cniArgs: [["K8S_POD_NAMESPACE", "default"], ["K8S_POD_NAME", id]],
    result: { cniVersion: "1.0.0", interfaces: [{ name: "cni0" }, { name: veth, mac }, { name: "eth0", sandbox: netns }], ips: [{ address: "10.42.0.2/24", interface: 2 }], dns: { of: id } },
  }));
  const runs: string[] = [];
  const run: Exec = async (command, _args, { env = {}, stdin } = {}) => {
    const { type, args } = JSON.parse(String(stdin)) as { type: string; args: unknown };
    runs.push(`${command} ${env["CNI_COMMAND"]} ${env["CNI_CONTAINERID"]} ${env["CNI_PATH"]} ${type} ${JSON.stringify(args)}`);
    return { exitCode: 0, stdout: JSON.stringify({ interfaces: [{ name: "cni0" }, { name: "vethnew", mac: "0a:new" }, { name: "eth0", sandbox: dir }] }), stderr: "" };
  };
  let links = [link("cni0", 2, 0, "bridge"), link("tun0", 3, 0, "tun"), link("vethhere", 4, 2), link("named-by-somebody", 5, 2, "veth", "0a:renamed")];
  const look = lostPodLinks({ network: "coracle", links: () => links, cniBinDirs: ["/cni", "/more"], binDir: "/bin", resultsDir: dir, log, run });
  const { signal } = new AbortController();
  put("here");
  put("renamed");
  put("lost");
  put("ending");
  put("ended", { netns: join(dir, "no-such-namespace") });
  put("unmounted", { netns: dir });
  expect([await look(signal), runs], "seen once").toEqual([false, []]);
  rmSync(join(dir, "coracle-ending-eth0"));
  expect(await look(signal)).toBe(true);
  const told = '/cni:/more bridge {"cni":{"ips":["10.42.0.2"]}}';
  expect(runs).toEqual([`/cni/bridge DEL lost ${told}`, `/cni/bridge ADD lost ${told}`]);
  expect((JSON.parse(readFileSync(join(dir, "coracle-lost-eth0"), "utf8")) as { result: unknown }).result).toMatchObject({ interfaces: [{}, { name: "vethnew" }, {}], ips: [{ address: "10.42.0.2/24" }], dns: { of: "lost" } });
  links = [...links, link("vethnew", 6, 2)];
  expect([await look(signal), await look(signal), runs.length]).toEqual([false, false, 2]);
  rmSync(dir, { recursive: true });
});

test("a pod's interface that has been deleted is missed although others' containers have theirs on bridges of their own", async () => {
  const dir = mkdtempSync(join(tmpdir(), "results-"));
  const config = Buffer.from(cniConfig({ podCidrs: ["10.42.0.0/24"], mtu: 1450, ipamDir: "/ipam" })).toString("base64");
  writeFileSync(join(dir, "coracle-lost-eth0"), JSON.stringify({ kind: "cniCacheV1", containerId: "lost", config, ifName: "eth0", networkName: "coracle", result: { interfaces: [{ name: "cni0" }, { name: "vethlost" }, { name: "eth0", sandbox: "/proc/self/ns/net" }] } }));
  const run: Exec = async () => ({ exitCode: 0, stdout: "{}", stderr: "" });
  const links = [link("cni0", 2, 0, "bridge"), link("docker0", 3, 0, "bridge"), link("veth1", 4, 3), link("veth2", 5, 3)];
  const look = lostPodLinks({ network: "coracle", links: () => links, cniBinDirs: ["/cni"], binDir: "/bin", resultsDir: dir, log, run });
  const { signal } = new AbortController();
  expect([await look(signal), await look(signal)]).toEqual([false, true]);
  rmSync(dir, { recursive: true });
});

test("of a pod that ends while its interface is made again nothing stays, and nothing is told", async () => {
  const dir = mkdtempSync(join(tmpdir(), "results-"));
  const path = join(dir, "coracle-1-eth0");
  const config = Buffer.from(cniConfig({ podCidrs: ["10.42.0.0/24"], mtu: 1450, ipamDir: "/ipam" })).toString("base64");
  const told: unknown[] = [];
  const heard = { ...log, warn: (...all: unknown[]) => void told.push(all), error: (...all: unknown[]) => void told.push(all) } as typeof log;
  for (const failing of [false, true]) {
    writeFileSync(path, JSON.stringify({ kind: "cniCacheV1", containerId: "1", config, ifName: "eth0", networkName: "coracle", result: { interfaces: [{ name: "veth1" }, { name: "eth0", sandbox: "/proc/self/ns/net" }] } }));
    const runs: string[] = [];
    const run: Exec = async (_command, _args, { env = {} } = {}) => {
      runs.push(env["CNI_COMMAND"]!);
      if (env["CNI_COMMAND"] === "ADD") rmSync(path);
      return { exitCode: failing && env["CNI_COMMAND"] === "ADD" ? 1 : 0, stdout: "{}", stderr: "" };
    };
    const look = lostPodLinks({ network: "coracle", links: () => [], cniBinDirs: ["/cni"], binDir: "/bin", resultsDir: dir, log: heard, run });
    await look(new AbortController().signal);
    await look(new AbortController().signal);
    expect([runs, told]).toEqual([failing ? ["DEL", "ADD"] : ["DEL", "ADD", "DEL"], []]);
  }
  rmSync(dir, { recursive: true });
});
