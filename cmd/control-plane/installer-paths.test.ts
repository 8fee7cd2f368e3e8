/** What machines fetch that are to join. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { Readable } from "node:stream";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import type { RawAnswer } from "../../core/server/answer.ts";
import type { ServerRequest } from "../../core/server/request.ts";
import { installerPaths } from "./installer-paths.ts";

const directory = mkdtempSync(join(tmpdir(), "executables-"));
afterAll(() => rmSync(directory, { recursive: true }));
const own = join(directory, "own");
writeFileSync(own, "what runs here");
mkdirSync(join(directory, "linux-arm64"));
writeFileSync(join(directory, "linux-arm64/coracle"), "for another machine");

const paths = installerPaths({ script: "URL=@URL@\n", url: "https://[fd00::1]:6443", directory, own: { target: "linux-x64", path: own } });
const ask = async (path: string, headers: Readonly<Record<string, string>> = {}, method = "GET"): Promise<RawAnswer | undefined> => (await paths({ method, path, header: (name: string) => headers[name] } as unknown as ServerRequest, { name: "x", groups: [] })) as RawAnswer | undefined;
const text = async (answer: RawAnswer | undefined): Promise<string> => (typeof answer?.body === "string" ? answer.body : Buffer.concat(await (answer!.body as Readable).toArray()).toString());

test("the script knows where it was asked for, and takes no shell's words from a stranger for it", async () => {
  const urlFor = async (headers: Readonly<Record<string, string>>): Promise<string> => (await text(await ask("/install.sh", headers))).slice(4, -1);
  expect(await urlFor({ host: "shed.local:6443" })).toBe("https://shed.local:6443");
  expect(await urlFor({ host: "[fd00::2]:443" })).toBe("https://[fd00::2]:443");
  expect(await urlFor({ ":authority": "192.0.2.7:6443" })).toBe("https://192.0.2.7:6443");
  for (const host of ["", "x;reboot", "$(reboot)", "a b", "x:6443/y", "x\nreboot", "x:1'"]) expect(await urlFor({ host }), JSON.stringify(host)).toBe("https://[fd00::1]:6443");
});

test("executables are this server's own and those in its data directory; of others it is told how they come there", async () => {
  const own = await ask("/executables/linux-x64/coracle");
  expect(own).toMatchObject({ status: 200, headers: { "content-length": "14" } });
  expect(await text(own)).toBe("what runs here");
  expect(await text(await ask("/executables/linux-arm64/coracle"))).toBe("for another machine");
  const missing = await ask("/executables/windows-x64/coracle.exe");
  expect(missing).toMatchObject({ status: 404, body: expect.stringContaining("npm run build -- --target windows-x64") as string });
  for (const path of ["/executables/linux-x64/../own", "/executables/x/coracle", "/executables/", "/executables/linux-x64/passwd"]) expect(await ask(path)).toBeUndefined();
  expect(await ask("/install.sh", {}, "POST")).toBeUndefined();
});
