/** Which of the runtime's handlers a pod's RuntimeClass means. Source: kubernetes v1.36 pkg/kubelet/runtimeclass/runtimeclass_manager.go */
import { isNotFound } from "../../../core/api/meta/status-error.ts";
import type { Client } from "../../../core/client/client.ts";
import { RUNTIME_CLASSES } from "../../../core/client/resources.ts";

export interface RuntimeHandlers {
  /** "" is the runtime's default. Throws an Error for the user when there is no such class. */
  handlerOf(runtimeClassName: string | undefined, signal: AbortSignal): Promise<string>;
  /** As it was when it was asked for last; undefined: it was not. */
  known(runtimeClassName: string | undefined): string | undefined;
}

export function runtimeHandlers(client: Client): RuntimeHandlers {
  const seen = new Map<string, string>(); // by class
  return {
    known: (name) => (name ? seen.get(name) : ""),
    async handlerOf(name, signal) {
      if (!name) return "";
      try {
        const { handler } = await client.resource(RUNTIME_CLASSES).get({ metadata: { name } }, { signal });
        seen.set(name, handler);
        return handler;
      } catch (cause) {
        if (isNotFound(cause)) throw new Error(`failed to get RuntimeClass ${name}: runtimeclass.node.k8s.io "${name}" not found`, { cause });
        throw new Error(`failed to get RuntimeClass ${name}: ${(cause as Error).message}`, { cause });
      }
    },
  };
}
