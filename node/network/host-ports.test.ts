import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { silentLog } from "../../core/observe/log.ts";
import type { Exec } from "../os/exec.ts";
import { cniConfig } from "./cni-config.ts";
import type { CniRecord } from "./cni-records.ts";
import { ensureHostPorts, portmapCall } from "./host-ports.ts";

const config = Buffer.from(cniConfig({ podCidrs: ["10.42.0.0/24"], mtu: 1450, ipamDir: "/ipam" })).toString("base64");
const PORTS = [{ HostPort: 18080, ContainerPort: 8080, Protocol: "tcp", HostIP: "" }];
const NETNS = "/proc/self/ns/net";
const record = (id: string, netns: string, more: object = {}): string => JSON.stringify({
  kind: "cniCacheV1", containerId: id, config, ifName: "eth0", networkName: "coracle", capabilityArgs: { portMappings: PORTS },
  result: { cniVersion: "1.0.0", interfaces: [{ name: "cni0" }, { name: "eth0", sandbox: netns }], ips: [{ address: "10.42.0.2/24", interface: 1 }] }, ...more,
});

test("what the plugin was told when the pod started; nothing for pods without ports here", () => {
  const parsed = (more?: object): CniRecord => JSON.parse(record("a1", "/run/netns/a1", more));
  const call = portmapCall(parsed());
  expect(call).toMatchObject({ id: "a1", netns: "/run/netns/a1", env: { CNI_CONTAINERID: "a1", CNI_NETNS: "/run/netns/a1", CNI_IFNAME: "eth0" } });
  expect(JSON.parse(call!.config)).toMatchObject({ cniVersion: "1.0.0", name: "coracle", type: "portmap", backend: "nftables", snat: true, runtimeConfig: { portMappings: PORTS }, prevResult: { ips: [{ address: "10.42.0.2/24" }] } });
  expect(portmapCall(parsed({ capabilityArgs: {} }))).toBeUndefined();
});

test("only pods whose rules are gone are written again, after what is left of them was removed; pods that are gone and those of other networks are not", async () => {
  const dir = mkdtempSync(join(tmpdir(), "host-ports-"));
  try {
    const results = join(dir, "results");
    mkdirSync(results);
    const put = (id: string, netns: string): void => writeFileSync(join(results, `coracle-${id}-eth0`), record(id, netns));
    const runs: string[] = [];
    let asked = 0;
    const run: Exec = async (command, _args, options) => {
      runs.push(`${command} ${options?.env?.["CNI_COMMAND"]} ${options?.env?.["CNI_CONTAINERID"]} ${options?.env?.["PATH"]?.split(":")[0]} ${String(options?.stdin).includes('"HostPort":18080')}`);
      return { exitCode: 0, stdout: "", stderr: "" };
    };
    const ensure = (): Promise<void> => ensureHostPorts({
      network: "coracle", cniBinDir: "/cni", binDir: "/bin-of-ours", log: silentLog, resultsDir: results, run,
      nft: { chain: async (family, _table, chain) => { asked++; return family === "ip" && chain === "hostports" ? 'tcp dport 81 dnat to 10.42.0.3:80 comment "there"' : undefined; } },
    }, new AbortController().signal);
    await ensure();
    expect(asked).toBe(0);
    put("there", NETNS);
    put("lost", NETNS);
    put("ended", join(dir, "no-such-namespace"));
    put("ending", dir); // what it was mounted on
    writeFileSync(join(results, "coracle-other-eth0"), record("other", NETNS, { networkName: "other" }));
    writeFileSync(join(results, "coracle-half-eth0"), "{");
    await ensure();
    expect(runs).toEqual(["/cni/portmap DEL lost /bin-of-ours true", "/cni/portmap ADD lost /bin-of-ours true"]);
  } finally {
    rmSync(dir, { recursive: true });
  }
});

test("one that cannot be written keeps no other from its ports, and is told; of a pod that ends meanwhile nothing stays", async () => {
  const results = mkdtempSync(join(tmpdir(), "host-ports-")), runs: string[] = [];
  const put = (id: string): void => writeFileSync(join(results, `coracle-${id}-eth0`), record(id, NETNS));
  const run: Exec = async (_command, _args, { env = {} } = {}) => {
    const { CNI_COMMAND: command, CNI_CONTAINERID: id } = env;
    runs.push(`${command} ${id}`);
    if (id === "ending" && command === "ADD") rmSync(join(results, "coracle-ending-eth0"));
    return { exitCode: id === "bad" && command === "ADD" ? 1 : 0, stdout: "", stderr: "no" };
  };
  for (const id of ["bad", "ending", "lost"]) put(id);
  const ensure = ensureHostPorts({ network: "coracle", cniBinDir: "/cni", binDir: "/bin", log: silentLog, resultsDir: results, run, nft: { chain: async () => undefined } }, new AbortController().signal);
  await expect(ensure).rejects.toThrow("portmap ADD: exit code 1: no");
  expect(runs.toSorted()).toEqual(["ADD bad", "ADD ending", "ADD lost", "DEL bad", "DEL ending", "DEL ending", "DEL lost"]);
  rmSync(results, { recursive: true });
});
