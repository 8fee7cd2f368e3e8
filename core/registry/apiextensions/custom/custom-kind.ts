/**
 * One CustomResourceDefinition as it is served: its versions, and how objects pass between them.
 *
 *   body ──decode──▶ object of the request's version ──stored──▶ storage version ──▶ disk
 *   disk ──▶ object of whatever version it was written in ──ready, shown──▶ the request's version
 *
 * What is stored is never rewritten because a definition changes: it is pruned, defaulted and converted when it is read. Each stored object's view in each
 * version is made once and kept as long as the object is. Most objects need nothing, and then the view is the object itself.
 *
 * Source: kubernetes v1.36 apiextensions-apiserver/pkg/apiserver/customresource_handler.go
 */
import type { JsonObject } from "../../../api/codec/json-document.ts";
import type { CustomResourceDefinition, CustomResourceDefinitionVersion } from "../../../api/gen/apiextensions.v1.ts";
import { formatApiVersion, parseApiVersion } from "../../../api/meta/gvk.ts";
import type { ApiObject } from "../../../api/meta/object-meta.ts";
import { internalError, statusError } from "../../../api/meta/status-error.ts";
import type { JsonMap } from "../../../api/patch/json-value.ts";
import { customResourceSchema } from "../../../api/patch/openapi-schema.ts";
import type { ObjectSchema } from "../../../api/patch/schema.ts";
import { canonicalCustom } from "../../../api/schema/canonical-custom.ts";
import { breather } from "../../../lifecycle/breather.ts";
import type { Clock } from "../../../lifecycle/clock.ts";
import { deepFreeze } from "../../generic/cached.ts";
import { defaulted } from "./default.ts";
import { coerceEmbedded, coerceMetadata, type CoerceOptions } from "./embedded.ts";
import { pruned, withoutNulls } from "./prune.ts";
import { type Schema, type Structure, structureOf } from "./structure.ts";

/** Changes the version of objects with a webhook. Throws what the client is to be told. */
export type RemoteConversion = (objects: readonly Readonly<ApiObject>[], apiVersion: string, signal: AbortSignal) => Promise<ApiObject[]>;

export interface CustomKindOptions {
  readonly crd: Readonly<CustomResourceDefinition>;
  /** Undefined: nothing but the name of the version changes. */
  readonly remote: RemoteConversion | undefined;
  /** With one, others have their turn while thousands of objects are prepared. */
  readonly clock?: Pick<Clock, "uptimeMs"> | undefined;
}

/** As many as a webhook is asked about at once, if they are small. */
const CONVERTED_AT_ONCE = 200;

export class CustomKind {
  readonly crd: Readonly<CustomResourceDefinition>;
  readonly group: string;
  readonly storageVersion: string;
  readonly remote: RemoteConversion | undefined;
  readonly #clock: CustomKindOptions["clock"];
  readonly #versions: ReadonlySet<string>;
  readonly #structures = new Map<string, Structure>(); // made when first asked for, as schemas are: of most kinds in a cluster there is no object
  readonly #schemas = new Map<string, ObjectSchema>();
  readonly #views = new Map<string, WeakMap<object, Readonly<ApiObject>>>();

  constructor({ crd, remote, clock }: CustomKindOptions) {
    this.crd = crd;
    this.#clock = clock;
    this.group = crd.spec.group;
    this.remote = remote;
    this.storageVersion = formatApiVersion({ group: this.group, version: crd.spec.versions.find(({ storage }) => storage)!.name });
    this.#versions = new Set(crd.spec.versions.map(({ name }) => formatApiVersion({ group: this.group, version: name })));
  }

  versions(): readonly CustomResourceDefinitionVersion[] { return this.crd.spec.versions; }

  /** Of a version that there is not (a client may name any): one that knows nothing. */
  structure(version: string): Structure {
    const known = this.#structures.get(version);
    if (known) return known;
    const made = structureOf(this.#definition(version));
    if (this.knows({ apiVersion: formatApiVersion({ group: this.group, version }) })) this.#structures.set(version, made);
    return made;
  }

  /** For patches and for who owns which field. */
  schema(version: string): ObjectSchema {
    let known = this.#schemas.get(version);
    if (!known) {
      this.#schemas.set(version, (known = customResourceSchema(this.#definition(version), { apiVersion: formatApiVersion({ group: this.group, version }), kind: this.crd.spec.names.kind })));
    }
    return known;
  }

  #definition(version: string): Schema | undefined { return this.versions().find(({ name }) => name === version)?.schema?.openAPIV3Schema; }

  /** A body or a patched object, in form: metadata canonical, unknown fields gone. Neither defaulted nor checked. Throws MalformedError. */
  decode(value: JsonMap, options: CoerceOptions): ApiObject {
    const { metadata, ...content } = value;
    const withMeta = { ...content, metadata: coerceMetadata(metadata, "", options) };
    const own = parseApiVersion(typeof value["apiVersion"] === "string" ? value["apiVersion"] : "");
    const isOwn = own.group === this.group && value["kind"] === this.crd.spec.names.kind;
    return (isOwn ? this.#inForm(withMeta, this.structure(own.version), options) : withMeta) as unknown as ApiObject;
  }

  #inForm(object: JsonMap, structure: Structure, { repair = false, keepNulls = false, report }: CoerceOptions): JsonMap {
    const known = inOrder(report, (told) => this.#known(object, structure, { keepNulls, report: told }));
    return inOrder(report, (told) => coerceEmbedded(known, structure, { repair, report: told }));
  }

  #known(object: JsonMap, structure: Structure, { keepNulls, report }: CoerceOptions): JsonMap {
    if (this.crd.spec.preserveUnknownFields) return object;
    const known = pruned(object, structure, report);
    return keepNulls ? known : withoutNulls(known, structure);
  }

  /** Fills in defaults. `object` is of one of the versions, and in form; so is what defaults add to the metadata of resources in it. */
  defaulted(object: ApiObject): ApiObject {
    const structure = this.structure(parseApiVersion(object.apiVersion).version);
    const filled = defaulted(object, structure);
    return filled === object ? object : coerceEmbedded(filled as unknown as JsonMap, structure, { repair: true }) as unknown as ApiObject;
  }

  /** Makes sure that `shown` has what it needs of others. */
  async ready(stored: Iterable<Readonly<ApiObject>>, apiVersion: string, signal: AbortSignal): Promise<void> {
    const all = [...stored];
    for (const object of all) this.#refuseUnknown(object);
    if (!this.remote) return;
    const views = this.#viewsOf(apiVersion);
    const isWaiting = (object: Readonly<ApiObject>): boolean => object.apiVersion !== apiVersion && !views.has(object);
    const waiting = all.filter(isWaiting);
    for (let at = 0; at < waiting.length; at += CONVERTED_AT_ONCE) await this.#convert(waiting.slice(at, at + CONVERTED_AT_ONCE).filter(isWaiting), apiVersion, signal); // some by others meanwhile
  }

  /** What has been converted stays so, whatever becomes of the rest: who begins anew goes on from there. */
  async #convert(objects: readonly Readonly<ApiObject>[], apiVersion: string, signal: AbortSignal): Promise<void> {
    if (objects.length === 0) return;
    const current: Readonly<ApiObject>[] = [];
    await this.#each(objects, (object) => current.push(this.#current(object)));
    const converted = await this.remote!(current, apiVersion, signal);
    const views = this.#viewsOf(apiVersion), structure = this.structure(parseApiVersion(apiVersion).version);
    await this.#each(objects, (object, i) => views.set(object, deepFreeze(this.#canonical(this.#inForm(converted[i]! as unknown as JsonMap, structure, { repair: true })))));
  }

  async #each<T>(items: readonly T[], work: (item: T, i: number) => void): Promise<void> {
    const breathe = this.#clock && breather(this.#clock);
    for (const [i, item] of items.entries()) {
      work(item, i);
      const pause = breathe?.();
      if (pause) await pause;
    }
  }

  /** Throws 500 for an object of a version that the definition has no longer: nobody knows what it means. */
  #refuseUnknown(stored: Readonly<ApiObject>): void {
    if (!this.knows(stored)) throw statusError({ code: 500, reason: "", message: `request to convert CR from an invalid group/version: ${stored.apiVersion}` });
  }

  /** Whether the definition has the version that an object is stored in. */
  knows({ apiVersion }: Pick<ApiObject, "apiVersion">): boolean { return this.#versions.has(apiVersion); }

  /** A stored object as it is in a version. The object itself if that is how it is stored. */
  shown(stored: Readonly<ApiObject>, apiVersion: string): Readonly<ApiObject> {
    const views = this.#viewsOf(apiVersion);
    const known = views.get(stored);
    if (known) return known;
    if (stored.apiVersion !== apiVersion && this.remote) throw internalError(new Error(`${stored.kind} ${stored.metadata.name} has not been converted to ${apiVersion}`));
    const current = this.#current(stored);
    const view = current.apiVersion === apiVersion ? current : this.#renamed(current, apiVersion);
    const result = view === stored ? stored : deepFreeze(this.#canonical(view as unknown as JsonMap));
    views.set(stored, result);
    return result;
  }

  /** An object as it is to be stored. */
  async stored(object: Readonly<ApiObject>, signal: AbortSignal): Promise<ApiObject> {
    if (object.apiVersion === this.storageVersion) return object as ApiObject;
    if (!this.remote) return this.#canonical(this.#renamed(object, this.storageVersion) as unknown as JsonMap);
    const [converted] = await this.remote([object], this.storageVersion, signal);
    return this.#canonical(this.#inForm(converted! as unknown as JsonMap, this.structure(parseApiVersion(this.storageVersion).version), { repair: true }));
  }

  /** In its own version, as that is today. */
  #current(stored: Readonly<ApiObject>): Readonly<ApiObject> {
    const structure = this.structure(parseApiVersion(stored.apiVersion).version);
    return this.defaulted(this.#inForm(stored as unknown as JsonMap, structure, { repair: true }) as unknown as ApiObject);
  }

  /** The strategy None: the fields of one version are those of the other, but for those it does not have. */
  #renamed(object: Readonly<ApiObject>, apiVersion: string): ApiObject {
    return this.#inForm({ ...object, apiVersion }, this.structure(parseApiVersion(apiVersion).version), { repair: true }) as unknown as ApiObject;
  }

  #canonical(object: JsonMap): ApiObject { return canonicalCustom(object as JsonObject).object as unknown as ApiObject; }

  #viewsOf(apiVersion: string): WeakMap<object, Readonly<ApiObject>> {
    let views = this.#views.get(apiVersion);
    if (!views) this.#views.set(apiVersion, (views = new WeakMap()));
    return views;
  }
}

/** Reports the paths that `work` reports in alphabetical order. */
function inOrder<T>(report: CoerceOptions["report"], work: (report: CoerceOptions["report"]) => T): T {
  if (!report) return work(undefined);
  const paths: string[] = [];
  const done = work((path) => void paths.push(path));
  for (const path of paths.sort()) report(path);
  return done;
}
