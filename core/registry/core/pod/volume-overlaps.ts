/** Files of one volume that lie in each other's way. Source: kubernetes v1.36 pkg/api/pod/warnings.go warningsForOverlappingVirtualPaths */
import type { Volume, VolumeProjection } from "../../../api/gen/core.v1.ts";
import { goQuote } from "../../../api/meta/go-quote.ts";
import { withoutLast } from "../../../api/meta/linear.ts";

interface File { readonly path: string; readonly source: string }

export function* overlapWarnings(volumes: readonly Volume[]): Iterable<string> {
  for (const { name, configMap, secret, downwardAPI, projected } of volumes) {
    if (configMap?.items) yield* within(name, `ConfigMap ${goQuote(configMap.name ?? "")}`, filesOf(configMap.items, ""));
    if (secret?.items) yield* within(name, `Secret ${goQuote(secret.secretName ?? "")}`, filesOf(secret.items, ""));
    if (downwardAPI?.items) yield* within(name, "DownwardAPI", filesOf(downwardAPI.items, ""));
    if (!projected) continue;
    const files: File[] = [];
    for (const source of projected.sources ?? []) {
      if (Object.values(source).every((part) => part === undefined)) yield `volume ${goQuote(name)} (Projected) has no sources provided`;
      files.push(...projectedFiles(source));
    }
    yield* within(name, "Projected", files);
  }
}

function filesOf(items: readonly { readonly path?: string | undefined }[], source: string): File[] { return items.map(({ path }) => ({ path: path ?? "", source })); }

function projectedFiles({ configMap, secret, downwardAPI, serviceAccountToken, clusterTrustBundle, podCertificate }: VolumeProjection): File[] {
  if (configMap?.items) return filesOf(configMap.items, `ConfigMap ${goQuote(configMap.name ?? "")}`);
  if (secret?.items) return filesOf(secret.items, `Secret ${goQuote(secret.name ?? "")}`);
  if (downwardAPI?.items) return filesOf(downwardAPI.items, "DownwardAPI");
  if (serviceAccountToken) return [{ path: serviceAccountToken.path, source: "ServiceAccountToken" }];
  if (clusterTrustBundle) return [{ path: clusterTrustBundle.path, source: `ClusterTrustBundle ${goQuote(clusterTrustBundle.name ?? clusterTrustBundle.signerName ?? "")}` }];
  return [
    { path: podCertificate?.certificateChainPath ?? "", source: "PodCertificate chain" },
    { path: podCertificate?.keyPath ?? "", source: "PodCertificate key" },
    { path: podCertificate?.credentialBundlePath ?? "", source: "PodCertificate credential bundle" },
  ].filter(({ path }) => path !== "");
}

/** Each with each before it: far more than people write, and no more than is done in a moment. */
const COMPARED_MAX = 100_000;

function* within(volume: string, what: string, files: readonly File[]): Iterable<string> {
  const before: File[] = [];
  let compared = 0;
  for (const { path, source } of files) {
    const file = { path: withoutLast(path, "/"), source };
    if ((compared += before.length) > COMPARED_MAX) return;
    for (const other of before) if (overlap(file.path, other.path)) yield `volume ${goQuote(volume)} (${what}): overlapping paths: ${shown(file)} with ${shown(other)}`;
    before.push(file);
  }
}

function overlap(a: string, b: string): boolean { return a !== "" && b !== "" && (`${a}/`.startsWith(`${b}/`) || `${b}/`.startsWith(`${a}/`)); }

function shown({ path, source }: File): string { return source === "" ? goQuote(path) : `${goQuote(path)} (${source})`; }
