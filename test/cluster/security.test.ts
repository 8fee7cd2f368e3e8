/** Who gets in, what they may do, what pods may be and how Secrets lie on disk, on the compiled binary: a control plane alone. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { systemRandom } from "../../core/lifecycle/random.ts";
import { altNamesOf } from "../../core/pki/alt-names.ts";
import { authority, generateKey, keyPem, selfSign } from "../../core/pki/authority.ts";
import { spkiOf } from "../../core/pki/signature.ts";
import { eventually, Host, switchDown } from "./host.ts";

const PORT = 9443;
const ISSUER = `https://localhost:${PORT}`;
let host: Host;
let path: (name: string) => string;
let flags: string[];

const yaml = (kind: string, rest: object, apiVersion = "apiserver.config.k8s.io/v1"): string => JSON.stringify({ apiVersion, kind, ...rest });
const kubeconfig = (where: string, ca: string): string => yaml("Config", {
  clusters: [{ name: "a", cluster: { server: `${ISSUER}/${where}`, "certificate-authority-data": Buffer.from(ca).toString("base64") } }], users: [{ name: "a", user: {} }],
  contexts: [{ name: "a", context: { cluster: "a", user: "a" } }], "current-context": "a",
}, "v1");

beforeAll(async () => {
  host = await Host.up("security", "172.30.0.52");
  path = (name) => join(host.directory, name);
  const period = { notBeforeMs: Date.now() - 60_000, notAfterMs: Date.now() + 3_600_000 };
  const [caKey, key] = [await generateKey(), await generateKey()];
  const ca = authority(selfSign("elsewhere", { key: caKey, random: systemRandom, ...period }), keyPem(caKey), systemRandom);
  const authentication = {
    jwt: [{
      issuer: { url: ISSUER, audiences: ["cluster"], certificateAuthority: ca.bundlePem },
      claimMappings: { username: { expression: '"oidc:" + claims.sub' }, groups: { expression: "claims.roles" } }, claimValidationRules: [{ expression: "claims.verified == true", message: "not verified" }],
    }],
    anonymous: { enabled: true, conditions: [{ path: "/readyz" }] },
  };
  const webhook = {
    timeout: "3s", subjectAccessReviewVersion: "v1", matchConditionSubjectAccessReviewVersion: "v1", failurePolicy: "Deny", connectionInfo: { type: "KubeConfigFile", kubeConfigFile: path("authz.kc") },
    matchConditions: [{ expression: "'elsewhere' in request.groups" }],
  };
  const files = {
    "elsewhere.crt": ca.issue({ subject: { commonName: "elsewhere", organizations: [] }, spki: spkiOf(key), usages: ["digital signature", "server auth"], altNames: altNamesOf(["localhost"]), ...period }), "elsewhere.key": keyPem(key),
    "authn.kc": kubeconfig("authn", ca.bundlePem), "authz.kc": kubeconfig("authz", ca.bundlePem), "authn.yaml": yaml("AuthenticationConfiguration", authentication),
    "authz.yaml": yaml("AuthorizationConfiguration", { authorizers: [{ type: "Webhook", name: "elsewhere", webhook }, { type: "Node", name: "node" }, { type: "RBAC", name: "rbac" }] }),
    "admission.yaml": yaml("AdmissionConfiguration", { plugins: [{ name: "PodSecurity", configuration: JSON.parse(yaml("PodSecurityConfiguration", { defaults: { warn: "baseline" } }, "pod-security.admission.config.k8s.io/v1")) }] }),
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(path(name), text);
  const [bun, script] = [host.bring(process.execPath), host.bring(join(import.meta.dirname, "identity-provider.js"))];
  await host.sh(`setsid ${bun} ${script} ${PORT} ${path("elsewhere.crt")} ${path("elsewhere.key")} ${path("elsewhere.log")} </dev/null >${path("elsewhere.out")} 2>&1 &`);
  const settings = [`authentication-config=${path("authn.yaml")}`, `authentication-token-webhook-config-file=${path("authn.kc")}`, "authentication-token-webhook-version=v1", `authorization-config=${path("authz.yaml")}`, `admission-control-config-file=${path("admission.yaml")}`];
  flags = ["--disable-agent", "--secrets-encryption", ...settings.flatMap((setting) => ["--kube-apiserver-arg", setting])];
  await start();
});
afterAll(async () => {
  await host?.[Symbol.asyncDispose]();
  await switchDown();
});

async function start(): Promise<void> {
  await host.start(...flags);
  await eventually("the server is ready", async () => (await host.kubectl("get", "--raw", "/readyz")) === "ok");
}

/** What is printed, errors too. */
async function as(token: string, ...args: readonly string[]): Promise<string> {
  const { stdout, stderr } = await host.run([host.binary, "kubectl", "--kubeconfig", "/dev/null", "--server", "https://127.0.0.1:6443", "--insecure-skip-tls-verify", "--token", token, ...args]);
  return stdout + stderr;
}
const issued = (claims: object): Promise<string> => host.sh(`curl -sk '${ISSUER}/token?${encodeURIComponent(JSON.stringify(claims))}'`);
const secretsEncrypt = (command: string): Promise<string> => host.ok([host.binary, "secrets-encrypt", command]);

test("an issuer's token: its claims are a user, if they pass; roles are bound to its groups", async () => {
  const jane = await issued({ sub: "jane", roles: ["readers"], verified: true });
  expect(JSON.parse(await as(jane, "auth", "whoami", "-o", "json"))).toMatchObject({ status: { userInfo: { username: "oidc:jane", groups: ["readers", "system:authenticated"] } } });
  expect(await as(jane, "get", "services")).toContain('User "oidc:jane" cannot list resource "services"');
  await host.kubectl("create", "clusterrolebinding", "readers", "--clusterrole=view", "--group=readers");
  await eventually("the binding counts", async () => (await as(jane, "get", "services")).includes("kubernetes"));
  expect(await as(await issued({ sub: "joe", roles: [], verified: false }), "auth", "whoami")).toContain("You must be logged in to the server");
});

test("somebody else knows the token, and says what its owner may; the answers are remembered", async () => {
  expect(await as("opaque", "auth", "whoami")).toMatch(/Username\s+known-elsewhere/);
  expect(await as("opaque", "get", "configmaps", "-n", "kube-system")).toContain("extension-apiserver-authentication");
  expect(await as("opaque", "get", "nodes")).toContain('User "known-elsewhere" cannot list resource "nodes" in API group "" at the cluster scope: nobody sees nodes');
  expect(await as("opaque", "get", "secrets")).toContain("is forbidden");
  expect(await as("unknown", "get", "configmaps")).toContain("You must be logged in to the server");
  const asked = readFileSync(path("elsewhere.log"), "utf8").trim().split("\n").map((line) => JSON.parse(line) as { path: string; spec: { token?: string } | null });
  expect(asked.filter(({ spec }) => spec?.token === "opaque")).toHaveLength(1);
});

test("without credentials one comes as far as the file said at the start: one that says otherwise later is refused", async () => {
  const code = (where: string): Promise<string> => host.sh(`curl -sk -o /dev/null -w '%{http_code}' https://127.0.0.1:6443${where}`);
  expect([await code("/readyz"), await code("/version")]).toEqual(["200", "401"]);
  writeFileSync(path("authn.yaml"), readFileSync(path("authn.yaml"), "utf8").replace('"/readyz"', '"/version"'));
  await eventually("the file is read again", async () => /apiserver_authentication_config_controller_automatic_reloads_total\{.*status="failure"\} 1/.test(await host.kubectl("get", "--raw", "/metrics")));
  expect([await code("/readyz"), await code("/version")]).toEqual(["200", "401"]);
});

test("pods must be as their namespace asks; a workload's template is warned of", async () => {
  await host.kubectl("create", "namespace", "strict");
  await host.kubectl("label", "namespace", "strict", "pod-security.kubernetes.io/enforce=restricted");
  const told = 'allowPrivilegeEscalation != false (container "x" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "x" must set securityContext.capabilities.drop=["ALL"])';
  const run = await host.run([host.binary, "kubectl", "run", "x", "--image=x", "-n", "strict"]);
  expect(run.stderr).toContain(`pods "x" is forbidden: violates PodSecurity "restricted:latest": ${told}`);
  const deployed = await host.run([host.binary, "kubectl", "create", "deployment", "x", "--image=x", "-n", "strict"]);
  expect([deployed.code, deployed.stderr]).toEqual([0, expect.stringContaining(`Warning: would violate PodSecurity "restricted:latest": ${told}`)]);
  const elsewhere = await host.run([host.binary, "kubectl", "run", "x", "--image=x", "--overrides", '{"spec":{"hostPID":true}}']);
  expect(elsewhere.stderr).toContain('Warning: would violate PodSecurity "baseline:latest": host namespaces (hostPID=true)');
});

test("Secrets lie encrypted; keys are rotated while the server runs; a restart, and taking it back", async () => {
  const onDisk = (text: string): Promise<string> => host.sh(`grep -rlaF ${text} ${host.dataDir}/server/db || true`);
  await host.kubectl("create", "secret", "generic", "s", "--from-literal=password=correct-horse-battery");
  await host.kubectl("create", "configmap", "c", "--from-literal=text=lies-open");
  expect([await onDisk("Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5"), await onDisk("lies-open")]).toEqual(["", expect.stringContaining("/db/")]);
  await secretsEncrypt("rotate-keys");
  await eventually("all are under the new key", async () => /yes, since[^*]*\* secretbox {2}key2 {2}1 Secrets/.test(await secretsEncrypt("status")));
  const password = (): Promise<string> => host.kubectl("get", "secret", "s", "-o", "jsonpath={.data.password}");
  await host.kill("TERM");
  expect(await host.ok([host.binary, "check"])).toContain("nothing is wrong");
  await start();
  expect(await password()).toBe("Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5");
  await secretsEncrypt("prune");
  await secretsEncrypt("disable");
  await eventually("none is encrypted", async () => (await secretsEncrypt("status")).includes("not encrypted  1 Secrets"));
  expect([await onDisk("Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5"), await password()]).toEqual([expect.stringContaining("/db/"), "Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5"]);
});
