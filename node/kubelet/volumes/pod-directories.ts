/** Where the kubelet keeps what belongs to a pod. The layout is upstream's: CSI drivers, backup and debugging tools know it. */
import { join } from "node:path";

export function podDirectory(dataDir: string, uid: string): string {
  return join(dataDir, "pods", uid);
}

/** In it, what the pod's containers have as /etc/hosts. */
export const HOSTS_FILE = "etc-hosts";

/** `plugin` as in kubernetes.io/empty-dir. */
export function volumeDirectory(podDir: string, plugin: string, name: string): string {
  return join(podDir, "volumes", plugin.replace("/", "~"), name);
}

/** What its plugin notes of a volume. */
export function pluginDirectory(podDir: string, plugin: string, name: string): string {
  return join(podDir, "plugins", plugin.replace("/", "~"), name);
}

/** Where parts of volumes are bound that containers have. */
export function subPathsDirectory(podDir: string): string {
  return join(podDir, "volume-subpaths");
}

/** In it a directory for each container, with the files that it leaves its last words in. */
export function messagesDirectory(podDir: string): string {
  return join(podDir, "containers");
}

export function podLogDirectory(podLogsDir: string, { namespace, name, uid }: { readonly namespace: string; readonly name: string; readonly uid: string }): string {
  return join(podLogsDir, `${namespace}_${name}_${uid}`);
}

export function podDirectories(dataDir: string): string {
  return join(dataDir, "pods");
}
