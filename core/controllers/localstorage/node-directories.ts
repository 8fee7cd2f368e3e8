/** The directories of local-path volumes, as their nodes make and remove them: requests to the kubelets through the API server. */
import type { Client } from "../../client/client.ts";
import { pathPart } from "../../client/path-part.ts";

export interface NodeDirectories {
  /** Its path on the node. */
  make(node: string, name: string, signal: AbortSignal): Promise<string>;
  remove(node: string, name: string, signal: AbortSignal): Promise<void>;
}

/** A large directory on a slow card takes a while to go; who gave up waiting asks again, and it goes on from there. */
const ANSWER_MS = 120_000;

/** Whether it ends in the directory that was asked for: a volume on /etc is nothing a node may give anybody, who may find it on another one. Pure. */
export function isNamed(path: string, name: string): boolean {
  const steps = path.split(/[/\\]/);
  return /^(\/|[A-Za-z]:[/\\])/.test(path) && steps.at(-1) === name && !steps.includes("..");
}

export function nodeDirectories(client: Client): NodeDirectories {
  const ask = async (method: "POST" | "DELETE", node: string, name: string, signal: AbortSignal): Promise<unknown> =>
    await client.request({ method, path: `/api/v1/nodes/${pathPart(node)}/proxy/localPath/${pathPart(name)}`, signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]) });
  return {
    async make(node, name, signal) {
      const { path } = ((await ask("POST", node, name, signal)) ?? {}) as { readonly path?: unknown };
      if (typeof path !== "string" || !isNamed(path, name)) throw new Error(`node ${node} did not say where the volume is`);
      return path;
    },
    async remove(node, name, signal) { await ask("DELETE", node, name, signal); },
  };
}
