import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { systemRandom } from "../core/lifecycle/random.ts";
import { silentLog } from "../core/observe/log.ts";
import { formatJoinToken } from "../core/pki/join-token.ts";
import { testPki } from "../test/certificates.ts";
import { sharedSettings, withShared } from "./cluster-settings.ts";
import { loadSettings } from "./config/config.ts";
import { clusterSecret, clusterToken, formerSecrets, givenToken } from "./token-file.ts";

test("the cluster's token is made once, kept for its owner alone, and replaced by what is given", async () => {
  const dir = mkdtempSync(join(tmpdir(), "token-"));
  const path = join(dir, "server/token"), warned: unknown[] = [];
  const [one, other] = [(await testPki()).authority("server-ca").bundlePem, (await testPki()).authority("server-ca").bundlePem];
  const start = (caPem: string, given?: string) => clusterToken({ path, given, caPem, random: systemRandom, log: { warn: (...told) => void warned.push(told) } });
  const kept = (): string => readFileSync(path, "utf8");
  const secret = await start(one);
  expect(secret).toMatch(/^[0-9a-f]{32}$/);
  expect([kept(), statSync(path).mode & 0o777]).toEqual([`${formatJoinToken(one, secret)}\n`, 0o600]);
  expect(await start(one)).toBe(secret);
  expect([await start(other), kept()]).toEqual([secret, `${formatJoinToken(other, secret)}\n`]); // another CA: agents must know
  expect([await start(one, "of my own"), kept()]).toEqual(["of my own", `${formatJoinToken(one, "of my own")}\n`]);
  expect(await start(one, formatJoinToken(other, "whole"))).toBe("whole");
  expect(await formerSecrets(path)).toEqual(["of my own", secret]); // snapshots taken until then are sealed with them
  expect([warned.length, statSync(`${path}.before`).mode & 0o777]).toEqual([2, 0o600]);
  expect(await formerSecrets(join(dir, "none", "token"))).toEqual([]);
  await expect(start(one, "K10abc::x")).rejects.toThrow("--token: the token is damaged");
});

test("a token that a disk has damaged is that of its copy; without one it is said what to do", async () => {
  const path = join(mkdtempSync(join(tmpdir(), "token-")), "token"), caPem = (await testPki()).authority("server-ca").bundlePem;
  const secret = async (): Promise<string> => await clusterSecret({ path, given: undefined, random: systemRandom, log: silentLog });
  const made = await clusterToken({ path, given: await secret(), caPem, random: systemRandom, log: silentLog });
  const text = readFileSync(path, "utf8");
  for (const damaged of ["", "\0".repeat(text.length), text.slice(0, 40)]) {
    writeFileSync(path, damaged);
    expect([await secret(), readFileSync(path, "utf8")]).toEqual([made, text]);
  }
  rmSync(join(dirname(path), "copies"), { recursive: true });
  for (const damaged of ["", text.slice(0, 40)]) {
    writeFileSync(path, damaged);
    await expect(secret()).rejects.toThrow(/token: the token is (empty|damaged).*Write the cluster's token there, .* or remove the file, and a new one is made/);
  }
});

test("a token may stand in a file", () => {
  const path = join(mkdtempSync(join(tmpdir(), "token-")), "t");
  writeFileSync(path, "from a file\n");
  expect(givenToken({ token: undefined, tokenFile: path })).toBe("from a file");
  expect(givenToken({ token: "flag", tokenFile: path })).toBe("flag");
  expect(() => givenToken({ token: undefined, tokenFile: `${path}x` })).toThrow("no such file");
});

test("agents have the server's settings where all nodes must have the same, and their own elsewhere", () => {
  const load = (command: "server" | "agent", argv: string[]) => loadSettings(command, { argv, env: {}, readFile: () => undefined });
  const shared = sharedSettings(load("server", ["--cluster-cidr", "10.1.0.0/16,fd00:1::/56", "--overlay", "host-gw", "--disable", "dns,scheduler", "--node-label", "a=b"]));
  const settings = withShared(load("agent", ["--server", "https://h:6443", "--node-label", "c=d"]), shared);
  expect(settings).toMatchObject({ clusterCidr: "10.1.0.0/16,fd00:1::/56", serviceCidr: "10.43.0.0/16", overlay: "host-gw", disable: ["dns", "scheduler"], nodeLabel: ["c=d"], server: "https://h:6443" });
});
