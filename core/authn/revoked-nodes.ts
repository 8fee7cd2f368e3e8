/**
 * Nodes whose certificates no longer count, whatever CA signed them and however long they were to last: core/pki/revocation.ts. Asked for every request that
 * shows a node's certificate; what goes on for long (watches) is told by a signal.
 */
import type { ConfigMap } from "../api/gen/core.v1.ts";
import { keyOf, objectKey } from "../api/meta/object-meta.ts";
import { unauthorized } from "../api/meta/status-error.ts";
import type { UserInfo } from "../api/request/user.ts";
import { REVOKED_NODES } from "../client/cluster-objects.ts";
import type { Informer } from "../client/informer.ts";
import { certificateHash } from "../pki/join-token.ts";
import { readRevocation, type Revocation } from "../pki/revocation.ts";

export interface RevokedNodes {
  /** Throws 401 with a message that says what is the matter. Returns what aborts when the node is revoked; undefined: the user is no node. */
  check(user: UserInfo, certificate: Uint8Array, signal: AbortSignal): Promise<AbortSignal | undefined>;
}

const NODE_PREFIX = "system:node:";
const KEY = objectKey(REVOKED_NODES.metadata.namespace, REVOKED_NODES.metadata.name);

export function revokedNodes(configMaps: Informer<ConfigMap>): RevokedNodes {
  let entries: ReadonlyMap<string, Revocation> = new Map();
  const waiting = new Map<string, AbortController>();

  configMaps.onChange(({ object, deleted }) => {
    if (keyOf(object) !== KEY) return;
    const before = entries;
    entries = new Map(Object.entries(deleted ? {} : object.data ?? {}).map(([name, text]) => [name, readRevocation(text)!]));
    for (const [name, { since }] of entries) {
      if (before.get(name)?.since === since) continue;
      waiting.get(name)?.abort(new Error(`node ${name} is revoked`));
      waiting.delete(name);
    }
  });

  return {
    async check({ name: user, groups }, certificate, signal) {
      if (!user.startsWith(NODE_PREFIX) || !groups.includes("system:nodes")) return undefined;
      if (!configMaps.synced) await configMaps.whenSynced(signal);
      const name = user.slice(NODE_PREFIX.length);
      const entry = entries.get(name);
      if (entry && !Object.hasOwn(entry.certificates, certificateHash(certificate))) throw unauthorized(revokedMessage(name, entry));
      let controller = waiting.get(name);
      if (!controller) waiting.set(name, (controller = new AbortController()));
      return controller.signal;
    },
  };
}

function revokedMessage(name: string, { since }: Revocation): string {
  return `node ${name} was revoked${since === "" ? "" : ` at ${since}`}: its certificate is no longer accepted. To let this machine in again, on the server: coracle node allow ${name}; then start it with a token`;
}
