/**
 * Which servers the host itself asks, out of resolv.conf; read again when it changes. Where that file names only systemd-resolved's stub, its own list is
 * taken. Addresses at which we are asked ourselves are left out: a question would go round.
 */
import { getServers } from "node:dns";
import { existsSync, readFileSync, statSync } from "node:fs";
import type { Clock } from "../lifecycle/clock.ts";
import { formatIp, parseIp } from "../net/cidr.ts";

const STUB = "127.0.0.53";
/** How many of them are used; the C library's own limit. */
const SERVERS_MAX = 3;
const LOOK_MS = 2000;

export interface UpstreamOptions {
  /** Of files in resolv.conf's format, the first that names servers other than the stub. */
  readonly files?: readonly string[];
  readonly exclude: () => readonly string[];
  readonly clock: Clock;
}

export function hostUpstreams({ files = ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"], exclude, clock }: UpstreamOptions): () => readonly string[] {
  let lookedMs = Number.NEGATIVE_INFINITY;
  let stamp = "";
  let servers: readonly string[] = [];
  return () => {
    if (clock.uptimeMs() - lookedMs >= LOOK_MS) {
      lookedMs = clock.uptimeMs();
      const now = files.map(stampOf).join(" ");
      if (process.platform === "win32") servers = getServers().filter((server) => parseIp(server)); // it has no such files
      else if (now !== stamp) servers = choose(files.map((file) => (existsSync(file) ? nameservers(readFileSync(file, "utf8")) : [])));
      stamp = now;
    }
    const own = exclude();
    return servers.filter((server) => !own.includes(server)).slice(0, SERVERS_MAX);
  };
}

function stampOf(file: string): string {
  const stat = statSync(file, { throwIfNoEntry: false });
  return stat ? `${stat.mtimeMs}/${stat.size}/${stat.ino}` : "-";
}

/** The stub is better than nothing. */
function choose(lists: readonly (readonly string[])[]): readonly string[] {
  return lists.map((list) => list.filter((server) => server !== STUB)).find((list) => list.length > 0) ?? lists.find((list) => list.length > 0) ?? [];
}

export function nameservers(text: string): string[] {
  return text.split("\n").flatMap((line) => {
    const [, server = ""] = /^\s*nameserver\s+(\S+)/.exec(line) ?? [];
    const [address = "", scope] = server.split("%");
    const ip = parseIp(address);
    return ip ? [scope === undefined ? formatIp(ip) : `${formatIp(ip)}%${scope}`] : [];
  });
}
