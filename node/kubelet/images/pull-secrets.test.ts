import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Pod, Secret } from "../../../core/api/gen/core.v1.ts";
import { forbidden, notFound } from "../../../core/api/meta/status-error.ts";
import { silentLog } from "../../../core/observe/log.ts";
import { credentialsFor } from "./keyring.ts";
import { dockerConfigFiles, nodeCredentials } from "./node-credentials.ts";
import { pullCredentials, pullSecrets } from "./pull-secrets.ts";

test("Secrets that cannot be had are told of and left out, whatever is the matter with them; one without a name is none", async () => {
  const told: string[] = [];
  const asked: string[] = [];
  const objects = {
    async secret(namespace: string, name: string): Promise<Secret> {
      asked.push(`${namespace}/${name}`);
      if (name === "gone") throw notFound({ group: "", resource: "secrets" }, name);
      if (name === "secret") throw forbidden({ group: "", resource: "secrets" }, name, "no relationship found between node and this object");
      return { metadata: { name } } as Secret;
    },
  };
  const pod = { metadata: { name: "p", namespace: "n" }, spec: { containers: [], imagePullSecrets: [{ name: "" }, {}, { name: "gone" }, { name: "here" }, { name: "secret" }] } } as unknown as Pod;
  const events = { event: (_about: unknown, type: string, reason: string, message: string) => void told.push(`${type} ${reason}: ${message}`) };
  const found = await pullSecrets(pod, { objects, events, log: silentLog }, new AbortController().signal);
  expect([found.map(({ metadata }) => metadata.name), asked]).toEqual([["here"], ["n/gone", "n/here", "n/secret"]]);
  expect(told).toEqual(["Warning FailedToRetrieveImagePullSecret: Unable to retrieve some image pull secrets (gone, secret); attempting to pull the image may not succeed."]);
  await expect(pullSecrets(pod, { objects, events, log: silentLog }, AbortSignal.abort(new Error("the pod is gone")))).rejects.toThrow("the pod is gone");
});

const config = (registry: string, user: string) => JSON.stringify({ auths: { [registry]: { auth: btoa(`${user}:pass`) } } });

test("the node's own docker configuration counts for all pods: where it is looked for, and in which order", () => {
  expect(dockerConfigFiles({ dataDir: "/var/lib/kubelet", workingDir: "/run", home: "/root" }).map(({ path, legacy }) => `${path}${legacy ? " (older)" : ""}`)).toEqual([
    "/var/lib/kubelet/config.json", "/run/config.json", "/root/.docker/config.json", "/.docker/config.json",
    "/var/lib/kubelet/.dockercfg (older)", "/run/.dockercfg (older)", "/root/.dockercfg (older)", "/.dockercfg (older)",
  ]);
  expect(dockerConfigFiles({ dataDir: "/d", workingDir: "", home: "" }).map(({ path }) => path)).toEqual(["/d/config.json", "/.docker/config.json", "/d/.dockercfg", "/.dockercfg"]);
});

test("of several docker configurations the first one that can be read counts, alone; one that cannot be read is as none", () => {
  const directory = mkdtempSync(join(tmpdir(), "pull-secrets-"));
  const files = dockerConfigFiles({ dataDir: directory, workingDir: "", home: join(directory, "home") }).filter(({ path }) => path.startsWith(directory));
  const users = () => credentialsFor("registry.example/team/app:1", nodeCredentials(files, silentLog)).map(({ auth: { username } }) => username);
  try {
    expect(users()).toEqual([]);
    mkdirSync(join(directory, "home/.docker"), { recursive: true });
    writeFileSync(join(directory, "home/.dockercfg"), JSON.stringify({ "https://registry.example": { username: "oldest", password: "pass" } }));
    expect(users()).toEqual(["oldest"]);
    writeFileSync(join(directory, "home/.docker/config.json"), config("registry.example/team", "home"));
    expect(users()).toEqual(["home"]);
    writeFileSync(join(directory, "config.json"), "{");
    expect(users()).toEqual(["home"]);
    writeFileSync(join(directory, "config.json"), config("registry.example", "kubelet"));
    expect(users()).toEqual(["kubelet"]);
    writeFileSync(join(directory, "config.json"), "{}");
    expect(users()).toEqual([]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("credentials are tried in this order: those of all Secrets together, the longest match first, then the node's, then those of providers", async () => {
  const directory = mkdtempSync(join(tmpdir(), "pull-secrets-"));
  const secrets: Record<string, Partial<Secret>> = {
    host: { type: "kubernetes.io/dockerconfigjson", data: { ".dockerconfigjson": btoa(config("r.example", "host")) } }, team: { type: "kubernetes.io/dockercfg", data: { ".dockercfg": btoa(JSON.stringify({ "r.example/team": { username: "team", password: "pass" } })) } },
    other: { type: "Opaque", data: { ".dockerconfigjson": btoa(config("r.example", "other")) } }, hub: { type: "kubernetes.io/dockerconfigjson", data: { ".dockerconfigjson": btoa(config("https://index.docker.io/v1/", "hub")) } },
  };
  const sources = {
    objects: { secret: async (namespace: string, name: string) => ({ metadata: { name, namespace, uid: name }, ...secrets[name] }) as Secret }, settings: { dataDir: directory, workingDir: "", home: "" }, events: { event: () => undefined }, log: silentLog,
    credentialProviders: { credentials: async () => [{ key: "r.example", auth: { username: "provider", password: "" }, serviceAccount: { namespace: "n", name: "sa", uid: "u" } }] },
  };
  const pod = { metadata: { name: "p", namespace: "n" }, spec: { containers: [], imagePullSecrets: Object.keys(secrets).map((name) => ({ name })) } } as unknown as Pod;
  try {
    writeFileSync(join(directory, "config.json"), config("r.example", "node"));
    const tried = (await pullCredentials("r.example/team/app:1", pod, sources, new AbortController().signal)).map(({ auth, secret, serviceAccount }) => [auth.username, secret?.name ?? serviceAccount?.name]);
    expect(tried).toEqual([["team", "team"], ["host", "host"], ["node", undefined], ["provider", "sa"]]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
