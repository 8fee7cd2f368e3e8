/**
 * Encryption at rest: a store whose values are sealed before they reach the store beneath it, and opened when they are read.
 *
 *   registry ─▶ encryptedStore ─▶ LevelDB | etcd
 *
 *   const rules = encryptionRules(configuration, …)          // configuration.ts: an EncryptionConfiguration
 *   const store = encryptedStore(beneath, (key) => providersOf(rules, key))
 *
 * The first provider of a resource seals; all of them are tried to open, by their prefix. A sealed value is the object {"$encrypted":
 * "k8s:enc:aescbc:v1:key1:<base64>"}: what follows the last colon are the bytes upstream would write into etcd. Values that are not
 * sealed are read as they are, where "identity" is among the providers, or nothing is configured.
 *
 * Backup, restore and check work on the store beneath: a backup is as sealed as the store, and of no use without the keys.
 *
 *   ciphers.ts  AES-CBC, AES-GCM, secretbox      kms.ts  a key service over gRPC      rewrite.ts  seals anew what another key has sealed
 *
 * Source: kubernetes v1.36 apiserver/pkg/storage/value/transformer.go, apiserver/pkg/server/options/encryptionconfig
 */
import { parseValueText, valueText } from "../json-text.ts";
import { freezeJson } from "../mvcc/freeze-json.ts";
import { isUnreadable, type Listing, type Row, type Store, StoreError, type StoreEvent, type Value } from "../store.ts";
import { KeyAwayError, type Provider } from "./provider.ts";

/** What holds for which resources. The first that fits counts. */
export interface EncryptionRule {
  /** "secrets", "deployments.apps", "*.apps", "*." (all of the core group), "*.*" */
  readonly resources: readonly string[];
  readonly providers: readonly Provider[];
}

const MEMBER = "$encrypted";

/** Sealed values that this process has sealed or opened, to what is in them: one copy of the world, not two. */
const plaintexts = new WeakMap<Value, Value>();

/** What is in a sealed value, as far as this process knows; a value that is not sealed. */
export function plaintextOf(value: Value): Value | undefined { return isSealed(value) ? plaintexts.get(value) : value; }

/** Nothing but that one member: an object of the API has more, also one to which its user has given a member of this name. */
export function isSealed(value: Value): boolean { return typeof value[MEMBER] === "string" && Object.keys(value).length === 1; }

/** "k8s:enc:aescbc:v1:key1:" of a sealed value, "" of another one. */
export function prefixOf(value: Value): string { return isSealed(value) ? sealedText(value).slice(0, sealedText(value).lastIndexOf(":") + 1) : ""; }

function sealedText(value: Value): string { return value[MEMBER] as string; }

const NONE: readonly Provider[] = [];

/** The providers for a key such as /registry/core/secrets/default/x: of all rules that name its resource, or else its group, or else all; empty: no rule. */
export function providersOf(rules: readonly EncryptionRule[], key: string): readonly Provider[] {
  if (rules.length === 0) return NONE; // asked for every event
  const [, root, groupName, plural = ""] = key.split("/", 4);
  if (root !== "registry" || groupName === undefined) return [];
  const group = groupName === "core" ? "" : groupName;
  for (const name of [group === "" ? plural : `${plural}.${group}`, `*.${group}`, "*.*"]) {
    const named = rules.filter(({ resources }) => resources.includes(name));
    if (named.length > 0) return named.length === 1 ? named[0]!.providers : named.flatMap(({ providers }) => providers);
  }
  return NONE;
}

/** Whether the key's value should be written again: sealed by another than the first provider, or not at all. */
export function isStale(rules: readonly EncryptionRule[], { key, value }: Row): boolean {
  const [first] = providersOf(rules, key);
  if (!first) return isSealed(value);
  return prefixOf(value) !== first.prefix || (first.isStale?.(bytesOf(value, first)) ?? false);
}

function bytesOf(value: Value, { prefix }: Provider): Buffer { return Buffer.from(sealedText(value).slice(prefix.length), "base64"); }

/** Whether there is something to open; what cannot be read even so says so when it is read. */
function needsOpening(row: Row): boolean {
  try {
    return isSealed(row.value);
  } catch (error) {
    if (isUnreadable(error)) return false;
    throw error;
  }
}

/** A row whose value cannot be told. */
function unreadable({ key, revision }: Row, error: unknown): Row {
  if (!isUnreadable(error)) throw error;
  return { key, revision, get value(): Value { throw error; } };
}

export interface EncryptedStore extends Store {
  /** Once all that was sealed before now is in the store, or refused: it may have been sealed by rules that hold no more. */
  written(): Promise<void>;
}

/** `providersFor` is asked each time: rules can change while the store is open. */
export function encryptedStore(beneath: Store, providersFor: (key: string) => readonly Provider[]): EncryptedStore {
  const onTheWay = new Set<Promise<unknown>>();

  /** At once, but for a key service that must be asked. Throws what the store throws. */
  function seal(key: string, given: Value): Value | Promise<Value> {
    const [first] = providersFor(key);
    if (!first || first.prefix === "") return given;
    const { value } = freezeJson(given, { arrays: false }); // as it will be read back
    const sealed = (bytes: Buffer): Value => {
      const made: Value = Object.freeze({ [MEMBER]: `${first.prefix}${bytes.toString("base64")}` });
      plaintexts.set(made, value);
      return made;
    };
    const failed = (cause: unknown): StoreError => new StoreError("key-away", { key, reason: (cause as Error).message }, { cause });
    let bytes: Buffer | Promise<Buffer>;
    try {
      bytes = first.seal(Buffer.from(valueText(value)), Buffer.from(key));
    } catch (cause) {
      throw failed(cause);
    }
    return bytes instanceof Promise ? bytes.then(sealed, (cause: unknown) => Promise.reject(failed(cause))) : sealed(bytes);
  }

  /** At once, if it is not sealed or was opened before: watchers must keep up. */
  function open(row: Row): Row | Promise<Row> {
    const { key, value, revision } = row;
    if (!isSealed(value)) return row;
    const known = plaintexts.get(value);
    if (known) return { key, value: known, revision };
    return openValue(key, value).then((opened) => {
      plaintexts.set(value, opened);
      return { key, value: opened, revision };
    });
  }

  async function openValue(key: string, value: Value): Promise<Value> {
    const problems: string[] = [];
    let away: KeyAwayError | undefined;
    const text = sealedText(value);
    for (const provider of providersFor(key)) {
      if (provider.prefix === "" || !text.startsWith(provider.prefix)) continue;
      try {
        return freezeJson(parseValueText((await provider.open(bytesOf(value, provider), Buffer.from(key))).toString()) as Value, { arrays: false }).value;
      } catch (error) {
        problems.push((error as Error).message); // another provider may have the same prefix, and another key
        if (error instanceof KeyAwayError) away ??= error;
      }
    }
    if (away) throw new StoreError("key-away", { key, path: key, reason: [...new Set(problems)].join("; ") }, { cause: away });
    throw new StoreError("corrupt", {
      key, path: key, reason: problems.length > 0 ? `the value cannot be decrypted: ${[...new Set(problems)].join("; ")}` : `the value is encrypted (${prefixOf(value)}…), and no provider is configured that could read it`,
      remedy: "start the server with the encryption configuration, and the keys, this was written with",
    });
  }

  /** One that cannot be read says so when it is. */
  function openOrNot(row: Row): Row | Promise<Row> {
    if (!needsOpening(row)) return row;
    const opened = open(row);
    return opened instanceof Promise ? opened.catch((error: unknown) => unreadable(row, error)) : opened;
  }

  /** Of many rows one may be damaged; where none can be opened it is the keys that are missing. A key service that is away comes back, and until then there are other rows to read. */
  async function openAll(rows: readonly Row[]): Promise<readonly Row[]> {
    const sealed = rows.filter(needsOpening);
    if (sealed.length === 0) return rows;
    const failures: StoreError[] = [];
    const opened = new Map(await Promise.all(sealed.map(async (row) => [row, await Promise.resolve(open(row)).catch((error: unknown) => {
      const without = unreadable(row, error);
      if ((error as StoreError).code !== "key-away") failures.push(error as StoreError);
      return without;
    })] as const)));
    if (failures.length === sealed.length) throw failures[0]!;
    return rows.map((row) => opened.get(row) ?? row);
  }

  /** Most rows are not sealed, and most previous values nobody looks at: those are left alone. */
  function openEvent(event: StoreEvent): StoreEvent | Promise<StoreEvent> {
    const { type, row: sealed, previous: before } = event;
    const isCovered = needsOpening(sealed) || providersFor(sealed.key).length > 0;
    if (!isCovered) return event;
    const row = openOrNot(sealed);
    const previous = before && openOrNot(before);
    if (row instanceof Promise || previous instanceof Promise) return Promise.all([row, previous]).then(([opened, was]) => ({ type, row: opened, ...(was ? { previous: was } : {}) }));
    return { type, row, ...(previous ? { previous } : {}) };
  }

  async function withOpenConflict<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      if (!(error instanceof StoreError) || !error.current) throw error;
      const current = await open(error.current);
      throw current === error.current ? error : new StoreError(error.code, { ...error.fields, current }, { cause: error });
    }
  }

  const { claim } = beneath;
  return {
    get revision() { return beneath.revision; },
    newestRevision: (signal) => beneath.newestRevision(signal),
    async get(key) {
      const row = await beneath.get(key);
      return row && open(row);
    },
    async list(options): Promise<Listing> {
      const listing = await beneath.list(options);
      const rows = await openAll(listing.rows);
      return rows === listing.rows ? listing : { ...listing, rows };
    },
    async put(key, value, expected, signal, drafted) {
      const sealed = seal(key, value);
      const put = (what: Value): ReturnType<Store["put"]> => beneath.put(key, what, expected, signal, what === value ? drafted : undefined);
      const work = sealed instanceof Promise ? sealed.then(put) : put(sealed); // in the order of the calls
      if (providersFor(key).length === 0) return await withOpenConflict(work);
      onTheWay.add(work);
      try {
        return await withOpenConflict(work);
      } finally {
        onTheWay.delete(work);
      }
    },
    delete: async (key, expected, signal) => await withOpenConflict(beneath.delete(key, expected, signal)),
    async *watch(options, signal) {
      for await (const { events, revision } of beneath.watch(options, signal)) {
        const opened: StoreEvent[] = [];
        for (const event of events) {
          const one = openEvent(event);
          opened.push(one instanceof Promise ? await one : one);
        }
        yield { events: opened, revision };
      }
    },
    compact: (revision) => beneath.compact(revision),
    ...(claim ? { claim: (name: string, options: { readonly ttlSeconds: number }) => claim.call(beneath, name, options) } : {}),
    close: () => beneath.close(),
    written: async () => void (await Promise.allSettled(onTheWay)),
  };
}
