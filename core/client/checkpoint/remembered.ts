/**
 * What has been read, in the journal, by what was asked for:
 *
 *   <path>?<selectors>            an object, or {} for a list that is there as a whole
 *   <path>?<selectors> <object>   an object of that list
 *   <path>?<spec>                 an issued token
 *
 * What nobody has asked for in a while is forgotten: of lists that were watched after minutes, of other reads after a day.
 */
import { stringify } from "../../api/codec/json.ts";
import { type ApiObject, keyOf } from "../../api/meta/object-meta.ts";
import type { Clock } from "../../lifecycle/clock.ts";
import type { ApiRequest, ApiWatchEvent } from "../transport.ts";
import type { Journal } from "./journal.ts";
import { hasteOf, keptForm, keptResource, withoutType } from "./kept.ts";

/** A request whose answer is remembered. */
export interface Read {
  /** No spaces in it. */
  readonly key: string;
  readonly path: string;
  readonly isList: boolean;
}

interface RawList { readonly items?: readonly Readonly<ApiObject>[] | null; readonly metadata: { readonly resourceVersion?: string } }

interface Use { watchers: number; lastMs: number; readonly forgetAfterMs: number }

/** A pod that ends and comes back within this time finds its objects. */
const FORGET_WATCHED_MS = 600_000;
/** Tokens are renewed once a day at least. */
const FORGET_READ_MS = 25 * 3_600_000;
/** What is forgotten of these is erased from the disk. */
const SECRET: ReadonlySet<string> = new Set(["secrets", "serviceaccounts"]);

/** Undefined: its answer is not remembered. */
export function readOf({ method, path, query = {}, body }: ApiRequest): Read | undefined {
  if (keptResource(path) === undefined) return undefined;
  const read = { path, isList: isCollection(path) };
  if (method === "POST" && path.endsWith("/token")) return { ...read, key: `${path}?${encodeURIComponent(JSON.stringify((body as { readonly spec?: unknown } | undefined)?.spec ?? {}))}` };
  if (method !== "GET" || query["continue"]) return undefined;
  const { fieldSelector = "", labelSelector = "" } = query;
  return { ...read, key: `${path}?${new URLSearchParams({ ...(fieldSelector ? { fieldSelector } : {}), ...(labelSelector ? { labelSelector } : {}) }).toString()}` };
}

export class Remembered {
  readonly #journal: Journal;
  readonly #clock: Clock;
  readonly #uses = new Map<string, Use>(); // by key of what was read

  constructor({ journal, clock }: { readonly journal: Journal; readonly clock: Clock }) {
    this.#journal = journal;
    this.#clock = clock;
  }

  /** The answer as it was last, frozen. Undefined: there was none. */
  recall(read: Read): unknown {
    const text = this.#journal.get(read.key);
    if (text === undefined) return undefined;
    return deepFreeze(read.isList ? { metadata: { resourceVersion: "0" }, items: this.items(read).map(([, item]) => item) } satisfies RawList : JSON.parse(text));
  }

  /** The objects of a list, each with a key of its own. What the disk does not give back is none of them. */
  items({ key }: Read): (readonly [key: string, item: ApiObject])[] {
    return this.#journal.keys(`${key} `).flatMap((at) => {
      const text = this.#journal.get(at);
      return text === undefined ? [] : [[at, JSON.parse(text) as ApiObject] as const];
    });
  }

  remember(read: Read, answer: unknown): void {
    if (read.isList) this.#putList(read, answer as RawList);
    else this.#put(read.key, read, answer as ApiObject);
  }

  /** An event of a watch that continues the list. */
  hear(read: Read, { type, object }: ApiWatchEvent): void {
    if (type === "BOOKMARK") return;
    const at = `${read.key} ${keyOf(object)}`;
    if (type === "DELETED") this.#delete(at, read.path);
    else this.#put(at, read, object);
  }

  forget({ key, path }: Read): void { this.#delete(key, path); }

  /** Somebody has asked for it. */
  use({ key, isList }: Read): void { this.#used(key, isList ? FORGET_WATCHED_MS : FORGET_READ_MS); }

  /** Somebody watches it, until they call what is returned. */
  watched({ key }: Read): () => void {
    const use = this.#used(key, FORGET_WATCHED_MS);
    use.watchers++;
    return () => {
      use.watchers--;
      use.lastMs = this.#clock.uptimeMs();
    };
  }

  /** How many reads are known to have been asked for. */
  get useCount(): number { return this.#uses.size; }

  /** Forgets what nobody has asked for in a while; of what nobody has asked for yet, since `bornMs`. */
  sweep(bornMs: number): void {
    const nowMs = this.#clock.uptimeMs();
    const isOver = ({ watchers, lastMs, forgetAfterMs }: Use): boolean => watchers === 0 && nowMs - lastMs > forgetAfterMs;
    for (const key of this.#journal.keys("")) {
      const asked = key.split(" ")[0]!;
      const path = asked.split("?")[0]!;
      if (isOver(this.#uses.get(asked) ?? { watchers: 0, lastMs: bornMs, forgetAfterMs: isCollection(path) ? FORGET_WATCHED_MS : FORGET_READ_MS })) this.#delete(key, path);
    }
    for (const [asked, use] of this.#uses) if (isOver(use)) this.#uses.delete(asked); // also of what was not there: each pod is asked for at its end
  }

  #putList(read: Read, { items }: RawList): void {
    const gone = new Set(this.#journal.keys(`${read.key} `));
    for (const item of items ?? []) {
      const at = `${read.key} ${keyOf(item)}`;
      gone.delete(at);
      this.#put(at, read, item);
    }
    for (const at of gone) this.#delete(at, read.path);
    this.#journal.put(read.key, "{}", "soon"); // last: a list that is not whole is none
  }

  #put(key: string, { path, isList }: Read, object: Readonly<ApiObject>): void {
    const resource = keptResource(path)!;
    const kept = keptForm(resource, object);
    const json = stringify(isList ? withoutType(kept) : kept);
    const before = this.#journal.get(key);
    if (json !== before) this.#journal.put(key, json, hasteOf(resource, before === undefined ? undefined : (JSON.parse(before) as ApiObject), JSON.parse(json) as ApiObject));
  }

  #delete(key: string, path: string): void { this.#journal.delete(key, { erase: SECRET.has(keptResource(path) ?? "") }); }

  #used(key: string, forgetAfterMs: number): Use {
    const use = this.#uses.get(key) ?? { watchers: 0, lastMs: 0, forgetAfterMs };
    use.lastMs = this.#clock.uptimeMs();
    this.#uses.set(key, use);
    return use;
  }
}

/** …/pods or …/namespaces/x/pods, but not …/pods/web nor …/pods/web/log. */
function isCollection(path: string): boolean {
  const parts = path.split("/").filter((part) => part !== "");
  const rest = parts.slice(parts[0] === "api" ? 2 : 3);
  return rest.length === 1 || (rest.length === 3 && rest[0] === "namespaces");
}

function deepFreeze(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  for (const member of Object.values(value)) deepFreeze(member);
  return Object.freeze(value);
}
