import { expect, test } from "vitest";
import { ConfigError } from "./config.ts";
import { installedSettings, shellWords } from "./installed.ts";

const machine = (files: Readonly<Record<string, string>>, forbidden: readonly string[] = []) => (path: string): string | undefined => {
  const name = path.replace("/etc/coracle/", "");
  if (forbidden.includes(name)) throw new ConfigError(`${path} cannot be read`, { cause: Object.assign(new Error("no"), { code: "EACCES" }) });
  return files[name];
};
const where = (sources: Parameters<typeof installedSettings>[0]) => {
  const { dataDir, writeKubeconfig } = installedSettings(sources);
  return [dataDir, writeKubeconfig];
};

test("words are what sh makes of them", () => {
  expect(shellWords(`'server' '--node-name' 'it'\\''s' --x="a \\"b\\" c" ''  d\\ e\n`)).toEqual(["server", "--node-name", "it's", '--x=a "b" c', "", "d e"]);
});

test("tools find what the installed server was told: the caller first, then its flags, its variables, its file", () => {
  const files = { "coracle.args": "'server' '--data-dir' '/srv/my data' '--disable' 'dns' '--disable-agent' \n", "coracle.env": "CORACLE_TOKEN='x y'\nCORACLE_WRITE_KUBECONFIG='/root/it'\\''s'\n", "config.yaml": "data-dir: /from/file\nwrite-kubeconfig: /from/file\n" };
  expect(where({ env: {}, readFile: machine({}) })).toEqual(["/var/lib/coracle", "/etc/coracle/coracle.yaml"]);
  expect(where({ env: {}, readFile: machine({ "config.yaml": files["config.yaml"] }) })).toEqual(["/from/file", "/from/file"]);
  expect(where({ env: {}, readFile: machine(files) })).toEqual(["/srv/my data", "/root/it's"]);
  expect(where({ env: { CORACLE_DATA_DIR: "/mine" }, readFile: machine(files) })).toEqual(["/mine", "/root/it's"]);
  expect(where({ argv: ["--data-dir", "/said"], env: { CORACLE_DATA_DIR: "/mine", CORACLE_WRITE_KUBECONFIG: "/k" }, readFile: machine(files) })).toEqual(["/said", "/k"]);
});

test("an agent's flags are an agent's", () => {
  expect(where({ env: {}, readFile: machine({ "coracle.args": "'agent' '--server=https://a:6443' '--data-dir=/a'" }) })[0]).toBe("/a");
});

test("who may not read the flags is told where things are", () => {
  const files = { installed: "data_dir='/srv/d'\nkubeconfig='/srv/k'\n" };
  expect(where({ env: {}, readFile: machine(files, ["coracle.args"]) })).toEqual(["/srv/d", "/srv/k"]);
});

test("what follows from the server's flags is known to tools as well: a restore does not ask for what the server does by itself", () => {
  const { clusterDns } = installedSettings({ env: {}, readFile: machine({ "coracle.args": "'server' '--service-cidr' '10.96.0.0/12'" }) });
  expect(clusterDns).toBe("10.96.0.10");
});
