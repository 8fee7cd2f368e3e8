import { expect, test } from "vitest";
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import { keyOf } from "../../../core/api/meta/object-meta.ts";
import { forbidden } from "../../../core/api/meta/status-error.ts";
import type { Client } from "../../../core/client/client.ts";
import { silentLog } from "../../../core/observe/log.ts";
import { CONFIG_HASH, CONFIG_MIRROR } from "./manifest.ts";
import { MirrorPods } from "./mirrors.ts";

const pod = (namespace: string, annotation: string): Pod => ({ apiVersion: "v1", kind: "Pod", metadata: { name: "web-n1", namespace, uid: namespace, annotations: { [annotation]: "h" } }, spec: { containers: [] } }) as unknown as Pod;

test("a mirror whose namespace is not there keeps no other from being made, one that cannot be removed none from going", async () => {
  const done: string[] = [];
  const refused = (namespace: string): void => { if (namespace.startsWith("gone")) throw forbidden({ group: "", resource: "pods" }, "web-n1", "not now"); };
  const client = {
    resource: () => ({
      create: async (mirror: Pod) => { refused(mirror.metadata.namespace!); done.push(`made ${keyOf(mirror)}`); return mirror; },
      delete: async ({ metadata: { namespace = "" } }: Pod) => { refused(namespace); done.push(`removed ${namespace}`); },
    }),
  } as unknown as Client;
  const mirrors = new MirrorPods({ client, log: silentLog, signal: new AbortController().signal, node: () => ({ metadata: { name: "n1" } }) as never });
  for (const namespace of ["gone-too", "left"]) mirrors.observe(pod(namespace, CONFIG_MIRROR), false);
  await mirrors.reconcile(["gone", "shop"].map((namespace) => pod(namespace, CONFIG_HASH)), new Set());
  expect(done).toEqual(["removed left", "made shop/web-n1"]);
});
