/**
 * firewalld: it rejects what none of its zones lets through, in tables that nobody else may write. So it is told what is the cluster's, as Docker, Podman and CNI's plug-in `firewall` tell it:
 *
 *   what pods send                        their addresses are sources of its zone trusted
 *   the tunnel's packets of other nodes   a rich rule for each of these, in all zones where something arrives
 *
 * Services' ports need nothing: it accepts what was translated. Not for good (--permanent): what it is at its start is for whoever runs it to say. It has forgotten when it is reloaded or started again,
 * and then its table is another one. What it was told is noted, a zone and an option a line: for installers/linux/uninstall.sh to take back, and for us after a start, of nodes that have gone meanwhile.
 *
 * Source: firewall-cmd(1)
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileTextSync } from "../../core/lifecycle/file-text.ts";
import { cidrsOverlap, parseCidr, parseIp } from "../../core/net/cidr.ts";
import type { Log } from "../../core/observe/log.ts";
import type { Exec } from "../os/exec.ts";
import { FIREWALLD_TABLE, type Passage, type TellFirewall } from "./forward.ts";

const TRUSTED = "trusted";
/** At most so many options a call: an argument list has an end. */
const OPTIONS_MAX = 100;
/** One that hangs holds up the node's network no longer; on a small board it takes seconds. */
const CALL_MS_MAX = 20_000;

export interface FirewalldOptions {
  readonly exec: Exec;
  /** Where it is noted. */
  readonly noteFile: string;
  readonly log: Log;
}

/** What one zone lets through: options of firewall-cmd without their --add- or --remove-. */
type Wanted = ReadonlyMap<string, readonly string[]>;

export function firewalldPassages({ exec, noteFile, log }: FirewalldOptions): TellFirewall {
  let told: { readonly table: number | undefined; readonly what: string; readonly wanted: Wanted } | undefined; // in `what`, the zones' chains: an interface may be put into another zone

  async function ask(args: readonly string[], signal: AbortSignal): Promise<string> {
    const { exitCode, stdout, stderr } = await exec("firewall-cmd", args, { signal, timeoutMs: CALL_MS_MAX });
    if (exitCode !== 0) throw new Error(`firewall-cmd ${args.join(" ")}: ${(stderr || stdout).trim()}`);
    return stdout;
  }

  async function change(how: "add" | "remove", wanted: Wanted, signal: AbortSignal): Promise<void> {
    for (const [zone, all] of wanted) {
      for (let at = 0; at < all.length; at += OPTIONS_MAX) await ask([`--zone=${zone}`, ...all.slice(at, at + OPTIONS_MAX).map((option) => `--${how}-${option}`)], signal);
    }
  }

  return async (chains, passage, signal) => {
    const its = chains.find(({ table }) => table === FIREWALLD_TABLE);
    const what = JSON.stringify([passage, its?.handedTo]);
    if (!its) told = undefined;
    if (!its || (told?.table === its.tableHandle && told?.what === what)) return;
    const active = await ask(["--get-active-zones"], signal);
    const zones = zonesOf(active, await ask(["--get-default-zone"], signal)), before = zonesBefore(active, passage.clusterCidrs);
    if (before.length > 0) log.warn("firewalld asks a zone before its zone trusted about what pods send, and lets out of the cluster what that lets: leave pods' addresses out of its sources", { zones: before, clusterCidrs: passage.clusterCidrs });
    const wanted = wantedOf(passage, zones);
    const isSame = told?.table === its.tableHandle;
    const gone = isSame ? without(told!.wanted, wanted) : told ? new Map<string, string[]>() : without(read(fileTextSync(noteFile) ?? ""), wanted);
    mkdirSync(dirname(noteFile), { recursive: true });
    writeFileSync(noteFile, noteOf(wanted) + noteOf(gone));
    await change("add", wanted, signal);
    if (isSame) await change("remove", gone, signal);
    else for (const one of gone) await change("remove", new Map([one]), signal).catch((error: unknown) => log.debug("firewalld has nothing of before to take back", { error })); // it may have forgotten, or have no such zone
    writeFileSync(noteFile, noteOf(wanted));
    if (!isSame) log.info("firewalld was told to let through what is the cluster's", { zones: [...wanted.keys()], clusterCidrs: passage.clusterCidrs });
    told = { table: its.tableHandle, what, wanted };
  };
}

/** Where packets arrive: those in use, and the one for all else. Pure. */
export function zonesOf(active: string, usual: string): readonly string[] {
  const named = active.split("\n").flatMap((line) => /^\S+/.exec(line) ?? []);
  return [...new Set([...named, usual.trim()])].filter((zone) => zone !== "" && zone !== TRUSTED).sort();
}

/** Zones whose sources pods are among and that come before: the names tell, unless somebody has given zones priorities. Pure. */
export function zonesBefore(active: string, clusterCidrs: readonly string[]): readonly string[] {
  const pods = clusterCidrs.flatMap((cidr) => parseCidr(cidr) ?? []);
  const found = [...active.matchAll(/^(\S+).*((?:\n[ \t].*)*)/gm)].filter(([, zone = "", lines = ""]) => {
    const sources = /^\s+sources:(.*)$/m.exec(lines)?.[1]?.trim().split(/\s+/) ?? [];
    return zone < TRUSTED && sources.some((source) => { const range = parseCidr(source); return range !== undefined && pods.some((cidr) => cidrsOverlap(range, cidr)); });
  });
  return found.map(([, zone]) => zone!);
}

export function wantedOf({ clusterCidrs, tunnel }: Pick<Passage, "clusterCidrs" | "tunnel">, zones: readonly string[]): Wanted {
  const rules = (tunnel?.peers ?? []).flatMap((address) => {
    const family = parseIp(address)?.family;
    return family === undefined ? [] : [`rich-rule=rule family="ipv${family}" source address="${address}" port port="${tunnel!.udpPort}" protocol="udp" accept`];
  });
  return new Map([[TRUSTED, clusterCidrs.map((cidr) => `source=${cidr}`)], ...(rules.length === 0 ? [] : zones.map((zone) => [zone, rules] as const))]);
}

function noteOf(wanted: Wanted): string { return [...wanted].flatMap(([zone, options]) => options.map((option) => `${zone}\t--remove-${option}\n`)).join(""); }

function read(note: string): Wanted {
  const found = new Map<string, string[]>();
  for (const [, zone, option] of note.matchAll(/^(.+)\t--remove-(.+)$/gm)) found.set(zone!, [...(found.get(zone!) ?? []), option!]);
  return found;
}

/** What was in `before` and is not in `now`. */
function without(before: Wanted, now: Wanted): Wanted {
  return new Map([...before].map(([zone, options]) => [zone, options.filter((option) => !now.get(zone)?.includes(option))] as const).filter(([, options]) => options.length > 0));
}
