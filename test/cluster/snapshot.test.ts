/** A server's objects and keys in one file, taken while it runs; put back in their place, made into a server on a machine that has nothing, and used by a server whose store is damaged. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually, type Finished, Host, switchDown } from "./host.ts";

const FLAGS = ["--disable-agent", "--snapshot-every", "0", "--secrets-encryption", "--cluster-cidr", "10.99.0.0/16"];
let host: Host;

beforeAll(async () => {
  host = await Host.up("snapshot", "172.30.0.53");
  await start(host);
});
afterAll(async () => {
  await host?.[Symbol.asyncDispose]();
  await switchDown();
});

async function start(on: Host): Promise<void> {
  await on.start(...FLAGS);
  await eventually("the server is ready", async () => (await on.kubectl("get", "--raw", "/readyz")) === "ok");
}
const snapshot = (...words: readonly string[]): Promise<Finished> => host.run([host.binary, "snapshot", ...words]);
/** Once the one that a controller makes is there: a snapshot may be of a moment before. */
const configMaps = (on: Host): Promise<string[]> => eventually("the CA is published", async () => {
  const names = (await on.kubectl("get", "configmaps", "-o", "jsonpath={.items[*].metadata.name}")).split(" ");
  return names.includes("kube-root-ca.crt") && names.sort();
});

test("saved while the server runs: Secrets stay encrypted in it, keys are sealed", async () => {
  await host.kubectl("create", "configmap", "early");
  await host.kubectl("create", "secret", "generic", "s", "--from-literal=password=correct-horse-battery");
  const file = join(host.directory, "one.zst");
  const saved = await snapshot("save", file);
  expect([saved.code, saved.stdout]).toEqual([0, expect.stringMatching(/one\.zst: \d+ rows, revision \d+, \d+ bytes\n$/)]);
  const text = Bun.zstdDecompressSync(readFileSync(file)).toString();
  expect([text.includes('"name":"early"'), text.includes("Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5"), text.includes("PRIVATE KEY")]).toEqual([true, false, false]);
  expect((await snapshot("save", file)).stderr).toContain("is there already");
});

test("only administrators may take one", async () => {
  await host.kubectl("create", "serviceaccount", "reader");
  await host.kubectl("create", "clusterrolebinding", "reader", "--clusterrole=view", "--serviceaccount=default:reader");
  const token = (await host.kubectl("create", "token", "reader")).trim();
  const code = (authorization: string): Promise<string> => host.sh(`curl -sk -o /dev/null -w '%{http_code}' ${authorization} https://127.0.0.1:6443/snapshot`);
  expect([await code(""), await code(`-H "Authorization: Bearer ${token}"`)]).toEqual(["403", "403"]);
});

test("in the data directory: listed, the newest kept, deleted", async () => {
  for (let i = 0; i < 3; i++) expect((await snapshot("save", "--keep", "2")).code).toBe(0);
  const names = (await snapshot("list")).stdout.trim().split("\n").slice(1).map((line) => line.split(/\s+/)[0]!);
  expect(names).toHaveLength(2);
  expect((await snapshot("delete", names[0]!)).stdout).toBe(`${names[0]} is deleted\n`);
  await host.sh(`echo damaged > ${host.dataDir}/server/snapshots/${names[0]}`);
  const listed = (await snapshot("list")).stdout;
  expect(listed).toMatch(new RegExp(`${names[0]} .* damaged   -\n${names[1]} +\\d+ +\\S+Z +\\d+ +\\d+\n`));
  expect((await snapshot("delete", "nothing")).stderr).toContain('there is no snapshot "nothing"');
});

test("restored: what came later is gone, what was there is there, clients go on, and the store of before is kept", async () => {
  await host.kubectl("create", "configmap", "late");
  const revision = async (): Promise<number> => Number(await host.kubectl("get", "configmap", "early", "-o", "jsonpath={.metadata.resourceVersion}"));
  const file = join(host.directory, "one.zst");
  expect(await snapshot("restore", file)).toMatchObject({ code: 2, stderr: "coracle: the server is running: stop it first\n" });
  const before = await revision();
  await host.kill("TERM");
  expect((await snapshot("restore", join(host.dataDir, "server/token"))).stderr).toContain("use another snapshot");
  const restored = await snapshot("restore", file);
  expect([restored.code, restored.stdout]).toEqual([0, expect.stringMatching(/rows of one\.zst, revision \d+; the cluster's keys were there\nthe store of before is kept in .*-before-\S+: remove it when all is well\nstart the server with --cluster-cidr 10\.99\.0\.0\/16, as the cluster had it\n$/)]);
  await start(host);
  expect(await configMaps(host)).toEqual(["early", "kube-root-ca.crt"]);
  expect(await host.kubectl("get", "secret", "s", "-o", "jsonpath={.data.password}")).toBe("Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5");
  expect(await revision()).toBe(before);
  await host.kubectl("label", "configmap", "early", "a=b");
  expect(await revision()).toBeGreaterThan(before + 1_000_000_000);
});

test("on a machine that has nothing: with the token the cluster is the same one, whoever trusts it goes on", async () => {
  const token = await host.sh(`cat ${host.dataDir}/server/token`);
  await host.kill("TERM");
  await host.sh(`mv ${host.dataDir} ${host.dataDir}.lost`);
  const file = join(host.directory, "one.zst");
  expect((await snapshot("restore", file)).stderr).toContain("give it with --token");
  expect((await snapshot("restore", file, "--token", "wrong")).stderr).toContain("cannot be read with this token");
  const restored = await snapshot("restore", file, "--token", token.trim());
  expect([restored.code, restored.stdout]).toEqual([0, expect.stringContaining("the cluster's keys are restored to")]);
  expect(await host.sh(`cat ${host.dataDir}/server/token`)).toBe(token);
  const trusted = readFileSync(host.kubeconfig, "utf8");
  await host.start(...FLAGS);
  await host.sh(`cat > ${host.directory}/trusted <<'EOF'\n${trusted}\nEOF`);
  const read = (): Promise<string> => host.ok([host.binary, "kubectl", "--kubeconfig", join(host.directory, "trusted"), "get", "secret", "s", "-o", "jsonpath={.data.password}"]);
  expect(await eventually("a kubeconfig of before is good", read)).toBe("Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5");
});

const damage = (): Promise<string> => host.sh(`cd ${host.dataDir}/server/db; for file in MANIFEST-* *.log *.ldb; do [ ! -e $file ] || dd if=/dev/urandom of=$file bs=512 count=1 conv=notrunc status=none; done`);

test("a server whose store is damaged comes up by itself, with its newest snapshot", async () => {
  await host.kubectl("create", "configmap", "kept");
  expect((await snapshot("save")).code).toBe(0);
  await host.kill("KILL");
  await damage();
  expect((await host.run([host.binary, "check"])).code).toBe(1);
  await start(host);
  expect(await configMaps(host)).toEqual(["early", "kept", "kube-root-ca.crt"]);
  expect(await eventually("it is told", () => host.kubectl("get", "events", "--field-selector", "reason=DatastoreMended", "-o", "jsonpath={.items[*].message}"))).toMatch(/^The cluster's store was damaged \(.*\) and has been mended: \d+ objects, .* as they were in snapshot-\S+\.zst; the damaged one is kept in \S+-damaged-/);
  await host.kill("KILL");
  await damage();
  const repaired = await host.run([host.binary, "check", "--repair"]);
  expect([repaired.code, repaired.stdout]).toEqual([0, expect.stringMatching(/repaired: \d+ objects, \d+ of them as they were in snapshot-\S+\.zst; the damaged one is kept in \S+-damaged-\S+\n$/)]);
  await host.start(...FLAGS, "--mend-store=false");
  expect(await eventually("and goes on", () => configMaps(host))).toContain("kept");
});
