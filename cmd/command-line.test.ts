/** What the commands say, asked as a user asks them. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { mustReach } from "./tools.ts";

function coracle(...argv: string[]): { readonly code: number | null; readonly out: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, ["cmd/main.ts", ...argv], { encoding: "utf8", timeout: 60_000, env: { PATH: process.env["PATH"], CORACLE_CONFIG: "/dev/null" } });
  return { code: status, out: stdout + stderr };
}

test.each(["server", "agent", "token", "node", "simulate", "explain-scheduling", "crictl", "images", "secrets-encrypt", "snapshot", "check"])("coracle %s --help tells how it is used, and succeeds", (command) => {
  const { code, out } = coracle(command, "--help");
  expect([code, out.split("\n")[0]]).toEqual([0, expect.stringMatching(`^Usage: coracle ${command}`)]);
});

test.each([
  [["make-coffee"], 'coracle: unknown command "make-coffee"'],
  [["secrets-encrypt", "make-coffee"], 'coracle: unknown command "make-coffee"'],
  [["token", "make-coffee"], 'coracle: unknown command "make-coffee"'],
  [["node", "make-coffee"], 'coracle: unknown command "make-coffee"'],
  [["constructor"], 'coracle: unknown command "constructor"'],
  ...["token", "node", "snapshot"].map((command): [string[], string] => [[command, "constructor", "x"], 'coracle: unknown command "constructor"']),
  [["node", "--make-coffee", "list"], "coracle: unknown flag --make-coffee"],
  [["token", "create", "7d"], 'coracle: "coracle token create" takes flags alone, and "7d" is none; see "coracle token --help"'],
  [["crictl", "logs"], "coracle: crictl logs: of which? see: coracle crictl ps -a"],
  [["crictl", "ps", "web"], 'coracle: crictl ps takes no names, and there is "web"'],
  [["crictl", "inspectp"], "coracle: crictl inspectp: of which? see: coracle crictl pods"],
  [["check-settings", "serve"], 'coracle: a machine is a server or an agent, and "serve" is neither'],
  [["check-settings", "server", "--kube-scheduler-arg", "make-coffee=1"], expect.stringMatching(/^coracle: --kube-scheduler-arg make-coffee=1: not a setting we have/)],
  [["check-settings", "server", "--kube-apiserver-arg", "feature-gates=Coffee=true"], "coracle: --kube-apiserver-arg feature-gates: unrecognized feature gate: Coffee"],
  [["check-settings", "server", "--kube-apiserver-arg", "authorization-mode=RBAC,Nodes"], expect.stringMatching(/^coracle: authorization-mode "Nodes" is not a valid mode/)],
  [["check-settings", "server", "--kube-apiserver-arg", "event-ttl=soon"], 'coracle: --kube-apiserver-arg event-ttl must be a duration such as 30s or 1h30m, not "soon"'],
  [["check-settings", "server", "--data-dir", "/nowhere", "--node-ip", "2001:db8::5"], expect.stringMatching(/^coracle: pods will not reach .* 2001:db8::5 is of another family than --service-cidr 10\.43\.0\.0\/16\. Give a new cluster ranges of IPv6, as --cluster-cidr fd00:42::/)],
  [["check-settings", "agent", "--server", "https://h:6443", "--nodeport-addresses", "eth0"], expect.stringMatching(/^coracle: --nodeport-addresses: "eth0" is no address range/)],
  [["check-settings", "server", "--advertise-address", "here"], 'coracle: --advertise-address: "here" is no IP address'],
  [["check-settings", "agent", "--server", "https://h:6443", "--node-label", "edge"], 'coracle: --node-label "edge": must be name=value'],
  [["images", "import", "/none.tar"], "coracle: /none.tar: no such file"],
  [["check-settings", "server", "--cluster-domain", "Foo_"], expect.stringMatching(/^coracle: --cluster-domain: "Foo_" is no domain/)],
  [["check-settings", "server", "--tls-san", "a b"], 'coracle: --tls-san: "a b" is neither an IP address nor a name that a server could be found by'],
  [["explain-scheduling", "a/b/c"], 'coracle: "a/b/c" is neither POD nor NAMESPACE/POD'],
  [["images", "list", "x"], 'coracle: images list takes no names, and there is "x"'],
  [["node", "revoke", "-x"], "coracle: unknown flag -x"],
  [["secrets-encrypt", "status", "x"], 'coracle: "coracle secrets-encrypt status" takes no names, and there is "x"'],
  [["secrets-encrypt", "status", "--config", "/none.yaml"], "coracle: --config /none.yaml: no such file"],
  [["snapshot", "list", "x"], 'coracle: "coracle snapshot list" takes no names, and there is "x"'],
  [["version", "x"], 'coracle: "coracle version" takes nothing, and there is "x"'],
  [["images", "remove"], "coracle: images remove needs the name of an image"],
])("%j is asked for what cannot be: one line that says so, and 2", (argv, line) => {
  const { code, out } = coracle(...argv);
  expect([code, out.split("\n")[0]]).toEqual([2, line]);
});

test.skipIf(process.geteuid?.() !== 0)("an agent tells what its kubelet cannot be given before it joins with it", () => {
  const dataDir = mkdtempSync(join(tmpdir(), "agent-"));
  const { code, out } = coracle("agent", "--server", "https://127.0.0.1:1", "--token", "abcdef.0123456789abcdef", "--data-dir", dataDir, "--kubelet-arg", "max-pods=many");
  rmSync(dataDir, { recursive: true, force: true });
  expect([code, out]).toEqual([2, expect.stringContaining("--kubelet-arg max-pods must be a whole number")]);
});

test("what another user may not read is not said to be missing", () => {
  const access = (code: string) => (): never => { throw Object.assign(new Error(code), { code }); };
  expect(() => mustReach("/var/lib/coracle/server/db", access("EACCES"))).toThrow("/var/lib/coracle/server/db: this user may not read it; run this as root");
  expect(() => mustReach("/var/lib/coracle/server/db", access("ENOENT"))).not.toThrow();
});
