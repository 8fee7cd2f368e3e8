/**
 * Creating and deleting pods for a controller, told as events of the controller's object.
 *
 * Source: kubernetes v1.36 pkg/controller/controller_utils.go RealPodControl (messages)
 */
import type { Pod, PodTemplateSpec } from "../api/gen/core.v1.ts";
import { copyOf } from "../api/meta/copy.ts";
import { errorText } from "../api/meta/error-text.ts";
import { type ApiObject, controllerRef, type NewObject, namespaceOf } from "../api/meta/object-meta.ts";
import { isNamespaceTerminating, isNotFound } from "../api/meta/status-error.ts";
import type { ResourceClient } from "../client/client.ts";
import type { EventRecorder } from "../client/events.ts";

export type NewPod = NewObject<Pod>;

const NAME_LENGTH_MAX = 253;

/** With a dash, unless the name is as long as names may be. */
function prefixFor(name: string): string { return name.length < NAME_LENGTH_MAX ? `${name}-` : name; }

export function podFromTemplate(template: Readonly<PodTemplateSpec> | undefined, owner: Readonly<ApiObject>): NewPod {
  const { labels, annotations, finalizers } = template?.metadata ?? {};
  return {
    apiVersion: "v1", kind: "Pod",
    metadata: {
      generateName: prefixFor(owner.metadata.name), namespace: namespaceOf(owner), ownerReferences: [controllerRef(owner)],
      labels: { ...labels }, ...(annotations === undefined ? {} : { annotations: { ...annotations } }), ...(finalizers === undefined ? {} : { finalizers: [...finalizers] }),
    },
    spec: copyOf(template?.spec ?? { containers: [] }),
  };
}

export interface PodControl {
  create(pod: NewPod, owner: Readonly<ApiObject>, signal: AbortSignal): Promise<Readonly<Pod>>;
  /** A pod that is gone already is as good as deleted. */
  delete(pod: Readonly<Pod>, owner: Readonly<ApiObject>, signal: AbortSignal): Promise<void>;
}

export function podControl(client: ResourceClient<Pod>, recorder: EventRecorder): PodControl {
  return {
    async create(pod, owner, signal) {
      try {
        const created = await client.create(pod, { signal });
        recorder.event(owner, "Normal", "SuccessfulCreate", `Created pod: ${created.metadata.name}`);
        return created;
      } catch (error) {
        if (!signal.aborted && !isNamespaceTerminating(error)) recorder.event(owner, "Warning", "FailedCreate", `Error creating: ${messageOf(error)}`);
        throw error;
      }
    },
    async delete(pod, owner, signal) {
      try {
        await client.delete(pod, {}, { signal });
      } catch (error) {
        if (isNotFound(error)) return;
        if (signal.aborted) throw error;
        recorder.event(owner, "Warning", "FailedDelete", `Error deleting: ${messageOf(error)}`);
        throw new Error(`unable to delete pods: ${messageOf(error)}`, { cause: error });
      }
      recorder.event(owner, "Normal", "SuccessfulDelete", `Deleted pod: ${pod.metadata.name}`);
    },
  };
}

/** What to tell the user of an error: of several, the first. */
export function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return messageOf(error.errors[0]);
  return errorText(error);
}
