/**
 * What an image of a pod may be pulled with: what is in the Secrets that the pod names, then what the node itself has, then what credential providers know.
 *
 * Source: kubernetes v1.36 pkg/kubelet/kubelet_pods.go getPullSecretsForPod, pkg/kubelet/images/image_manager.go
 */
import type { Pod, Secret } from "../../../core/api/gen/core.v1.ts";
import type { EventRecorder } from "../../../core/client/events.ts";
import type { Log } from "../../../core/observe/log.ts";
import type { ObjectSource } from "../containers/environment.ts";
import type { KubeletSettings } from "../settings.ts";
import type { CredentialProviders, Puller } from "./credential-provider.ts";
import { credentialsFor, entriesOfSecret } from "./keyring.ts";
import { dockerConfigFiles, nodeCredentials } from "./node-credentials.ts";
import type { PullCredential } from "./pull-records.ts";

interface Deps {
  readonly objects: Pick<ObjectSource, "secret">;
  readonly events: EventRecorder;
  readonly log: Log;
}

interface Sources extends Deps {
  readonly settings: Pick<KubeletSettings, "dataDir" | "workingDir" | "home">;
  readonly credentialProviders?: CredentialProviders | undefined;
  readonly pullIdentity?: ((pod: Pod, signal: AbortSignal) => Promise<Puller | undefined>) | undefined;
}

/** In the order in which they are to be tried. */
export async function pullCredentials(image: string, pod: Pod, sources: Sources, signal: AbortSignal): Promise<PullCredential[]> {
  const { settings, log, credentialProviders, pullIdentity } = sources;
  const secrets = await pullSecrets(pod, sources, signal);
  const ofSecrets = secrets.flatMap((secret) => entriesOfSecret(secret).map((entry) => ({ ...entry, secret: { namespace: secret.metadata.namespace ?? "", name: secret.metadata.name, uid: secret.metadata.uid } })));
  const ofNode = credentialsFor(image, nodeCredentials(dockerConfigFiles(settings), log));
  const provided = (await credentialProviders?.credentials(image, async () => await pullIdentity?.(pod, signal), signal)) ?? [];
  return [...credentialsFor(image, ofSecrets), ...ofNode, ...provided];
}

/** Those that can be had; of the others the user is told, and the pull is tried without them. */
export async function pullSecrets(pod: Pod, { objects, events, log }: Deps, signal: AbortSignal): Promise<Secret[]> {
  const found: Secret[] = [];
  const missing: string[] = [];
  for (const { name = "" } of pod.spec.imagePullSecrets ?? []) {
    if (name === "") continue; // valid for the API, and what a template makes of a name that nobody gave
    try {
      found.push(await objects.secret(pod.metadata.namespace ?? "", name));
    } catch (error) {
      signal.throwIfAborted();
      log.info("pull secret cannot be had, the image is pulled without it", { pod: pod.metadata.name, namespace: pod.metadata.namespace, secret: name, error });
      missing.push(name);
    }
  }
  if (missing.length > 0) events.event(pod, "Warning", "FailedToRetrieveImagePullSecret", `Unable to retrieve some image pull secrets (${missing.join(", ")}); attempting to pull the image may not succeed.`);
  return found;
}
