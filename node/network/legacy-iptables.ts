/**
 * iptables as it was before nftables, whose tables the kernel keeps beside those of nftables: where its chains drop what no rule is about, as Docker's and ufw's do on systems that still have it
 * (Ubuntu 20.04, Alpine before 3.19), no table of nftables can overrule them, nor write to them. The machine's own program does, with the rules that forward.ts writes elsewhere.
 *
 * Source: iptables(8)
 */
import { fileTextSync } from "../../core/lifecycle/file-text.ts";
import type { Family } from "../../core/net/cidr.ts";
import { restOf, type Unconditional } from "../os/chain-rest.ts";
import { type Exec, ExecError } from "../os/exec.ts";
import { COMMENT, commentOf, type Match, matchesOf, type Passage, type TellFirewall } from "./forward.ts";

const FAMILIES: readonly { readonly family: Family; readonly tables: string; readonly program: string }[] = [
  { family: 4, tables: "/proc/net/ip_tables_names", program: "iptables" }, { family: 6, tables: "/proc/net/ip6_tables_names", program: "ip6tables" },
];
const HOOKS: ReadonlyMap<string, string> = new Map([["FORWARD", "forward"], ["INPUT", "input"], ["OUTPUT", "output"]]);
/** One that hangs holds up the node's network no longer. */
const CALL_MS_MAX = 20_000;
/** For whoever else is changing the table. */
const LOCK_SECONDS = "5";

export interface LegacyOptions {
  readonly exec: Exec;
  readonly read?: (path: string) => string | undefined;
}

/** Where the kernel has such a table. */
export function legacyPassages({ exec, read = fileTextSync }: LegacyOptions): TellFirewall {
  async function run(program: string, args: readonly string[], signal: AbortSignal): Promise<string> {
    const { exitCode, stdout, stderr } = await exec(program, args, { signal, timeoutMs: CALL_MS_MAX });
    if (exitCode !== 0) throw new Error(`${program} ${args.join(" ")}: ${(stderr || stdout).trim()}`);
    return stdout;
  }

  /** Undefined: the machine has none that writes the older tables. */
  async function programOf(name: string, signal: AbortSignal): Promise<string | undefined> {
    for (const program of [`${name}-legacy`, name]) {
      try {
        if (!(await run(program, ["-V"], signal)).includes("nf_tables")) return program;
      } catch (error) {
        if (!(error instanceof ExecError) || error.code !== "not-found") throw error;
      }
    }
    return undefined;
  }

  return async (_chains, passage, signal) => {
    for (const { family, tables, program: name } of FAMILIES) {
      if (!read(tables)?.split("\n").includes("filter")) continue;
      const program = await programOf(name, signal);
      if (program === undefined) continue;
      for (const args of legacyRules(await run(program, ["-w", LOCK_SECONDS, "-S"], signal), family, passage)) await run(program, ["-w", LOCK_SECONDS, ...args], signal);
    }
  };
}

/** What to call iptables with, where `listed` is what its option -S prints. Pure. */
export function legacyRules(listed: string, family: Family, passage: Passage): string[][] {
  const lines = listed.split("\n").map(wordsOf);
  return [...HOOKS].flatMap(([chain, hook]) => {
    const policy = lines.some(([verb, name, policy]) => verb === "-P" && name === chain && policy === "DROP") ? "drop" : "accept";
    const drops = restOf(chain, { policy, rulesOf: (name) => lines.flatMap(([verb, of, ...rest]) => (verb === "-A" && of === name ? (unconditional(rest) ?? []) : [])) }) === "drop";
    const ours = lines.filter(([verb, name, ...rest]) => verb === "-A" && name === chain && commentIn(rest)?.startsWith(COMMENT));
    const wanted = drops ? matchesOf(hook, [family], passage).map(argsOf) : [];
    const comment = commentOf(wanted.map((args) => args.join(" ")));
    if (ours.length === wanted.length && ours.every((words) => commentIn(words) === comment)) return [];
    return [
      ...ours.map(([, name, ...rest]) => ["-D", name!, ...rest]),
      ...wanted.map((args) => ["-I", chain, ...args, "-m", "comment", "--comment", comment, "-j", "ACCEPT"]),
    ];
  });
}

const VERDICTS: ReadonlyMap<string, "accept" | "drop" | "return"> = new Map([["ACCEPT", "accept"], ["DROP", "drop"], ["REJECT", "drop"], ["RETURN", "return"]]);
/** Those after which the next rule is looked at. */
const ASIDES: ReadonlySet<string> = new Set(["LOG", "NFLOG", "ULOG"]);

/** What a rule does to every packet; undefined if there is a condition, or it decides nothing. */
function unconditional(words: readonly string[]): Unconditional | undefined {
  const [how, target, ...more] = words;
  if (how === "-m" && target === "comment") return unconditional(more.slice(2));
  if ((how !== "-j" && how !== "-g") || target === undefined || ASIDES.has(target)) return undefined;
  if (how === "-g") return { verdict: "goto", target };
  const verdict = VERDICTS.get(target);
  return verdict === undefined ? { verdict: "jump", target } : { verdict };
}

function commentIn(words: readonly string[]): string | undefined {
  const at = words.indexOf("--comment");
  return at < 0 ? undefined : words[at + 1];
}

function argsOf({ from, to, protocol, port }: Match): string[] {
  return [
    ...(from === undefined ? [] : ["-s", from]), ...(to === undefined ? [] : ["-d", to]),
    ...(protocol === undefined ? [] : ["-p", protocol, "-m", protocol, "--dport", port!.replace("-", ":")]),
  ];
}

/** What is in quotes is one. */
function wordsOf(line: string): string[] { return [...line.matchAll(/"([^"]*)"|\S+/g)].map(([word, quoted]) => quoted ?? word); }
