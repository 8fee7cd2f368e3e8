import { expect, test } from "vitest";
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import { keyOf } from "../../../core/api/meta/object-meta.ts";
import { alreadyExists, forbidden } from "../../../core/api/meta/status-error.ts";
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

test("who finds an old mirror gone already does not forget the one that was made in its place", async () => {
  const hash = (text: string, annotation: string): Pod => ({ ...pod("shop", annotation), metadata: { ...pod("shop", annotation).metadata, uid: text, annotations: { [annotation]: text } } }) as unknown as Pod;
  const busy = Promise.withResolvers<void>();
  const done: string[] = [];
  const client = {
    resource: () => ({
      create: async (mirror: Pod) => {
        done.push("made");
        if (done.filter((what) => what === "made").length > 1) throw alreadyExists({ group: "", resource: "pods" }, "web-n1");
        return { ...mirror, metadata: { ...mirror.metadata, uid: "new" } };
      },
      delete: async ({ metadata: { namespace, uid } }: Pod) => {
        if (namespace === "left") await busy.promise;
        done.push(`removed ${namespace} ${uid}`);
      },
    }),
  } as unknown as Client;
  const mirrors = new MirrorPods({ client, log: silentLog, signal: new AbortController().signal, node: () => ({ metadata: { name: "n1" } }) as never });
  mirrors.observe(pod("left", CONFIG_MIRROR), false);
  mirrors.observe(hash("old", CONFIG_MIRROR), false);
  const wanted = hash("new", CONFIG_HASH);
  const slow = mirrors.reconcile([wanted], new Set()); // waits for another mirror's end
  await mirrors.reconcile([wanted], new Set([keyOf(pod("left", CONFIG_MIRROR))]));
  expect(mirrors.of(wanted)?.metadata.uid).toBe("new");
  busy.resolve();
  await slow;
  expect([done.filter((what) => what === "made"), mirrors.of(wanted)?.metadata.uid]).toEqual([["made"], "new"]);
});
