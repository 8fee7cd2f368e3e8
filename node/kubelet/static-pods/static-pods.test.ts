import { execFileSync } from "node:child_process";
import { mkdtempSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import { silentLog } from "../../../core/observe/log.ts";
import { podFromManifest } from "./manifest.ts";
import { staticPods } from "./static-pods.ts";

const manifest = (name: string, image: string): string => `apiVersion: v1\nkind: Pod\nmetadata: {name: ${name}}\nspec: {containers: [{name: c, image: "${image}"}]}\n`;

test.runIf(process.platform === "linux")("a file that cannot be read keeps no other from its pod, and of two pods of one name that of the first file runs", async () => {
  const directory = mkdtempSync(join(tmpdir(), "static-"));
  const write = (file: string, name: string, image: string): void => writeFileSync(join(directory, file), manifest(name, image));
  symlinkSync("/nowhere", join(directory, "a.yaml"));
  execFileSync("mkfifo", [join(directory, "b.yaml")]);
  write("card.img", "image", "image");
  truncateSync(join(directory, "card.img"), 10 * 1024 ** 2); // somebody's image of a disk
  write("d.yaml", "web", "later");
  write("e.yaml", "db", "db");

  const told: string[] = [];
  const problems = new Set<unknown>();
  let run: string[] = [];
  const ended = new AbortController();
  const ending = staticPods({
    directory, nodeName: "n1", complete: () => undefined, scanMs: 20, clock: systemClock, log: { ...silentLog, error: (_, facts) => void problems.add(facts?.["problem"]) },
    events: { event: (about, _, reason, message) => void told.push(`${"metadata" in about ? about.metadata?.name : about.name} ${reason}: ${message.replace(/\([0-9a-f]+\)/, "(uid)")}`) },
    onChange: (pods) => void (run = pods.map(({ metadata, spec }) => `${metadata.name} ${spec.containers[0]!.image}`)),
  }).run(ended.signal, () => undefined);
  await expect.poll(() => run).toEqual(["web-n1 later", "db-n1 db"]);
  expect(told).toEqual([]);
  expect([...problems]).toEqual(["ENOENT", "it is not a regular file", "the read limit is reached"]); // nor into memory

  write("c.yaml", "web", "first");
  await expect.poll(() => run).toEqual(["web-n1 first", "db-n1 db"]);
  expect(told).toEqual(['web-n1 FailedValidation: Error validating pod web-n1_default(uid) from file due to duplicate pod name "web-n1", ignoring']);

  rmSync(join(directory, "c.yaml"));
  await expect.poll(() => run).toEqual(["web-n1 later", "db-n1 db"]);
  ended.abort();
  await ending;
  rmSync(directory, { recursive: true });
});

test("one file may be all there is", async () => {
  const directory = mkdtempSync(join(tmpdir(), "static-"));
  const file = join(directory, "web.yaml");
  writeFileSync(file, manifest("web", "first"));
  let run: string[] = [];
  const ended = new AbortController();
  const ending = staticPods({
    directory: file, nodeName: "n1", complete: () => undefined, scanMs: 20, clock: systemClock, log: silentLog, events: { event: () => undefined },
    onChange: (pods) => void (run = pods.map(({ metadata, spec }) => `${metadata.name} ${spec.containers[0]!.image}`)),
  }).run(ended.signal, () => undefined);
  await expect.poll(() => run).toEqual(["web-n1 first"]);
  writeFileSync(file, manifest("web", "second"));
  await expect.poll(() => run).toEqual(["web-n1 second"]);
  rmSync(file);
  await expect.poll(() => run).toEqual([]);
  ended.abort();
  await ending;
  rmSync(directory, { recursive: true });
});

test.runIf(process.platform === "linux")("a manifest that goes and comes at once begins its pod anew; what is half written ends none", async () => {
  const directory = mkdtempSync(join(tmpdir(), "static-"));
  const file = join(directory, "web.yaml"), text = manifest("web", "first");
  writeFileSync(file, text);
  const told: string[][] = [];
  const ended = new AbortController();
  const ending = staticPods({
    directory, nodeName: "n1", complete: () => undefined, scanMs: 600_000, clock: systemClock, log: silentLog, events: { event: () => undefined },
    onChange: (pods) => void told.push(pods.map(({ spec }) => spec.containers[0]!.image!)),
  }).run(ended.signal, () => undefined);
  await expect.poll(() => told).toEqual([["first"]]);

  rmSync(file);
  writeFileSync(file, text);
  await expect.poll(() => told).toEqual([["first"], [], ["first"]]);

  writeFileSync(join(directory, ".next"), text);
  renameSync(join(directory, ".next"), file); // the same again in its place: nothing is anew
  writeFileSync(join(directory, "other.yaml"), manifest("other", "second"));
  await expect.poll(() => told.slice(3)).toEqual([["second", "first"]]);

  writeFileSync(file, text.slice(0, -30)); // no pod can be made of that
  writeFileSync(join(directory, "third.yaml"), manifest("third", "third"));
  await expect.poll(() => told.slice(4)).toEqual([["second", "third", "first"]]);

  ended.abort();
  await ending;
  rmSync(directory, { recursive: true });
});

test("a manifest may have a number that no double holds: another one makes it another pod", () => {
  const uid = (seconds: string) => podFromManifest(manifest("web", "i").replace("spec: {", `spec: {terminationGracePeriodSeconds: ${seconds}, `), { nodeName: "n1", path: "/p", nowMs: 0, complete: () => undefined }).metadata.uid;
  expect(new Set(["9223372036854775806", "9223372036854775807"].map(uid)).size).toBe(2);
});

test("nothing evicts a pod of a manifest, nor after a while", () => {
  const tolerations = (text: string) => podFromManifest(manifest("web", "i").replace("spec: {", `spec: {tolerations: [${text}], `), { nodeName: "n1", path: "/p", nowMs: 0, complete: () => undefined }).spec.tolerations;
  expect(tolerations("{operator: Exists, effect: NoExecute, tolerationSeconds: 300}, {key: a, operator: Exists}")).toEqual([{ operator: "Exists", effect: "NoExecute" }, { key: "a", operator: "Exists" }]);
  expect(tolerations("{key: a, operator: Exists, effect: NoExecute}")).toEqual([{ key: "a", operator: "Exists", effect: "NoExecute" }, { operator: "Exists", effect: "NoExecute" }]);
});
