/**
 * The line that makes a node of a Linux machine which has nothing yet but curl:
 *
 *   curl -fsSk --pinnedpubkey sha256//… https://server:6443/install.sh | CORACLE_TOKEN=K10… sh -
 *
 * The machine cannot know the cluster's CA; by the hash of the server's key curl knows all the same that the script comes from there.
 */
import { createHash, X509Certificate } from "node:crypto";
import * as tls from "node:tls";
import { parseYaml } from "../core/api/codec/yaml.ts";
import type { Client } from "../core/client/client.ts";
import { CLUSTER_INFO } from "../core/client/cluster-objects.ts";
import { CONFIG_MAPS } from "../core/client/resources.ts";
import { hostOf } from "../core/net/dial-tcp.ts";
import { ANCHORS } from "../core/net/tls.ts";

/** Throws when the server does not answer at the address at which the cluster is to find it. */
export async function joinCommand(client: Client, token: string, ca: string, signal: AbortSignal): Promise<string> {
  const { data } = await client.resource(CONFIG_MAPS).get(CLUSTER_INFO, { signal });
  const config = parseYaml(data?.["kubeconfig"] ?? "") as { readonly clusters?: readonly { readonly cluster?: { readonly server?: string } }[] } | null;
  const server = config?.clusters?.[0]?.cluster?.server;
  if (server === undefined) throw new Error("the cluster does not say yet where its server is found: there is no kubeconfig in kube-public/cluster-info");
  return `curl -fsSk --pinnedpubkey '${await pinOf(server, ca, signal)}' ${server}/install.sh | CORACLE_TOKEN=${token} sh -`;
}

/** As curl wants it: the hash of the public key a server shows, which `ca` must vouch for. */
async function pinOf(server: string, ca: string, signal: AbortSignal): Promise<string> {
  const url = new URL(server);
  const socket = tls.connect({ host: hostOf(url), port: Number(url.port || 443), ca, ...ANCHORS }); // which a URL does not name
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once("secureConnect", resolve).once("error", (cause) => reject(new Error(`${server}, where machines are to find the server, does not answer: ${cause.message}`, { cause })));
      signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
    });
    const key = new X509Certificate(socket.getPeerCertificate().raw).publicKey.export({ type: "spki", format: "der" });
    return `sha256//${createHash("sha256").update(key).digest("base64")}`;
  } finally {
    socket.destroy();
  }
}
