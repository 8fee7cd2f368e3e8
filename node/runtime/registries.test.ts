import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { renderContainerdConfig } from "./containerd-config.ts";
import { runtimePaths } from "./paths.ts";
import { decodeRegistries, hostsFiles, NO_REGISTRIES, registryAuths, writeHostsFiles } from "./registries.ts";

const registries = decodeRegistries({
  mirrors: { "docker.io": { endpoint: ["https://mirror.example.com:5000", "cache.example.com/hub"] }, "*": { endpoint: ["http://all.example.com"] } },
  configs: { "mirror.example.com:5000": { auth: { username: "u", password: "p" }, tls: { ca_file: "/ca.pem", cert_file: "/c.pem", key_file: "/k.pem" } }, "private.example.com": { tls: { insecure_skip_verify: true } }, "docker.io": { auth: { auth: "dTpw" } } },
});

test("mirrors and certificates become containerd's hosts.toml", () => {
  expect(Bun.TOML.parse(hostsFiles(registries).get("docker.io")!)).toEqual({
    server: "https://registry-1.docker.io",
    host: {
      "https://mirror.example.com:5000": { capabilities: ["pull", "resolve"], ca: "/ca.pem", client: [["/c.pem", "/k.pem"]] },
      "https://cache.example.com/hub": { capabilities: ["pull", "resolve"], override_path: true },
    },
  });
  expect(Bun.TOML.parse(hostsFiles(registries).get("_default")!)).toEqual({ host: { "http://all.example.com": { capabilities: ["pull", "resolve"] } } });
  expect(Bun.TOML.parse(hostsFiles(registries).get("private.example.com")!)).toEqual({ server: "https://private.example.com", skip_verify: true });
});

test("credentials stand in containerd's configuration", () => {
  const settings = { pauseImage: "p", snapshotter: "overlayfs", canLowerOomScore: true, hasApparmor: false, logLevel: "info", cniBinDirs: [], cniConfDir: "/c", registryAuths: registryAuths(registries) } as const;
  const config = Bun.TOML.parse(renderContainerdConfig(runtimePaths("/data"), settings)) as { plugins: Record<string, { registry?: { configs: unknown } }> };
  expect(config.plugins["io.containerd.cri.v1.images"]?.registry?.configs).toEqual({ "mirror.example.com:5000": { auth: { username: "u", password: "p" } }, "registry-1.docker.io": { auth: { auth: "dTpw" } } });
});

test.each([
  [{ mirror: {} }, "registries.yaml: there is no mirror; there are mirrors, configs"],
  [{ mirrors: { "docker.io": { endpoint: "https://x" } } }, "mirrors.docker.io.endpoint: must be a list of URLs"],
  [{ mirrors: { "docker.io": { rewrite: { a: "b" } } } }, "mirrors.docker.io.rewrite: containerd cannot rewrite names of repositories"],
  [{ mirrors: { "a/b": {} } }, 'mirrors.a/b: "a/b" is no host of a registry'],
  [{ configs: { x: { tls: { insecure_skip_verify: "sometimes" } } } }, "configs.x.tls.insecure_skip_verify: must be true or false"],
  [{ configs: { x: { auth: { password: ["p"] } } } }, "configs.x.auth.password: must be a text"],
  [{ configs: { x: { tls: { ca: "/x" } } } }, "configs.x.tls: there is no ca; there are cert_file"],
])("%j is refused: %s", (value, message) => {
  expect(() => decodeRegistries(value)).toThrow(message);
});

test("a password of digits is one, false is false however it is written, a host may come with its scheme, and what is empty says nothing", () => {
  const read = decodeRegistries({ mirrors: "", configs: { "https://x:5000/": { auth: { username: 7, password: "0123", auth: "" }, tls: { insecure_skip_verify: "false" } } } });
  expect(registryAuths(read)).toEqual(new Map([["x:5000", { username: "7", password: "0123" }]]));
  expect(hostsFiles(read).get("x:5000")).not.toContain("skip_verify");
  expect([decodeRegistries(""), decodeRegistries(null)]).toEqual([NO_REGISTRIES, NO_REGISTRIES]);
});

test("files of before go, those of others stay", () => {
  const directory = mkdtempSync(join(tmpdir(), "certs-"));
  try {
    mkdirSync(join(directory, "others.example.com"));
    writeFileSync(join(directory, "others.example.com", "hosts.toml"), "server = 'x'\n");
    writeHostsFiles(directory, hostsFiles(registries));
    expect(existsSync(join(directory, "docker.io", "hosts.toml"))).toBe(true);
    writeHostsFiles(directory, new Map());
    expect([existsSync(join(directory, "docker.io")), readFileSync(join(directory, "others.example.com", "hosts.toml"), "utf8")]).toEqual([false, "server = 'x'\n"]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
