import { expect, test } from "vitest";
import type { ClusterTrustBundleProjection } from "../../../core/api/gen/core.v1.ts";
import { notFound } from "../../../core/api/meta/status-error.ts";
import { toPem } from "../../../core/pki/pem.ts";
import type { Client } from "../../../core/client/client.ts";
import { servedBundles, trustAnchors } from "./trust-anchors.ts";

const pem = (...names: string[]): string => names.map((name) => toPem("CERTIFICATE", Buffer.from(name))).join("");
const bundle = (name: string, trustBundle: string, { signerName, labels }: { readonly signerName?: string; readonly labels?: Record<string, string> } = {}) => ({ metadata: { name, labels }, spec: { signerName, trustBundle } }) as never;
const BUNDLES = [
  bundle("plain", pem("a", "b", "a")), bundle("e.com:s:one", pem("c"), { signerName: "e.com/s", labels: { tier: "1" } }), bundle("e.com:s:two", `text\n${pem("d", "c")}`, { signerName: "e.com/s", labels: { tier: "2" } }),
];

test.each<[Omit<ClusterTrustBundleProjection, "path">, string]>([
  [{ name: "plain" }, pem("a", "b")],
  [{ signerName: "e.com/s", labelSelector: {} }, pem("c", "d")],
  [{ signerName: "e.com/s", labelSelector: { matchLabels: { tier: "1" } } }, pem("c")],
  [{ signerName: "e.com/s", optional: true }, ""], // without a selector there is nothing
  [{ name: "other", optional: true }, ""],
])("%j", (projection, expected) => expect(trustAnchors({ path: "ca", ...projection }, BUNDLES)).toBe(expected));

test.each<[Omit<ClusterTrustBundleProjection, "path">, string]>([
  [{ name: "other" }, 'while getting ClusterTrustBundle: clustertrustbundle.certificates.k8s.io "other" not found'],
  [{ signerName: "e.com/s" }, "combination of signerName and labelSelector matched zero ClusterTrustBundles"],
  [{}, "ClusterTrustBundle projection requires either name or signerName to be set"],
])("%j cannot be had", (projection, message) => expect(() => trustAnchors({ path: "ca", ...projection }, BUNDLES)).toThrow(message));

test.each<[served: readonly string[], found: string[]]>([[["v1beta1", "v1alpha1"], ["of v1beta1"]], [["v1alpha1"], ["of v1alpha1"]], [[], []]])("bundles that are served in %j are %j", async (served, found) => {
  const client = {
    resource: ({ version }: { readonly version: string }) => ({ list: async () => { if (!served.includes(version)) throw notFound({ group: "certificates.k8s.io", resource: "clustertrustbundles" }, ""); return { items: [bundle(`of ${version}`, "")] }; } }),
  } as unknown as Client;
  expect((await servedBundles(client, new AbortController().signal)).map(({ metadata }) => metadata.name)).toEqual(found);
});
