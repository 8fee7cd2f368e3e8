/** An operator written with the public JavaScript client (operator/operator.mjs) does its work here as anywhere: informers, a lease, finalizers, status, restarts. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { cacheDirectory } from "../../installers/bundle/cache.ts";
import { eventually, Host, switchDown } from "./host.ts";

const CLIENT = "1.4.0";
const DIRECTORY = cacheDirectory("clients", `client-node-${CLIENT}`);
let host: Host;

beforeAll(async () => {
  if (!existsSync(join(DIRECTORY, "node_modules/@kubernetes/client-node"))) {
    await using npm = Bun.spawn(["npm", "install", "--prefix", DIRECTORY, "--no-audit", "--no-fund", "--loglevel=error", `@kubernetes/client-node@${CLIENT}`], { stdout: "ignore", stderr: "pipe" });
    if ((await npm.exited) !== 0) throw new Error(`npm: ${await new Response(npm.stderr).text()}`);
    await Bun.write(join(DIRECTORY, "package.json"), "{}");
  }
  host = await Host.up("operator", "172.30.0.13");
  await host.start("--disable-agent");
  await eventually("the server answers", async () => (await host.kubectl("get", "--raw", "/readyz")) === "ok");
});
afterAll(async () => {
  await host?.[Symbol.asyncDispose]();
  await switchDown();
});

const operate = (name: string) => host.sh(`CLIENT_DIRECTORY=${DIRECTORY} setsid node ${host.bring(join(import.meta.dirname, "operator/operator.mjs"))} ${name} </dev/null >${host.directory}/${name}.log 2>&1 & echo $! > ${host.directory}/${name}.pid`);
const said = (name: string) => host.sh(`cat ${host.directory}/${name}.log`);
const lit = async () => (await host.kubectl("get", "lamps", "-o", "jsonpath={range .items[?(@.status.lit==true)]}{.metadata.name} {end}")).trim().split(" ").length;
const lamp = (name: string, spec: string) => `apiVersion: shed.example/v1\nkind: Lamp\nmetadata: {name: ${name}}\nspec: ${spec}\n---\n`;

test("lamps are lit, by the copy that leads", async () => {
  await host.apply(readFileSync(join(import.meta.dirname, "operator/lamps.yaml"), "utf8"));
  await host.kubectl("wait", "crd/lamps.shed.example", "--for=condition=Established", "--timeout=300s");
  await host.apply(Array.from({ length: 20 }, (_, i) => lamp(`l${i}`, "{}")).join(""));
  await operate("one");
  await eventually("one leads", async () => (await said("one")).includes("one leads"));
  await operate("two");
  await eventually("all are lit", async () => (await lit()) === 20);
  expect(await host.kubectl("get", "configmap", "lamp-l7", "-o", "jsonpath={.data.brightness} {.metadata.ownerReferences[0].kind}")).toBe("40 Lamp");
  expect(await host.kubectl("get", "lp", "l7", "--no-headers")).toMatch(/^l7\s+40\s+true\s*$/);
  expect(await said("two")).toBe("");
});

test("what its schema forbids does not reach it", async () => {
  const { stderr } = await host.run([host.binary, "kubectl", "apply", "-f", "-"], { input: lamp("bad", "{colour: red, brightness: 90}") });
  expect(stderr).toContain('The Lamp "bad" is invalid: spec: Invalid value:');
  expect(stderr).toContain("red lamps are dim");
});

test("a change is followed; after a restart of the server too", async () => {
  await host.kubectl("patch", "lamp", "l3", "--type=merge", "-p", '{"spec":{"brightness":80}}');
  await eventually("l3 is brighter", async () => (await host.kubectl("get", "configmap", "lamp-l3", "-o", "jsonpath={.data.brightness}")) === "80");
  await host.kill("KILL");
  await host.start("--disable-agent");
  await eventually("the server answers again", async () => (await host.kubectl("get", "--raw", "/readyz")) === "ok");
  await host.kubectl("patch", "lamp", "l4", "--type=merge", "-p", '{"spec":{"brightness":81}}');
  await eventually("l4 is brighter", async () => (await host.kubectl("get", "configmap", "lamp-l4", "-o", "jsonpath={.data.brightness}")) === "81");
});

test("the other copy takes over", async () => {
  await host.sh(`kill -KILL $(cat ${host.directory}/one.pid)`);
  await eventually("two leads", async () => (await said("two")).includes("two leads"));
  await host.apply(lamp("late", "{brightness: 5}"));
  await eventually("it is lit by two", async () => (await host.kubectl("get", "lamp", "late", "-o", "jsonpath={.status.by}")) === "two");
});

test("a lamp that is deleted is switched off first, and takes its ConfigMap along", async () => {
  await host.kubectl("delete", "lamps", "--all", "--timeout=300s");
  expect((await said("two")).match(/two off /g)?.length).toBe(21);
  await eventually("their ConfigMaps are gone", async () => (await host.kubectl("get", "configmaps", "-o", "name")).trim() === "configmap/kube-root-ca.crt");
});
