import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { silentLog } from "../../core/observe/log.ts";
import { removeDamagedBlobs, removeDamagedUuid } from "./damaged-blobs.ts";

test("what is small and not what its name says is removed, and forgotten by containerd; layers are left alone", async () => {
  const root = mkdtempSync(join(tmpdir(), "blobs-")), directory = join(root, "io.containerd.content.v1.content/blobs/sha256");
  try {
    const ran: string[] = [];
    const look = (): Promise<string[]> => removeDamagedBlobs({ root, binDir: "/bin", socket: "/s" }, {
      log: silentLog, signal: new AbortController().signal,
      run: async (_, args) => { ran.push(args.slice(-3).join(" ")); return { exitCode: 1, stdout: "", stderr: "not found" }; },
    });
    expect(await look()).toEqual([]); // of a node's first start
    mkdirSync(directory, { recursive: true });
    const put = (content: string, found = content): string => {
      const name = createHash("sha256").update(content).digest("hex");
      writeFileSync(join(directory, name), found);
      return name;
    };
    const layer = put("a layer", "x".repeat(300_000)), whole = put('{"a":1}'), [empty, cut] = [put('{"b":1}', ""), put('{"c":1}', '{"c')];
    expect((await look()).sort()).toEqual([empty, cut].map((name) => `sha256:${name}`).sort());
    expect(readdirSync(directory).sort()).toEqual([layer, whole].sort());
    expect(ran.sort()).toEqual([empty, cut].map((name) => `content rm sha256:${name}`).sort());
    expect(await look()).toEqual([]);
  } finally {
    rmSync(root, { recursive: true });
  }
});

test.each<[string, boolean]>([["1cfdd98e-0b2d-4d3b-b0de-2d7a9f4a4f4c", true], ["1cfdd98e-0b2d-4d3b-b0de-2d7a9f4a4f4c\n", true], ["1cfdd98e-0b2d-4d3b", false], ["\0".repeat(36), false], ["", false]])("containerd keeps the name %j: %j", (text, kept) => {
  const root = mkdtempSync(join(tmpdir(), "uuid-")), directory = join(root, "io.containerd.grpc.v1.introspection");
  try {
    removeDamagedUuid({ root }, silentLog); // of a node's first start
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, "uuid"), text);
    removeDamagedUuid({ root }, silentLog);
    expect(existsSync(join(directory, "uuid"))).toBe(kept);
  } finally {
    rmSync(root, { recursive: true });
  }
});
