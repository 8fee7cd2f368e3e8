/**
 * The files of configMap, secret, downwardAPI and projected volumes.
 *
 * Source: kubernetes v1.36 pkg/volume/{configmap,secret,downwardapi,projected}
 */
import { posix } from "node:path";
import type { ClusterTrustBundle } from "../../../core/api/gen/certificates.v1beta1.ts";
import type { ConfigMap, DownwardAPIVolumeFile, KeyToPath, Pod, ProjectedVolumeSource, ResourceList, Secret, ServiceAccountTokenProjection, VolumeProjection } from "../../../core/api/gen/core.v1.ts";
import { aggregate } from "../../../core/api/meta/aggregate.ts";
import { once } from "../../../core/lifecycle/once.ts";
import type { ObjectSource } from "../containers/environment.ts";
import { fieldValue, resourceValue } from "../containers/field-reference.ts";
import { effectiveSecurityContext } from "../containers/security-context.ts";
import { allContainers } from "../pod-spec.ts";
import { unlessMissing } from "../objects/unless-missing.ts";
import type { Payload, PayloadFile } from "./atomic-writer.ts";
import type { PodCertificate } from "./pod-certificates.ts";
import { trustAnchors } from "./trust-anchors.ts";

export interface PayloadFacts {
  readonly pod: Pod;
  readonly objects: ObjectSource;
  readonly hostIps: readonly string[];
  readonly allocatable: ResourceList;
  token(pod: Pod, projection: ServiceAccountTokenProjection): Promise<string>;
  /** All there are. */
  trustBundles(): Promise<readonly Readonly<ClusterTrustBundle>[]>;
  /** What the source of this place in the volume was certified with. Throws an Error for the user. */
  certificate(index: number): PodCertificate;
}

const MODE_DEFAULT = 0o644;
const TOKEN_MODE_PRIVATE = 0o600;

interface Selection { readonly items: readonly KeyToPath[] | undefined; readonly optional: boolean | undefined; readonly mode: number }

export async function configMapPayload(facts: PayloadFacts, name: string, selection: Selection): Promise<Payload> {
  return select(await configMapFiles(facts, name, selection.optional), selection, noConfigKey);
}

export async function secretPayload(facts: PayloadFacts, name: string, selection: Selection): Promise<Payload> {
  return select(await secretFiles(facts, name, selection.optional), selection, noSecretKey);
}

type Files = ReadonlyMap<string, Uint8Array>;

function noConfigKey(key: string): string { return `configmap references non-existent config key: ${key}`; }
function noSecretKey(key: string): string { return `references non-existent secret key: ${key}`; }

async function configMapFiles({ pod, objects }: PayloadFacts, name: string, optional: boolean | undefined): Promise<Files> {
  const found = await unlessMissing(optional, objects.configMap(pod.metadata.namespace ?? "", name));
  return new Map([...Object.entries(found?.data ?? {}).map(([key, text]) => [key, Buffer.from(text)] as const), ...decoded(found?.binaryData)]);
}

async function secretFiles({ pod, objects }: PayloadFacts, name: string, optional: boolean | undefined): Promise<Files> {
  return new Map(decoded((await unlessMissing(optional, objects.secret(pod.metadata.namespace ?? "", name)))?.data));
}

function decoded(data: Secret["data"] | ConfigMap["binaryData"]): (readonly [string, Buffer])[] {
  return Object.entries(data ?? {}).map(([key, text]) => [key, Buffer.from(text, "base64")] as const);
}

function select(data: Files, { items, optional, mode }: Selection, missing: (key: string) => string): Payload {
  if (!items?.length) return new Map([...data].map(([key, bytes]) => [key, { data: bytes, mode }]));
  const payload = new Map<string, PayloadFile>();
  for (const item of items) {
    const bytes = data.get(item.key);
    if (bytes) payload.set(clean(item.path), { data: bytes, mode: item.mode ?? mode });
    else if (!optional) throw new Error(missing(item.key));
  }
  return payload;
}

export function downwardPayload({ pod, hostIps, allocatable }: PayloadFacts, items: readonly DownwardAPIVolumeFile[], mode: number): Payload {
  const podIps = pod.status?.podIPs?.map(({ ip }) => ip) ?? [];
  const containers = once(() => new Map(allContainers(pod.spec).map(({ container }) => [container.name, container])));
  return new Map(items.map((item) => [clean(item.path), { data: Buffer.from(downwardValue(item)), mode: item.mode ?? mode }]));

  function downwardValue({ fieldRef, resourceFieldRef }: DownwardAPIVolumeFile): string {
    if (fieldRef) return fieldValue(fieldRef.fieldPath, { pod, podIps, hostIps });
    if (!resourceFieldRef) return "";
    const container = containers().get(resourceFieldRef.containerName ?? "");
    if (!container) throw new Error(`container ${resourceFieldRef.containerName ?? ""} not found`);
    return resourceValue(resourceFieldRef, container, { allocatable, podLevel: pod.spec.resources?.limits });
  }
}

/** Of sources there may be tens of thousands, of the same ConfigMap even: what they have in common is found out once. */
export async function projectedPayload(given: PayloadFacts, { sources = [], defaultMode }: ProjectedVolumeSource): Promise<Payload> {
  const mode = defaultMode ?? MODE_DEFAULT;
  const user = once(() => commonUser(given.pod));
  const facts: ProjectionFacts = {
    ...given, user, configMapFiles: each((name, optional) => configMapFiles(given, name, optional)),
    secretFiles: each((name, optional) => secretFiles(given, name, optional)), trustBundles: once(() => given.trustBundles()),
  };
  const parts = await Promise.allSettled(lastOfEach(sources).map(({ source, index }) => projectionPayload(facts, source, { mode, index })));
  const errors = [...new Set(parts.flatMap((part) => (part.status === "rejected" ? [(part.reason as Error).message] : [])))]; // each is told once
  if (errors.length > 0) throw new Error(aggregate(errors));
  return new Map(parts.flatMap((part) => (part.status === "fulfilled" ? [...part.value] : [])));
}

interface ProjectionFacts extends PayloadFacts {
  /** The one all containers run as. */
  readonly user: () => number | undefined;
  readonly configMapFiles: (name: string, optional: boolean | undefined) => Promise<Files>;
  readonly secretFiles: (name: string, optional: boolean | undefined) => Promise<Files>;
}

/** For each name, and whether it may be missing, one. */
function each(read: (name: string, optional: boolean | undefined) => Promise<Files>): (name: string, optional: boolean | undefined) => Promise<Files> {
  const known = new Map<string, Promise<Files>>();
  return (name, optional) => {
    const key = `${optional === true} ${name}`, files = known.get(key) ?? read(name, optional);
    known.set(key, files);
    return files;
  };
}

/** Later sources win: of those that say the same of a ConfigMap or Secret the last one says it all. */
function lastOfEach(sources: readonly VolumeProjection[]): { readonly source: VolumeProjection; readonly index: number }[] {
  const last = new Map(sources.map((source, index) => [source.configMap || source.secret ? JSON.stringify(source) : index, index] as const));
  const kept = new Set(last.values());
  return sources.flatMap((source, index) => (kept.has(index) ? [{ source, index }] : []));
}

async function projectionPayload(facts: ProjectionFacts, { configMap, secret, downwardAPI, serviceAccountToken, clusterTrustBundle, podCertificate }: VolumeProjection, { mode, index }: { readonly mode: number; readonly index: number }): Promise<Payload> {
  if (configMap) return select(await facts.configMapFiles(configMap.name ?? "", configMap.optional), { items: configMap.items, optional: configMap.optional, mode }, noConfigKey);
  if (secret) return select(await facts.secretFiles(secret.name ?? "", secret.optional), { items: secret.items, optional: secret.optional, mode }, noSecretKey);
  if (downwardAPI) return downwardPayload(facts, downwardAPI.items ?? [], mode);
  if (serviceAccountToken) {
    const uid = facts.user();
    const token = await facts.token(facts.pod, serviceAccountToken);
    return new Map([[clean(serviceAccountToken.path), { data: Buffer.from(token), mode: isPrivate(facts.pod, uid) ? TOKEN_MODE_PRIVATE : mode, uid }]]);
  }
  if (clusterTrustBundle) {
    const uid = facts.user();
    const data = Buffer.from(trustAnchors(clusterTrustBundle, await facts.trustBundles()));
    return new Map([[clean(clusterTrustBundle.path), { data, mode: isPrivate(facts.pod, uid) ? TOKEN_MODE_PRIVATE : mode, uid }]]);
  }
  if (podCertificate) {
    const uid = facts.user();
    const { key, chain } = facts.certificate(index);
    const files = [[podCertificate.credentialBundlePath, key + chain], [podCertificate.keyPath, key], [podCertificate.certificateChainPath, chain]] as const;
    return new Map(files.flatMap(([path, text]) => (path ? [[clean(path), { data: Buffer.from(text), mode: isPrivate(facts.pod, uid) ? TOKEN_MODE_PRIVATE : mode, uid }] as const] : [])));
  }
  return new Map();
}

/** For one user, or for a group that the files are given to. */
function isPrivate({ spec }: Pod, uid: number | undefined): boolean { return uid !== undefined || spec.securityContext?.fsGroup !== undefined; }

/** The user all containers run as, those that only look into the pod too, if they agree: only then can the token be made theirs. */
function commonUser(pod: Pod): number | undefined {
  const users = new Set(allContainers(pod.spec).map(({ container }) => effectiveSecurityContext(pod, container).runAsUser));
  const [user] = users;
  return users.size === 1 ? user : undefined;
}

/** As the files on disk are called. */
export function clean(path: string): string {
  return posix.normalize(path).replace(/\/$/, "");
}
