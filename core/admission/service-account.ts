/**
 * ServiceAccount: every pod runs as a service account that exists, gets its token mounted, and pulls images with its secrets.
 *
 * Source: kubernetes v1.36 plugin/pkg/admission/serviceaccount/admission.go
 */
import type { Container, EphemeralContainer, Pod, ProjectedVolumeSource, ServiceAccount } from "../api/gen/core.v1.ts";
import { notFound } from "../api/meta/status-error.ts";
import { podSecretNames } from "../api/meta/pod-references.ts";
import { MIRROR_POD_ANNOTATION } from "../authz/node.ts";
import type { Lookup } from "../client/lookup.ts";
import type { Clock } from "../lifecycle/clock.ts";
import { type Random, safeSuffixOf } from "../lifecycle/random.ts";
import type { AdmissionPlugin, AdmissionRequest } from "./plugin.ts";
import { refusal } from "./refuse.ts";

const DEFAULT_NAME = "default";
const VOLUME_PREFIX = "kube-api-access-";
const MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount";
const ENFORCE_ANNOTATION = "kubernetes.io/enforce-mountable-secrets";
/** The token says in a claim when it wants to be renewed, and lives a year all the same: see core/authn/token-issuer.ts. */
const TOKEN_SECONDS = 3_607;
/** A namespace's default account is made by a controller, shortly after the namespace. */
const DEFAULT_ATTEMPTS = 10;
const RETRY_MS_MIN = 100;

export interface ServiceAccountDeps {
  readonly serviceAccounts: Lookup<ServiceAccount>;
  readonly clock: Clock;
  readonly random: Random;
}

export function serviceAccountAdmission({ serviceAccounts, clock, random }: ServiceAccountDeps): AdmissionPlugin {
  async function find({ namespace, signal }: AdmissionRequest, name: string): Promise<Readonly<ServiceAccount>> {
    const attempts = name === DEFAULT_NAME ? DEFAULT_ATTEMPTS : 1;
    const retryMs = RETRY_MS_MIN * (1 + random.next());
    for (let attempt = 1; attempt <= attempts && !signal.aborted; attempt++) {
      if (attempt > 1) await clock.sleep(retryMs, signal);
      const found = await serviceAccounts.find(namespace, name, signal);
      if (found) return found;
    }
    throw notFound({ group: "", resource: "serviceaccount" }, name);
  }

  async function accountOf(request: AdmissionRequest, pod: Pod): Promise<Readonly<ServiceAccount>> {
    const name = pod.spec.serviceAccountName ?? "";
    try {
      return await find(request, name);
    } catch (error) {
      throw refusal(request, `error looking up service account ${request.namespace}/${name}: ${(error as Error).message}`);
    }
  }

  return {
    name: "ServiceAccount",
    handles: ({ operation, group, resource, subresource }) =>
      resource === "pods" && group === "" && ((operation === "CREATE" && subresource === "") || (operation === "UPDATE" && subresource === "ephemeralcontainers")),
    async admit(request) {
      if (request.operation !== "CREATE") return;
      const pod = request.object as Pod;
      if (isMirror(pod)) return checkMirror(request, pod); // its node must find it as it was made
      pod.spec.serviceAccountName ||= DEFAULT_NAME;
      pod.spec.serviceAccount = pod.spec.serviceAccountName; // the old name of the field: always the same, or every later update would change it
      const account = await accountOf(request, pod);
      if (pod.spec.automountServiceAccountToken ?? account.automountServiceAccountToken ?? true) mountToken(pod, account);
      if (!pod.spec.imagePullSecrets?.length && account.imagePullSecrets?.length) pod.spec.imagePullSecrets = account.imagePullSecrets.map(({ name }) => ({ name }));
      checkSecrets(request, account, pod);
    },
    async validate(request) {
      const pod = request.object as Pod;
      if (request.operation === "CREATE" && isMirror(pod)) return checkMirror(request, pod);
      if (!pod.spec.serviceAccountName) throw refusal(request, `no service account specified for pod ${request.namespace}/${pod.metadata.name ?? ""}`);
      checkSecrets(request, await accountOf(request, pod), pod);
    },
  };
}

function isMirror(pod: Pod): boolean { return pod.metadata.annotations?.[MIRROR_POD_ANNOTATION] !== undefined; }

function checkMirror(request: AdmissionRequest, pod: Pod): void {
  if (pod.spec.serviceAccountName) throw refusal(request, "a mirror pod may not reference service accounts");
  if (podSecretNames(pod).size > 0) throw refusal(request, "a mirror pod may not reference secrets");
  if (pod.spec.volumes?.some(({ projected }) => projected?.sources?.some(({ serviceAccountToken }) => serviceAccountToken)))
    throw refusal(request, "a mirror pod may not use ServiceAccountToken volume projections");
}

/** Mounts the token where no container has mounted something else. The volume's name is one for all pods of an account, so that those of one template are alike to the letter. */
function mountToken(pod: Pod, { metadata }: Readonly<ServiceAccount>): void {
  const existing = pod.spec.volumes?.find(({ name }) => name.startsWith(VOLUME_PREFIX))?.name;
  const name = existing ?? `${VOLUME_PREFIX}${safeSuffixOf(metadata.uid, 5)}`;
  let mounted = false;
  for (const container of [...(pod.spec.initContainers ?? []), ...(pod.spec.containers ?? [])]) {
    if (container.volumeMounts?.some(({ mountPath }) => mountPath === MOUNT_PATH)) continue;
    container.volumeMounts = [...(container.volumeMounts ?? []), { name, readOnly: true, mountPath: MOUNT_PATH }];
    mounted = true;
  }
  if (mounted && existing === undefined) pod.spec.volumes = [...(pod.spec.volumes ?? []), { name, projected: tokenVolume() }];
}

function tokenVolume(): ProjectedVolumeSource {
  return {
    sources: [
      { serviceAccountToken: { expirationSeconds: TOKEN_SECONDS, path: "token" } },
      { configMap: { name: "kube-root-ca.crt", items: [{ key: "ca.crt", path: "ca.crt" }] } },
      { downwardAPI: { items: [{ path: "namespace", fieldRef: { apiVersion: "v1", fieldPath: "metadata.namespace" } }] } },
    ],
    defaultMode: 0o644,
  };
}

/** For accounts that are annotated so: a pod may use their secrets only. */
function checkSecrets(request: AdmissionRequest, account: Readonly<ServiceAccount>, pod: Pod): void {
  if (!["1", "t", "T", "true", "TRUE", "True"].includes(account.metadata.annotations?.[ENFORCE_ANNOTATION] ?? "")) return;
  const allowed = new Set(account.secrets?.map(({ name }) => name));
  const told = `is not allowed because service account ${account.metadata.name} does not reference that`;
  const check = (title: string, { name, env = [], envFrom = [] }: Container | EphemeralContainer): void => {
    for (const { name: variable, valueFrom } of env) {
      const secret = valueFrom?.secretKeyRef?.name;
      if (secret !== undefined && !allowed.has(secret)) throw refusal(request, `${title} ${name} with envVar ${variable} referencing secret.secretName="${secret}" ${told} secret`);
    }
    for (const { secretRef } of envFrom)
      if (secretRef && !allowed.has(secretRef.name)) throw refusal(request, `${title} ${name} with envFrom referencing secret.secretName="${secretRef.name ?? ""}" ${told} secret`);
  };
  if (request.subresource === "ephemeralcontainers") {
    for (const container of pod.spec.ephemeralContainers ?? []) check("ephemeral container", container);
    return;
  }
  for (const { secret } of pod.spec.volumes ?? [])
    if (secret && !allowed.has(secret.secretName)) throw refusal(request, `volume with secret.secretName="${secret.secretName ?? ""}" ${told} secret`);
  for (const container of pod.spec.initContainers ?? []) check("init container", container);
  for (const container of pod.spec.containers ?? []) check("container", container);
  const pullable = new Set(account.imagePullSecrets?.map(({ name }) => name));
  for (const [i, { name }] of (pod.spec.imagePullSecrets ?? []).entries())
    if (!pullable.has(name)) throw refusal(request, `imagePullSecrets[${i}].name="${name ?? ""}" ${told} imagePullSecret`);
}
