import { chmodSync, mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { addonModule } from "./native-addon.ts";

/** What the module's last resort loads, where libc has no memfd_create: run with a dlopen that only tells the path. */
async function loadedFrom(temporary: string): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), "addon-"));
  const addon = join(directory, "a.node");
  writeFileSync(addon, "an addon");
  const text = addonModule({ package: "classic-level", module: /x/, exports: ["open"], sources: [], flags: [] }, addon, "linux");
  const script = text.replace(/^import embedded .*$/m, `const embedded = ${JSON.stringify(addon)};`).replace(/^import (\{.*\}) from (".*?");/gm, "const $1 = require($2);").replace('"libc.so.6"', '"no-such-library"');
  writeFileSync(join(directory, "main.cjs"), `process.dlopen = (target, path) => { console.log(path); target.exports = { open() {} }; };\n${script}\nmodule.exports.open();\n`);
  const child = Bun.spawn([process.execPath, join(directory, "main.cjs")], { env: { ...process.env, TMPDIR: temporary }, stdout: "pipe", stderr: "pipe" });
  const [out, errors] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  if (await child.exited !== 0) throw new Error(errors);
  return out.trim();
}

test("an addon that must be a file is one that nobody else may have put there", async () => {
  const temporary = mkdtempSync(join(tmpdir(), "native-"));
  const own = join(temporary, `coracle-native-${process.getuid!()}`);
  expect(await loadedFrom(temporary)).toMatch(new RegExp(`^${RegExp.escape(own)}/classic-level-[0-9a-f]{16}\\.node$`));
  chmodSync(own, 0o777); // as one that another user has made before us and filled
  const [name] = readdirSync(own) as [string];
  chmodSync(join(own, name), 0o700);
  writeFileSync(join(own, name), "somebody else's");
  expect((await loadedFrom(temporary)).startsWith(`${own}-`)).toBe(true);
});
