/**
 * nftables through the nft program: one transaction a call, applied whole or not at all. Each table is its owner's alone; whoever owns one passes its name.
 *
 *   const nft = nftProgram({ path: "/…/bin/nft" });
 *   await nft.apply("add table ip coracle\n", { signal });
 */
import { type Rest, restOf, type Unconditional } from "./chain-rest.ts";
import { type Exec, exec } from "./exec.ts";
import type { NetlinkSocket } from "./netlink-socket.ts";
import { type ElementBatch, writeBatch } from "./nft-batch.ts";

export type NftFamily = "ip" | "ip6" | "inet" | "bridge";

export interface Nft {
  /** Commands as in an nft file. Throws NftError with what nft says. */
  apply(script: string, call: { readonly signal?: AbortSignal | undefined }): Promise<void>;
  /** Elements of sets, without the program. Throws what the kernel says; nothing has changed then. Absent: only as a script. */
  elements?(batch: ElementBatch): void;
  /** Names of what is in a table, elements not read; undefined when there is no such table. */
  names(family: NftFamily, table: string, call: { readonly signal?: AbortSignal | undefined }): Promise<NftNames | undefined>;
  /** A chain as nft prints it, with the handles of its rules; undefined when there is none. */
  chain(family: NftFamily, table: string, chain: string, call: { readonly signal?: AbortSignal | undefined }): Promise<string | undefined>;
  /** Chains that filter, in all tables but those that are `own`. Absent: nobody asks. */
  filters?(own: (table: string) => boolean, call: { readonly signal?: AbortSignal | undefined }): Promise<readonly FilterChain[]>;
}

/** A chain on a hook of the packet filter. */
export interface FilterChain {
  readonly family: NftFamily;
  readonly table: string;
  /** Another one when the table was made anew. */
  readonly tableHandle: number | undefined;
  readonly name: string;
  readonly hook: string;
  /** What becomes of packets that none of its rules is about. */
  readonly rest: Rest;
  /** Other chains of its table that rules hand packets over to. */
  readonly handedTo: readonly string[];
  /** Its rules with a comment. */
  readonly commented: readonly { readonly comment: string; readonly handle: number }[];
}

export interface NftNames { readonly chains: readonly string[]; readonly sets: readonly string[]; readonly maps: readonly string[] }

export class NftError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "NftError";
  }
}

interface Options {
  /** Opens the packet filter's netlink socket: then small changes need no program. */
  readonly netlink?: (() => NetlinkSocket) | undefined;
  /** The program, or its name. */
  readonly path: string;
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly run?: Exec | undefined;
}

/** What nft says where the kernel has nothing that would listen, or does not know what is meant. */
const UNSUPPORTED = /(Operation|Protocol|Address family) not supported/;
const MISSING = "this kernel has no nf_tables: without it there is no pod network, no Service, no host port and no network policy. It needs CONFIG_NF_TABLES with CONFIG_NF_TABLES_INET, _IPV4 and _IPV6, CONFIG_NFT_NAT, CONFIG_NFT_MASQ and CONFIG_NFT_FIB_INET, or the module nf_tables";

/** Of what nft says: it quotes the command it stumbles over, which may be very long. */
const MESSAGE_LENGTH_MAX = 2000;

export function nftProgram({ path, env, netlink, run = exec }: Options): Nft {
  let socket: NetlinkSocket | undefined;
  type Call = { readonly signal?: AbortSignal | undefined };
  const options = ({ signal }: Call) => ({ ...(env && { env }), ...(signal && { signal }) });

  /** In nft's words, unless the kernel has no packet filter at all: then nothing that it quotes helps. */
  async function refusal(what: string, stderr: string, call: Call): Promise<NftError> {
    const isMissing = UNSUPPORTED.test(stderr) && UNSUPPORTED.test((await run(path, ["list", "tables"], options(call))).stderr);
    return new NftError(isMissing ? MISSING : `${what}: ${stderr.trim().slice(0, MESSAGE_LENGTH_MAX)}`);
  }

  async function list(args: readonly string[], call: Call): Promise<string | undefined> {
    const { exitCode, stdout, stderr } = await run(path, args, options(call));
    if (exitCode === 0) return stdout;
    if (/No such file or directory/.test(stderr)) return undefined;
    throw await refusal(`nft ${args.join(" ")}`, stderr, call);
  }

  return {
    ...(netlink && { elements: (batch) => (socket ??= netlink()).batch((sequence) => writeBatch(batch, sequence)) }),
    async apply(script, call) {
      const { exitCode, stderr } = await run(path, ["-f", "-"], { ...options(call), stdin: script });
      if (exitCode !== 0) throw await refusal("nft refused the transaction", stderr, call);
    },
    async names(family, table, call) {
      const text = await list(["-j", "-t", "list", "table", family, table], call);
      if (text === undefined) return undefined;
      const entries = (JSON.parse(text) as { nftables: readonly Record<string, { readonly name?: string } | undefined>[] }).nftables;
      const named = (kind: string): string[] => entries.flatMap((entry) => entry[kind]?.name ?? []);
      return { chains: named("chain"), sets: named("set"), maps: named("map") };
    },
    async filters(own, call) {
      const tables = entriesOf((await list(["-j", "list", "tables"], call)) ?? "", "table").filter(({ family, name = "" }) => FAMILIES.has(family ?? "") && !own(name));
      const listed = await Promise.all(tables.map(async ({ family = "", name = "" }) => (await list(["-j", "-t", "list", "table", family, name], call)) ?? "")); // one that has just gone is empty
      return listed.flatMap(filterChains);
    },
    chain: (family, table, chain, call) => list(["-a", "list", "chain", family, table, chain], call),
  };
}

const FAMILIES: ReadonlySet<string> = new Set(["ip", "ip6", "inet"]);

interface NftExpression { readonly goto?: { readonly target: string }; readonly jump?: { readonly target: string }; readonly xt?: { readonly type: string; readonly name: string } | null; readonly [statement: string]: unknown }
interface NftEntry { readonly family?: string; readonly name?: string; readonly table?: string; readonly chain?: string; readonly type?: string; readonly hook?: string; readonly policy?: string; readonly comment?: string; readonly expr?: readonly NftExpression[]; readonly handle?: number }

function entriesOf(text: string, kind: "table" | "chain" | "rule"): NftEntry[] {
  const { nftables } = (text === "" ? { nftables: [] } : JSON.parse(text)) as { readonly nftables: readonly Readonly<Record<string, NftEntry | undefined>>[] };
  return nftables.flatMap((entry) => entry[kind] ?? []);
}

/** Of one table, as nft lists it in JSON. Pure. */
export function filterChains(text: string): FilterChain[] {
  const rules = entriesOf(text, "rule"), tableHandle = entriesOf(text, "table")[0]?.handle;
  const handedTo = [...new Set(rules.flatMap(({ expr = [] }) => expr.flatMap((one) => (one.goto ?? one.jump)?.target ?? [])))].toSorted();
  const rulesOf = (name: string): Unconditional[] => rules.flatMap(({ chain, expr = [] }) => (chain === name ? (unconditional(expr) ?? []) : []));
  return entriesOf(text, "chain").flatMap(({ family = "", table = "", name = "", type, hook, policy }) => (type !== "filter" || hook === undefined ? [] : [{
    family: family as NftFamily, table, tableHandle, name, hook, rest: restOf(name, { policy: policy === "drop" ? "drop" : "accept", rulesOf }), handedTo,
    commented: rules.flatMap(({ chain, comment, handle }) => (chain === name && comment !== undefined && handle !== undefined ? [{ comment, handle }] : [])),
  }]));
}

/** What iptables of nftables writes in its own words: there is no condition in these. */
const XT_ASIDES: ReadonlySet<string> = new Set(["match comment", "target LOG", "target NFLOG"]);
const XT_REFUSALS: ReadonlySet<string> = new Set(["target REJECT", "target DROP"]);

/** What a rule does to every packet; undefined if there is a condition, or it decides nothing. */
function unconditional(expressions: readonly NftExpression[]): Unconditional | undefined {
  for (const one of expressions) {
    const xt = one.xt ? `${one.xt.type} ${one.xt.name}` : "";
    if ("counter" in one || "log" in one || XT_ASIDES.has(xt)) continue;
    if ("drop" in one || "reject" in one || XT_REFUSALS.has(xt)) return { verdict: "drop" };
    if ("accept" in one) return { verdict: "accept" };
    if ("return" in one) return { verdict: "return" };
    if (one.jump) return { verdict: "jump", target: one.jump.target };
    return one.goto && { verdict: "goto", target: one.goto.target };
  }
  return undefined;
}
