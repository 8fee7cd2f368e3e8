/**
 * What an image of a pod may be pulled with: the Secrets the pod names, and the node's own docker configuration. What of it cannot be had or read is left out: the pull is tried all the same.
 *
 * Source: kubernetes v1.36 pkg/kubelet/kubelet_pods.go getPullSecretsForPod, pkg/credentialprovider/config.go
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Pod, Secret } from "../../../core/api/gen/core.v1.ts";
import type { EventRecorder } from "../../../core/client/events.ts";
import type { Log } from "../../../core/observe/log.ts";
import type { ObjectSource } from "../containers/environment.ts";
import { type Entry, parseDockerConfig } from "./keyring.ts";

interface Deps {
  readonly objects: Pick<ObjectSource, "secret">;
  readonly events: EventRecorder;
  readonly log: Log;
}

/** Those that can be had; of the others the user is told. */
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

/** What the node itself may pull with: a docker configuration beside the pods, under upstream's name. */
export function nodeCredentials(dataDir: string, log: Log): Entry[] {
  const path = join(dataDir, "config.json");
  if (!existsSync(path)) return [];
  try {
    return parseDockerConfig(readFileSync(path, "utf8"));
  } catch (error) {
    log.error("the node's credentials for registries cannot be read, images are pulled without them", { path, error });
    return [];
  }
}
