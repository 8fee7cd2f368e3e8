/** Which of the runtime's handlers a pod's RuntimeClass means. Source: kubernetes v1.36 pkg/kubelet/runtimeclass/runtimeclass_manager.go */
import { isNotFound } from "../../../core/api/meta/status-error.ts";
import type { Client } from "../../../core/client/client.ts";
import { RUNTIME_CLASSES } from "../../../core/client/resources.ts";

export interface RuntimeHandlers {
  /** "" is the runtime's default. Throws an Error for the user when there is no such class. */
  handlerOf(runtimeClassName: string | undefined, signal: AbortSignal): Promise<string>;
}

export function runtimeHandlers(client: Client): RuntimeHandlers {
  return {
    async handlerOf(name, signal) {
      if (!name) return "";
      try {
        return (await client.resource(RUNTIME_CLASSES).get({ metadata: { name } }, { signal })).handler;
      } catch (cause) {
        if (isNotFound(cause)) throw new Error(`failed to get RuntimeClass ${name}: runtimeclass.node.k8s.io "${name}" not found`, { cause });
        throw new Error(`failed to get RuntimeClass ${name}: ${(cause as Error).message}`, { cause });
      }
    },
  };
}
