/** The machine's /etc/hosts, which containerd copies for every pod: without it none starts. Only bare containers, chroots and images of one's own have none. */
import { existsSync, writeFileSync } from "node:fs";
import type { Log } from "../../core/observe/log.ts";

const TEXT = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n";

export function ensureHostsFile(path: string, log: Log): void {
  if (existsSync(path)) return;
  try {
    writeFileSync(path, TEXT, { mode: 0o644, flag: "wx" });
    log.info("this machine had no hosts file, written", { path });
  } catch (error) {
    log.error("this machine has no hosts file, and none can be written: no pod starts until there is one", { path, error });
  }
}
