import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ADDRESS_PLUGIN, stableAddresses } from "./stable-addresses.ts";

/** host-local as far as the plug-in is concerned: gives what is asked for unless it is in `taken`, else the next one; writes down what it was called with. */
const HOST_LOCAL = `#!/bin/sh
echo "$CNI_COMMAND $(cat)" >> "$HERE/calls"
[ "$CNI_COMMAND" = ADD ] || exit 0
asked=$(tail -n 1 "$HERE/calls" | sed -n 's/.*"ips":\\["\\([^"]*\\)".*/\\1/p')
if [ -n "$asked" ] && grep -q "^$asked$" "$HERE/taken"; then echo '{"code":11,"msg":"requested IP address is not available"}'; exit 1; fi
[ -n "$asked" ] || { asked=10.42.1.$(( $(cat "$HERE/last") + 1 )); echo "\${asked##*.}" > "$HERE/last"; }
printf '{\\n  "cniVersion": "1.0.0",\\n  "ips": [ { "address": "%s/24", "gateway": "10.42.1.1" },\\n { "address": "fd00::%s/64" } ]\\n}\\n' "$asked" "\${asked##*.}"
`;

test.skipIf(process.platform !== "linux")("a pod gets the addresses it had, unless somebody has them by now", async () => {
  const dir = mkdtempSync(join(tmpdir(), "addresses-"));
  const here = new Set(["uid-1"]);
  const addresses = stableAddresses({ pluginDir: join(dir, "plug'ins"), recordDir: join(dir, "rec'ords"), ipamDir: join(dir, "ipam"), resultsDir: join(dir, "results"), isPodHere: (uid) => here.has(uid) });
  await addresses.install();
  mkdirSync(join(dir, "cni"));
  writeFileSync(join(dir, "cni/host-local"), HOST_LOCAL);
  chmodSync(join(dir, "cni/host-local"), 0o755);
  writeFileSync(join(dir, "last"), "1");
  writeFileSync(join(dir, "taken"), "");
  const call = (command: string, uid: string) => {
    const { stdout, status } = spawnSync(join(dir, "plug'ins", ADDRESS_PLUGIN), { input: '{"cniVersion":"1.0.0","name":"coracle","ipam":{"type":"coracle-ipam"}}', encoding: "utf8", env: { HERE: dir, PATH: process.env["PATH"], CNI_COMMAND: command, CNI_PATH: `/none:${join(dir, "cni")}`, CNI_ARGS: `IgnoreUnknown=1;K8S_POD_UID=${uid};K8S_POD_NAME=web` } });
    return status === 0 && command === "ADD" ? (JSON.parse(stdout) as { ips: { address: string }[] }).ips.map(({ address }) => address).join() : `status ${status}`;
  };
  const lastCall = () => readFileSync(join(dir, "calls"), "utf8").trim().split("\n").at(-1);

  expect(call("ADD", "uid-1")).toBe("10.42.1.2/24,fd00::2/64");
  expect(lastCall()).toBe('ADD {"cniVersion":"1.0.0","name":"coracle","ipam":{"type":"coracle-ipam"}}');
  expect(call("DEL", "uid-1")).toBe("status 0");
  expect(call("ADD", "uid-2")).toBe("10.42.1.3/24,fd00::3/64");
  expect(call("ADD", "uid-1")).toBe("10.42.1.2/24,fd00::2/64");
  expect(lastCall()).toBe('ADD {"args":{"cni":{"ips":["10.42.1.2","fd00::2"]}},"cniVersion":"1.0.0","name":"coracle","ipam":{"type":"coracle-ipam"}}');
  writeFileSync(join(dir, "taken"), "10.42.1.2\n");
  expect(call("ADD", "uid-1")).toBe("10.42.1.4/24,fd00::4/64");
  writeFileSync(join(dir, "taken"), "");
  expect(call("ADD", "uid-1")).toBe("10.42.1.4/24,fd00::4/64");
  await addresses.sweep();
  expect(["uid-1", "uid-2"].map((uid) => existsSync(join(dir, "rec'ords", uid)))).toEqual([true, false]);
});

test.skipIf(process.platform !== "linux")("addresses that are held stay held when host-local's directory is lost", async () => {
  const dir = mkdtempSync(join(tmpdir(), "addresses-"));
  const addresses = stableAddresses({ pluginDir: join(dir, "plugins"), recordDir: join(dir, "records"), ipamDir: join(dir, "ipam"), resultsDir: join(dir, "results"), isPodHere: () => true });
  await addresses.install();
  for (const name of ["cni", "results"]) mkdirSync(join(dir, name));
  writeFileSync(join(dir, "cni/host-local"), "#!/bin/sh\ncat > /dev/null\n", { mode: 0o755 });
  /** As libcni writes it. */
  const result = (id: string, sandbox: string, ...ips: string[]) => writeFileSync(join(dir, "results", `coracle-${id}-eth0`), JSON.stringify({
    kind: "cniCacheV1", containerId: id, config: "eyJjbmlWZXJzaW9uIjoi", ifName: "eth0", networkName: "coracle",
    result: { cniVersion: "1.0.0", dns: {}, interfaces: [{ mac: "a", name: "cni0" }, { mac: "b", name: "eth0", sandbox }], ips: ips.map((address) => ({ address, gateway: "10.42.0.1", interface: 1 })), routes: [{ dst: "0.0.0.0/0" }] },
  }));
  result("abc", dir, "10.42.0.7/24", "fd00::7/64");
  result("old", join(dir, "gone"), "10.42.0.8/24");
  const { status } = spawnSync(join(dir, "plugins", ADDRESS_PLUGIN), { input: "{}", env: { PATH: process.env["PATH"], CNI_COMMAND: "ADD", CNI_PATH: join(dir, "cni") } });
  const held = () => readdirSync(join(dir, "ipam/coracle")).toSorted().map((name) => [name, readFileSync(join(dir, "ipam/coracle", name), "utf8")]);
  expect([status, held(), readdirSync(join(dir, "ipam"))]).toEqual([0, [["10.42.0.7", "abc\r\neth0"], ["fd00::7", "abc\r\neth0"]], ["coracle"]]);
});
