/** The file kubectl and every client library read. Written by hand: JSON strings are YAML strings, and nothing else varies. */
import { fileText } from "../lifecycle/file-text.ts";
import { writeDurably } from "./durable-file.ts";

export interface Kubeconfig {
  /** https://host:port */
  readonly server: string;
  readonly certificateAuthorityPem: string;
  readonly user: { readonly certificatePem: string; readonly keyPem: string } | { readonly token: string };
  /** Name of cluster, user and context. */
  readonly name?: string;
}

export function formatKubeconfig({ server, certificateAuthorityPem, user, name = "default" }: Kubeconfig): string {
  const quoted = JSON.stringify(name);
  const credentials = "token" in user
    ? [`    token: ${JSON.stringify(user.token)}`]
    : [`    client-certificate-data: ${base64(user.certificatePem)}`, `    client-key-data: ${base64(user.keyPem)}`];
  return [
    "apiVersion: v1", "kind: Config",
    "clusters:", `- name: ${quoted}`, "  cluster:", `    server: ${JSON.stringify(server)}`, `    certificate-authority-data: ${base64(certificateAuthorityPem)}`,
    "users:", `- name: ${quoted}`, "  user:", ...credentials,
    "contexts:", `- name: ${quoted}`, "  context:", `    cluster: ${quoted}`, `    user: ${quoted}`,
    `current-context: ${quoted}`, "preferences: {}", "",
  ].join("\n");
}

function base64(text: string): string { return Buffer.from(text).toString("base64"); }

/** Readable by the owner only, unless it is there already: then nothing is written, so that a disk without room is no reason not to start. */
export async function writeKubeconfig(path: string, kubeconfig: Kubeconfig): Promise<void> {
  const text = formatKubeconfig(kubeconfig);
  if ((await fileText(path)) !== text) await writeDurably(path, text);
}
