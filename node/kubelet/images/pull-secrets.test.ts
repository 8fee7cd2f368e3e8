import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Pod, Secret } from "../../../core/api/gen/core.v1.ts";
import { forbidden, notFound } from "../../../core/api/meta/status-error.ts";
import { silentLog } from "../../../core/observe/log.ts";
import { credentialsFor } from "./keyring.ts";
import { nodeCredentials, pullSecrets } from "./pull-secrets.ts";

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

test("the node's own docker configuration counts for all pods; one that cannot be read is as none", () => {
  const directory = mkdtempSync(join(tmpdir(), "pull-secrets-"));
  try {
    expect(nodeCredentials(directory, silentLog)).toEqual([]);
    writeFileSync(join(directory, "config.json"), JSON.stringify({ auths: { "registry.example/team": { auth: btoa("me:pass") } } }));
    expect(credentialsFor("registry.example/team/app:1", nodeCredentials(directory, silentLog))).toEqual([{ username: "me", password: "pass" }]);
    writeFileSync(join(directory, "config.json"), "{");
    expect(nodeCredentials(directory, silentLog)).toEqual([]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
