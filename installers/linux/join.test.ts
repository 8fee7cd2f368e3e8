/** join.sh against a curl that answers as somebody between it and the server might. */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";

const directory = mkdtempSync(join(tmpdir(), "join-"));
afterAll(() => rmSync(directory, { recursive: true }));

/** 599: whether its base64 ends with "=". */
const REAL = Buffer.alloc(599, "real"), OTHER = Buffer.alloc(450, "other");

const toPem = (label: string, der: Buffer): string => `-----BEGIN ${label}-----\n${der.toString("base64").match(/.{1,64}/g)!.join("\n")}\n-----END ${label}-----\n`;

/** What is left of the CA file that the second request was made with, and whether there was one. */
function trusted(chain: string): { readonly output: string; readonly ca: string | undefined } {
  const info = join(directory, "info"), ca = join(directory, "trusted");
  rmSync(ca, { force: true });
  writeFileSync(info, `data:\n  certificate-authority-data: ${Buffer.from(chain).toString("base64")}\n`);
  writeFileSync(join(directory, "id"), "#!/bin/sh\necho 0\n", { mode: 0o755 });
  writeFileSync(join(directory, "curl"), `#!/bin/sh
for a; do [ "$last" != -o ] || out=$a; [ "$last" != --cacert ] || cp "$a" '${ca}'; last=$a; done
case " $* " in *" -k "*) cp '${info}' "$out"; printf 200 ;; *) echo no >"$out"; printf 401 ;; esac
`, { mode: 0o755 });
  const script = readFileSync("installers/linux/join.sh", "utf8").replace("@URL@", "https://server:6443");
  const hash = createHash("sha256").update(REAL).digest("hex");
  const { stdout, stderr, status } = spawnSync("sh", ["-s"], { input: script, encoding: "utf8", env: { PATH: `${directory}:/usr/bin:/bin`, TMPDIR: directory, CORACLE_TOKEN: `K10${hash}::abcdef.0123456789abcdef` } });
  expect(status).toBe(1);
  return { output: stdout + stderr, ca: existsSync(ca) ? readFileSync(ca, "utf8") : undefined };
}

const bytesOf = (pem = ""): Buffer => Buffer.from(pem.split("\n").filter((line) => !line.startsWith("-----")).join(""), "base64");

test("of what a server says its authorities are, the one whose hash the token has is believed", () => {
  const { output, ca } = trusted(toPem("CERTIFICATE", OTHER) + toPem("CERTIFICATE", REAL));
  expect(bytesOf(ca)).toEqual(REAL);
  expect(output).toContain("refuses the token");
  expect(trusted(toPem("CERTIFICATE", OTHER)).ca).toBeUndefined();
});

test.each([
  ["behind what is no base64", `${toPem("CERTIFICATE", REAL)}!\n${toPem("X509 CERTIFICATE", OTHER)}`],
  ["before the next one", `${toPem("CERTIFICATE", REAL)}!\n${toPem("TRUSTED CERTIFICATE", OTHER)}${toPem("CERTIFICATE", OTHER)}`],
  ["within it", toPem("CERTIFICATE", REAL).replace("-----END", `!\n${toPem("X509 CERTIFICATE", OTHER)}-----END`)],
])("what somebody who stands between has put %s is not believed with it", (_, chain) => {
  const { ca } = trusted(chain);
  if (ca !== undefined) expect(bytesOf(ca)).toEqual(REAL);
  expect(ca ?? "").not.toContain(OTHER.toString("base64").slice(0, 40));
});

test("of a script that has come in part nothing is done, wherever it breaks off", () => {
  const script = readFileSync("installers/linux/join.sh", "utf8"), asked = join(directory, "asked");
  writeFileSync(join(directory, "id"), `#!/bin/sh\necho >>'${asked}'\necho 1\n`, { mode: 0o755 });
  const run = (text: string): boolean => {
    rmSync(asked, { force: true });
    spawnSync("sh", ["-s"], { input: text, env: { PATH: `${directory}:/usr/bin:/bin` } });
    return existsSync(asked);
  };
  const ends = [...script].flatMap((letter, i) => (letter === "\n" || i > script.length - 40 ? [i] : []));
  expect(ends.filter((end) => run(script.slice(0, end)))).toEqual([script.length - 1]); // which lacks the last line break alone
  expect(run(script)).toBe(true);
});

test.skipIf(process.getuid?.() !== 0 || process.platform !== "linux")("where directories that anybody may write to run no programs, as on hardened machines, it is run from where programs are", () => {
  const at = join(directory, "noexec"), bin = join(directory, "bin"), info = join(directory, "info-noexec"), ran = join(directory, "ran");
  mkdirSync(at);
  writeFileSync(info, `data:\n  certificate-authority-data: ${Buffer.from(toPem("CERTIFICATE", REAL)).toString("base64")}\n`);
  writeFileSync(join(directory, "id"), "#!/bin/sh\necho 0\n", { mode: 0o755 });
  writeFileSync(join(directory, "curl"), `#!/bin/sh
for a; do [ "$last" != -o ] || out=$a; last=$a; done
case " $* " in *" -k "*) cp '${info}' "$out" ;; *) printf '#!/bin/sh\necho "$0 $*" >${ran}\n' >"$out" ;; esac; printf 200
`, { mode: 0o755 });
  writeFileSync(join(directory, "script"), readFileSync("installers/linux/join.sh", "utf8").replace("@URL@", "https://server:6443"));
  const { stdout, stderr, status } = spawnSync("unshare", ["--mount", "--propagation", "private", "sh", "-c", `mount -t tmpfs -o noexec tmpfs ${at} && sh -s - --node-name edge-2 <${directory}/script; status=$?; ls -A ${at} ${bin}; exit $status`], {
    encoding: "utf8", env: { PATH: `${directory}:/usr/sbin:/usr/bin:/sbin:/bin`, TMPDIR: at, INSTALL_CORACLE_BIN_DIR: bin, CORACLE_TOKEN: `K10${createHash("sha256").update(REAL).digest("hex")}::abcdef.0123456789abcdef` },
  });
  expect(status, stdout + stderr).toBe(0);
  expect(readFileSync(ran, "utf8")).toMatch(new RegExp(`^${bin}/\\.coracle\\.\\w{6}/coracle install --node-name edge-2\n$`));
  expect(stdout).toMatch(/bin:\n\n.*noexec:\n$/); // nothing is left
});
