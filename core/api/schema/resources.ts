/**
 * The REST resources of the API: what is served where, under which names, with which verbs.
 *
 * Rows of the built-in API come from resources.txt (verbs, as published in the client libraries' REST tables) and resource-names.txt (names, order,
 * storage versions). A v1.36 server serves alpha and beta versions only where it is told to, and of those what is behind a feature gate that is off (gate=) only where that is switched on as well.
 * Custom resources make rows of the same shape.
 *
 * Lines of resources.txt
 *   <group>/<version>/<plural> <ns|cluster> <verb>,… [<subresource>:<verb>,…]…       cGET: connected by that HTTP method
 */
import { createHash } from "node:crypto";
import { formatApiVersion, type GroupVersion, type GroupVersionKind } from "../meta/gvk.ts";
import namesText from "./resource-names.txt" with { type: "text" };
import verbsText from "./resources.txt" with { type: "text" };

export type ResourceVerb = "create" | "delete" | "deletecollection" | "get" | "list" | "patch" | "update" | "watch";
export type HttpMethod = "DELETE" | "GET" | "HEAD" | "OPTIONS" | "PATCH" | "POST" | "PUT";

export interface Subresource {
  readonly name: string;
  /** What it takes and gives: autoscaling/v1 Scale, policy/v1 Eviction, the resource's own kind. */
  readonly kind: GroupVersionKind;
  /** As discovery lists them, sorted; a connected GET is a get. */
  readonly verbs: readonly ResourceVerb[];
  /** Not empty: a connection (exec, proxy …), reached by these methods. */
  readonly connects: readonly HttpMethod[];
}

export interface ResourceRow extends GroupVersion {
  readonly plural: string;
  readonly singular: string;
  readonly kind: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly namespaced: boolean;
  /** Sorted. */
  readonly verbs: readonly ResourceVerb[];
  readonly subresources: readonly Subresource[];
  /** Tells clients that two versions are stored as one; undefined for what is not stored. */
  readonly storageVersionHash: string | undefined;
  /** DELETE answers with the object it deleted, not with a Status. */
  readonly returnsDeleted: boolean;
  /** Defined by a CustomResourceDefinition. */
  readonly custom: boolean;
  /** Of its lists, if that is not the kind with "List" after it. */
  readonly listKind?: string;
  /** The API version in which it is stored; absent: it is not, or by a definition. */
  readonly storedAs?: string | undefined;
  /** The feature gate, off by default, without which it is not served wherever it is asked for. */
  readonly gate?: string;
  /** What discovery names, where that is less than what is answered. */
  readonly discoveredVerbs?: readonly ResourceVerb[];
}

/** A served group version and its place in discovery: groups by priority, highest first, then by name; versions likewise. */
export interface ServedGroupVersion extends GroupVersion { readonly groupPriority: number; readonly versionPriority: number }

/** The built-in API of v1.36. Parsed on first use. */
export class ResourceTable {
  readonly #names: string;
  readonly #verbs: string;
  #parsed: ParsedTable | undefined;

  constructor(names: string, verbs: string) { this.#names = names; this.#verbs = verbs; }

  /** Those served by default, in discovery's order. */
  groupVersions(): readonly ServedGroupVersion[] { return this.#table().byDefault.versions; }
  /** Those served by default, in discovery's order. */
  rows(): readonly ResourceRow[] { return this.#table().byDefault.rows; }
  /** Those that can be served, in discovery's order. */
  everyGroupVersion(): readonly ServedGroupVersion[] { return this.#table().versions; }
  /** Those that can be served, in discovery's order. */
  everyRow(): readonly ResourceRow[] { return this.#table().rows; }
  find(group: string, version: string, plural: string): ResourceRow | undefined { return this.#table().byPath.get(`${group}/${version}/${plural}`); }

  #table(): ParsedTable {
    if (this.#parsed) return this.#parsed;
    const { versions, rows, off } = parseTable(this.#names, this.#verbs);
    const isOn = ({ group, version }: GroupVersion): boolean => !off.has(`${group}/${version}`);
    const byDefault = { versions: versions.filter(isOn), rows: rows.filter(isOn) };
    return (this.#parsed = { versions, rows, byDefault, byPath: new Map(byDefault.rows.map((row) => [`${row.group}/${row.version}/${row.plural}`, row])) });
  }
}

interface Tables { readonly versions: readonly ServedGroupVersion[]; readonly rows: readonly ResourceRow[] }
interface ParsedTable extends Tables { readonly byDefault: Tables; readonly byPath: ReadonlyMap<string, ResourceRow> }

export const builtInResources: ResourceTable = new ResourceTable(namesText, verbsText);

/** The first eight bytes of a digest over the version a resource is stored as. */
export function storageVersionHash({ group, version, kind }: GroupVersionKind): string {
  return createHash("sha256").update(`${group}/${version}/${kind}`).digest().subarray(0, 8).toString("base64");
}

/** What the HTTP methods of a connection are called in discovery; HEAD and OPTIONS have no name there. */
const METHOD_VERBS: Readonly<Partial<Record<HttpMethod, ResourceVerb>>> = { DELETE: "delete", GET: "get", PATCH: "patch", POST: "create", PUT: "update" };

interface VerbLine { readonly namespaced: boolean; readonly verbs: readonly string[]; readonly subresources: ReadonlyMap<string, readonly string[]> }

function parseTable(names: string, verbsFile: string): Tables & { readonly off: ReadonlySet<string> } {
  const verbLines = parseVerbs(verbsFile);
  const off = new Set<string>();
  const versions: ServedGroupVersion[] = [];
  const rows: ResourceRow[] = [];
  const kinds = parseSubresourceKinds(names);
  for (const line of names.split("\n")) {
    const words = line.split(" ");
    if (words[0] === "V") {
      const [, quoted = "", version = "", groupPriority, versionPriority, isOff] = words;
      if (isOff) off.add(`${ungroup(quoted)}/${version}`);
      versions.push({ group: ungroup(quoted), version, groupPriority: Number(groupPriority), versionPriority: Number(versionPriority) });
    } else if (words[0] === "R") {
      const { group, version } = versions.at(-1)!;
      const path = `${group}/${version}/${words[1]}`;
      const line = verbLines.get(path);
      if (!line) throw new Error(`resources: no verbs for ${path}`);
      rows.push(rowOf({ group, version }, words, line, kinds));
    }
  }
  return { versions, rows, off };
}

function rowOf(groupVersion: GroupVersion, words: readonly string[], line: VerbLine, kinds: ReadonlyMap<string, GroupVersionKind>): ResourceRow {
  const [, plural = "", kind = "", ...rest] = words;
  const stored = rest.find((word) => word.startsWith("storage="))?.slice("storage=".length).split("/");
  const gate = rest.find((word) => word.startsWith("gate="))?.slice("gate=".length);
  const [shortNames = [], categories = []] = rest.filter((word) => !word.includes("=")).map((word) => word === "-" ? [] : word.split(","));
  const verbs = discoveryVerbs(line.verbs, kind === "ComponentStatus");
  const home = stored ? { group: stored[0] ?? "", version: stored[1] ?? "" } : groupVersion;
  return {
    ...groupVersion, plural, kind, singular: kind.toLowerCase(), shortNames, categories, namespaced: line.namespaced, verbs, custom: false, ...(gate === undefined ? {} : { gate }),
    returnsDeleted: rest.includes("deleted=object"),
    ...(verbs.includes("watch") ? { storageVersionHash: storageVersionHash({ ...home, kind }), storedAs: formatApiVersion(home) } : { storageVersionHash: undefined }),
    subresources: [...line.subresources].map(([name, found]) => ({
      name, kind: kinds.get(`${groupVersion.group}/${groupVersion.version}/${plural}/${name}`) ?? { ...groupVersion, kind },
      verbs: discoveryVerbs(found, true), connects: found.filter((verb) => verb.startsWith("c") && verb !== "create").map((verb) => verb.slice(1) as HttpMethod),
    })).sort((a, b) => a.name < b.name ? -1 : 1),
  };
}

/** Whatever can be listed can be watched, except what is made up at the moment of asking. */
function discoveryVerbs(verbs: readonly string[], unwatched: boolean): ResourceVerb[] {
  const named = verbs.flatMap((verb): ResourceVerb[] => {
    if (!/^c[A-Z]/.test(verb)) return [verb as ResourceVerb];
    const method = METHOD_VERBS[verb.slice(1) as HttpMethod];
    return method ? [method] : [];
  });
  return [...new Set([...named, ...(named.includes("list") && !unwatched ? ["watch" as const] : [])])].sort();
}

function parseVerbs(text: string): Map<string, VerbLine> {
  const lines = new Map<string, VerbLine>();
  for (const line of text.split("\n")) {
    const [path, scope, verbs = "", ...subresources] = line.split(" ");
    if (!path) continue;
    lines.set(path, {
      namespaced: scope === "ns", verbs: verbs.split(","),
      subresources: new Map(subresources.map((part) => { const [name = "", list = ""] = part.split(":"); return [name, list.split(",")] as const; })),
    });
  }
  return lines;
}

function parseSubresourceKinds(names: string): Map<string, GroupVersionKind> {
  const kinds = new Map<string, GroupVersionKind>();
  let groupVersion: GroupVersion = { group: "", version: "" };
  for (const line of names.split("\n")) {
    const [mark, first = "", second = "", third] = line.split(" ");
    if (mark === "V") groupVersion = { group: ungroup(first), version: second };
    else if (mark === "S") {
      const [group = "", version = ""] = third?.split("/") ?? [groupVersion.group, groupVersion.version];
      kinds.set(`${groupVersion.group}/${groupVersion.version}/${first}`, { group, version, kind: second });
    }
  }
  return kinds;
}

function ungroup(quoted: string): string { return quoted === '""' ? "" : quoted; }
