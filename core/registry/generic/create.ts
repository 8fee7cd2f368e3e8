/**
 * An object that is not there yet: named, filled in, checked, written.
 *
 * Source: kubernetes v1.36 apiserver/pkg/registry/generic/registry/store.go, apiserver/pkg/registry/rest/create.go
 */
import type { FieldError } from "../../api/meta/field-error.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { generateNameConflict, isAlreadyExists, StatusError } from "../../api/meta/status-error.ts";
import { inPieces } from "../../lifecycle/breather.ts";
import { type Random, safeSuffix } from "../../lifecycle/random.ts";
import { type Cached, deepFreeze } from "./cached.ts";
import { fillForCreate } from "./object-meta.ts";
import { gathered, metaErrors, refuseInvalid, refuseVersion } from "./refusals.ts";
import type { WriteContext } from "./resource.ts";
import type { WriteOptions } from "./stored-resource.ts";
import type { Target } from "./target.ts";

/** Names tried before a generateName gives up. */
const GENERATE_NAME_TRIES = 8; // apiserver pkg/registry/generic/registry/store.go maxNameGenerationCreateAttempts
const GENERATED_NAME_BYTES_MAX = 63;
const GENERATED_SUFFIX_LENGTH = 5;

export async function create(target: Target, object: ApiObject, options: WriteOptions): Promise<Cached> {
  const { metadata } = object;
  const generateName = metadata.name ? undefined : metadata.generateName;
  for (let tries = 1; ; tries++) {
    if (generateName) metadata.name = target.definition.takesBaseAsName ? generateName : generatedName(generateName, target.random);
    if (generateName && tries < GENERATE_NAME_TRIES && target.cache.get(target.keyOf(metadata.namespace ?? "", metadata.name))) continue; // before the object is made ready for a name that it will not have
    try {
      return await createOnce(target, object, options);
    } catch (error) {
      if (!generateName || !isAlreadyExists(error)) throw namedTaken(target, error, metadata);
      if (tries >= GENERATE_NAME_TRIES) throw generateNameConflict(target.groupResource, metadata.name);
    }
  }
}

function generatedName(base: string, random: Random): string {
  return base.slice(0, GENERATED_NAME_BYTES_MAX - GENERATED_SUFFIX_LENGTH) + safeSuffix(random, GENERATED_SUFFIX_LENGTH);
}

/** Tells of a name that is only about to be free, and of one that was given beside a generateName. */
function namedTaken({ cache, keyOf, groupResource }: Target, error: unknown, { namespace = "", name, generateName }: ApiObject["metadata"]): unknown {
  if (!isAlreadyExists(error) || !(error instanceof StatusError)) return error;
  const told = generateName ? generateNameConflict(groupResource, name) : error;
  const taken = cache.get(keyOf(namespace, name));
  if (!taken?.object.metadata.deletionTimestamp) return told;
  return new StatusError({ ...told.status, message: `object is being deleted: ${told.message}` });
}

/** What is wrong with a new object, in upstream's order. */
function ownErrors(target: Target, object: ApiObject, context: WriteContext): readonly FieldError[] {
  const { definition } = target, own = gathered(definition.validate?.(object, undefined, context));
  const isOwnFirst = own.length > 0 && definition.anyMeta?.(context) === true; // upstream's strategy says nothing of metadata then, and what is looked at after it is not reached
  return isOwnFirst ? own : [...metaErrors(target, object, context), ...own];
}

async function createOnce(target: Target, draft: ApiObject, { context, signal, validate, warn, sent, ahead, span }: WriteOptions): Promise<Cached> {
  const { resource, definition, cache, commits } = target;
  const given = draft.metadata.resourceVersion;
  fillForCreate(draft, context, definition.generation !== false && !definition.keepsGenerationOnCreate);
  const dropsStatus = resource.hasStatus && !definition.keepsStatusOnCreate;
  if (dropsStatus) delete (draft as { status?: unknown }).status;
  definition.prepareForCreate?.(draft, context);
  const allocation = await definition.allocate?.(draft, undefined, context);
  try {
    const recognized = commits.recognize(draft);
    let seen: ApiObject | undefined;
    const forgot = (): void => { if (validate) seen = resource.asSent?.(draft); };
    const object = recognized.spec ? resource.canonical({ ...draft, spec: recognized.spec } as ApiObject, { spec: recognized.spec } as unknown as ApiObject, forgot) : resource.canonical(draft, undefined, forgot);
    if (definition.foresee) await inPieces(definition.foresee(object, undefined, context), target.breathers());
    refuseInvalid(target, object, (checked) => ownErrors(target, checked, context), sent && (() => (dropsStatus ? { ...sent(), status: undefined } : sent())));
    if (warn) for (const text of definition.warnings?.(object, undefined) ?? []) warn(text);
    await validate?.(deepFreeze(seen ?? object), undefined);
    if (!context.dryRun) refuseVersion(given);
    const key = target.keyOf(object.metadata.namespace ?? "", object.metadata.name);
    const stored = await commits.stored(definition.onceStored?.(object) ?? object, signal);
    const entry = context.dryRun ? commits.dryRun(key, stored, cache.get(key) !== undefined) : await commits.put(key, stored, undefined, signal, { recognized, ahead, span });
    if (context.dryRun) await allocation?.rollback();
    else await allocation?.commit();
    return entry;
  } catch (error) {
    await allocation?.rollback();
    throw error;
  }
}
