/**
 * The table of all resources: the built-in ones from core/api/schema/resources.txt with their definitions, and those that CustomResourceDefinitions add.
 *
 * Versions of one resource share a ResourceStore, which keeps objects in one of them; the others are converted on the way in and out.
 */
import { formatApiVersion, type GroupVersion } from "../api/meta/gvk.ts";
import type { ApiObject } from "../api/meta/object-meta.ts";
import { canonicalOwn, canonicalSent } from "../api/schema/canonical.ts";
import { declaredDefaults } from "../api/schema/declared-defaults.ts";
import { builtInFacts } from "../api/schema/facts.ts";
import { builtInResources, type ResourceRow } from "../api/schema/resources.ts";
import { canonicalCustom } from "../api/schema/canonical-custom.ts";
import type { CustomResourceDefinitionNames } from "../api/gen/apiextensions.v1.ts";
import { customRow } from "./apiextensions/custom/custom-row.ts";
import type { CustomKind } from "./apiextensions/custom/custom-kind.ts";
import { customResource } from "./apiextensions/custom/custom-resource.ts";
import { CustomVersion } from "./apiextensions/custom/custom-version.ts";
import type { RuleMeter } from "./apiextensions/rules/rule-meter.ts";
import type { Clock } from "../lifecycle/clock.ts";
import type { Random } from "../lifecycle/random.ts";
import type { Store } from "../../storage/store.ts";
import type { Resource } from "./generic/resource.ts";
import { ResourceStore } from "./generic/store.ts";
import type { WatchCache } from "./generic/watch-cache.ts";

/** Changes the version of an object within its group. Returns a new object (or the same for the same version); never mutates. */
export type Convert = (object: Readonly<ApiObject>, apiVersion: string) => ApiObject;

/** One resource in one version, as it is served. */
export interface ServedResource {
  readonly row: ResourceRow;
  readonly apiVersion: string;
  readonly definition: Resource;
  /** Absent for resources that are only created and answered at once: reviews, tokens. */
  readonly store: ResourceStore | undefined;
  toStorage(object: ApiObject): ApiObject;
  /** Fills in what the API defaults, in an object of the storage version. Mutates, but for a spec that is `kept`: one that is stored, and has its defaults. */
  applyDefaults(object: ApiObject, kept?: object): void;
  /** Whether a spec can be `kept`. */
  readonly keepsSpec: boolean;
  fromStorage(object: Readonly<ApiObject>): Readonly<ApiObject>;
  /** Must have been awaited before `fromStorage` may be asked about these. */
  ready(objects: Iterable<Readonly<ApiObject>>, signal: AbortSignal): Promise<void>;
  /** Of a custom resource: what the facts know of built-in ones. */
  readonly custom: CustomVersion | undefined;
}

interface Deps {
  readonly store: Store;
  readonly cache: WatchCache;
  readonly clock: Clock;
  readonly random: Random;
  readonly convert: Convert;
  /** Absent: nobody asks how long rules take. */
  readonly ruleMeter?: RuleMeter | undefined;
}

interface Rows {
  readonly all: readonly ResourceRow[];
  readonly byVersion: ReadonlyMap<string, readonly ResourceRow[]>;
  /** By their names in the plural: of versions that are not served, too. */
  readonly known: ReadonlyMap<string, readonly ResourceRow[]>;
}

export class Registry {
  readonly #deps: Deps;
  readonly #served = new Map<string, ServedResource>();
  /** Versions of custom resources that are not served. */
  readonly #withheld = new Map<string, ServedResource>();
  readonly #stores = new Map<string, ResourceStore>();
  readonly #builtInGroups: ReadonlySet<string>;
  /** Of group/resource. */
  readonly #builtInStores: ReadonlySet<string>;
  readonly #custom = new Map<string, { readonly keys: readonly string[]; readonly retire: AbortController }>();
  /** Asked for by every group there is, of which there may be hundreds. Undefined: a resource was added or removed. */
  #rows: Rows | undefined;
  #changes = 0;
  readonly #listeners = new Set<() => void>();

  constructor(rows: readonly ResourceRow[], definitions: readonly Resource[], deps: Deps) {
    this.#deps = deps;
    const byName = new Map(definitions.map((definition) => [`${definition.group}/${definition.plural}`, definition]));
    const kin = [...rows, ...builtInResources.everyRow()]; // a version that is not served may be the one that is stored
    for (const row of rows) {
      const storage = kin.filter((other) => other.group === row.group && other.plural === row.plural).toSorted(byStability)[0]!;
      this.#add(row, storage, byName.get(`${row.group}/${row.plural}`));
    }
    this.#builtInGroups = new Set(rows.map(({ group }) => group));
    this.#builtInStores = new Set(this.#stores.keys());
  }

  /** Grows whenever a resource is added or removed: what is derived from the table (discovery, OpenAPI) is made again then. */
  get changes(): number {
    return this.#changes;
  }

  /** Calls `listener` after each growth of `changes`; returns what ends that. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #changed(): void {
    this.#changes++;
    for (const listener of this.#listeners) listener();
  }

  find(group: string, version: string, plural: string): ServedResource | undefined {
    return this.#served.get(`${group}/${version}/${plural}`);
  }

  /** Also of a version that is not served: webhooks may ask to see objects in it. */
  known(group: string, version: string, plural: string): ServedResource | undefined {
    const key = `${group}/${version}/${plural}`;
    return this.#served.get(key) ?? this.#withheld.get(key);
  }

  /** Those of that name in all groups, also of versions that are not served. Each webhook and policy asks for them with each write. */
  knownRowsNamed(plural: string): readonly ResourceRow[] { return this.#rowsNow.known.get(plural) ?? []; }

  rows(): readonly ResourceRow[] { return this.#rowsNow.all; }

  /** Those of one version of a group. */
  rowsOf(groupVersion: GroupVersion): readonly ResourceRow[] { return this.#rowsNow.byVersion.get(formatApiVersion(groupVersion)) ?? []; }

  get #rowsNow(): Rows {
    if (this.#rows) return this.#rows;
    const all = [...this.#served.values()].map(({ row }) => row);
    const known = [...all, ...[...this.#withheld.values()].map(({ row }) => row)];
    return (this.#rows = { all, byVersion: Map.groupBy(all, formatApiVersion), known: Map.groupBy(known, ({ plural }) => plural) });
  }

  served(): Iterable<ServedResource> {
    return this.#served.values();
  }

  /** The store of a resource, whatever its versions. */
  storeOf(group: string, plural: string): ResourceStore | undefined {
    return this.#stores.get(`${group}/${plural}`);
  }

  /** Whether the objects that are stored under this name are of a resource of ours, whatever definition there is. */
  isBuiltIn(group: string, plural: string): boolean { return this.#builtInStores.has(`${group}/${plural}`); }

  /** Serves a custom resource in all its versions, in place of what was served under its name. Built-in resources keep theirs, and in their groups nothing else is served: such a definition is there for nothing. */
  setCustom(kind: CustomKind, names: CustomResourceDefinitionNames, { isEnding = false }: { /** Nothing else of it has changed: its watches go on, to tell of the end of its objects. */ readonly isEnding?: boolean } = {}): void {
    const { group } = kind;
    const before = this.#withdraw(group, names.plural);
    if (!isEnding) before?.abort();
    const retire = (isEnding ? before : undefined) ?? new AbortController();
    const keys: string[] = [];
    for (const version of kind.versions()) {
      const key = `${group}/${version.name}/${names.plural}`;
      const row = customRow(kind, names, version);
      if (this.#served.has(key)) continue;
      const custom = new CustomVersion(kind, version, retire.signal);
      const { apiVersion } = custom;
      const definition = customResource({ spec: kind.crd.spec, names, version, structure: () => kind.structure(version.name), ruleMeter: this.#deps.ruleMeter });
      const store = new ResourceStore({
        group, version: version.name, plural: names.plural, kind: names.kind, namespaced: row.namespaced, hasStatus: version.subresources?.status !== undefined,
        canonical: (object) => canonicalCustom(object as never).object as unknown as ApiObject,
        form: {
          ready: (stored, signal) => kind.ready(stored, apiVersion, signal),
          shown: (stored) => kind.shown(stored, apiVersion),
          stored: (object, signal) => kind.stored(object, signal),
        },
      }, definition, this.#deps);
      if (version.storage && !this.isBuiltIn(group, names.plural)) this.#stores.set(`${group}/${names.plural}`, store);
      keys.push(key);
      this.#rows = undefined;
      (version.served && !this.#builtInGroups.has(group) ? this.#served : this.#withheld).set(key, {
        row, apiVersion, definition, store, custom,
        toStorage: (object) => object,
        keepsSpec: false,
        applyDefaults: (object) => void Object.assign(object, kind.defaulted(object)),
        fromStorage: (object) => kind.shown(object, apiVersion),
        ready: (objects, signal) => kind.ready(objects, apiVersion, signal),
      });
    }
    this.#custom.set(`${group}/${names.plural}`, { keys, retire });
    this.#changed();
  }

  /** Ends the watches of what was served. */
  removeCustom(group: string, plural: string): void {
    const retire = this.#withdraw(group, plural);
    if (!retire) return;
    retire.abort();
    this.#changed();
  }

  /** Returns what ends the watches of what was served. */
  #withdraw(group: string, plural: string): AbortController | undefined {
    const known = this.#custom.get(`${group}/${plural}`);
    if (!known) return undefined;
    for (const key of known.keys) {
      this.#rows = undefined;
      this.#served.delete(key);
      this.#withheld.delete(key);
    }
    if (!this.isBuiltIn(group, plural)) this.#stores.delete(`${group}/${plural}`);
    this.#custom.delete(`${group}/${plural}`);
    return known.retire;
  }

  #add(row: ResourceRow, storage: ResourceRow, definition: Resource | undefined): void {
    const resource: Resource = definition ?? { group: row.group, version: row.version, kind: row.kind, plural: row.plural };
    const stored = row.verbs.includes("get") || row.verbs.includes("list");
    const home = storedTogether(storage);
    const apiVersion = formatApiVersion(row);
    const storageVersion = formatApiVersion(home);
    const { convert } = this.#deps;
    const type = builtInFacts.typeOf({ ...home, kind: row.kind });
    const { statusDefaults } = resource;
    const statusType = statusDefaults && type?.field("status")?.type;
    this.#rows = undefined;
    this.#served.set(`${row.group}/${row.version}/${row.plural}`, {
      row,
      apiVersion,
      definition: resource,
      store: stored ? this.#storeFor(home, resource, row) : undefined,
      custom: undefined,
      ready: () => Promise.resolve(),
      toStorage: (object) => (object.apiVersion === storageVersion ? object : convert(object, storageVersion)),
      keepsSpec: statusDefaults !== undefined && apiVersion === storageVersion,
      applyDefaults(object, kept) {
        if (statusDefaults && kept !== undefined && (object as { readonly spec?: unknown }).spec === kept) {
          const { status } = object as { readonly status?: object };
          if (statusType?.kind === "struct" && status) declaredDefaults.apply(statusType, status);
          statusDefaults(object);
          return;
        }
        if (type) declaredDefaults.apply(type, object);
        resource.defaults?.(object);
      },
      fromStorage: (object) => (object.apiVersion === apiVersion ? object : convert(object, apiVersion)),
    });
    this.#changed();
  }

  #storeFor(home: { group: string; version: string; plural: string }, definition: Resource, row: ResourceRow): ResourceStore {
    const key = `${home.group}/${home.plural}`;
    const isHome = home.group === row.group;
    let store = isHome ? this.#stores.get(key) : undefined;
    if (!store) {
      const { group, version, plural } = home;
      const type = builtInFacts.typeOf({ group, version, kind: row.kind });
      store = new ResourceStore(
        {
          group, version, plural, kind: row.kind, namespaced: row.namespaced,
          hasStatus: row.subresources.some(({ name }) => name === "status"), ...(isHome ? {} : { askedIn: row.group }),
          canonical: type ? (object, known, forgot) => canonicalOwn(type, object, known, forgot) : (object) => object,
          ...(type && { asSent: (object) => canonicalSent(type, object) }),
        },
        definition,
        this.#deps,
      );
      if (isHome) this.#stores.set(key, store);
    }
    return store;
  }
}

/** Events are one resource under two groups. */
function storedTogether(row: ResourceRow): { group: string; version: string; plural: string } {
  return row.plural === "events" && row.group === "events.k8s.io" ? { group: "", version: "v1", plural: "events" } : row;
}

/** v2 before v1 before v1beta2 before v1beta1 before v1alpha1. Source: apimachinery pkg/version CompareKubeAwareVersionStrings */
function byStability(a: { readonly version: string }, b: { readonly version: string }): number {
  const [ka, ma, na] = parts(a.version);
  const [kb, mb, nb] = parts(b.version);
  return kb - ka || mb - ma || nb - na || a.version.localeCompare(b.version);
}

function parts(version: string): [stability: number, major: number, minor: number] {
  const match = /^v(\d+)(?:(alpha|beta)(\d+))?$/.exec(version);
  if (!match) return [-1, 0, 0];
  return [match[2] === "alpha" ? 0 : match[2] === "beta" ? 1 : 2, Number(match[1]), Number(match[3] ?? 0)];
}
