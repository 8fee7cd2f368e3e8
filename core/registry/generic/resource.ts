/**
 * What makes one API resource different from all the others. Everything they share is in store.ts.
 *
 * Names, verbs and subresources of every resource come from core/api/schema/resources.txt; a definition here adds behaviour to a row of it.
 * A row without a definition is served all the same.
 */
import type { FieldError } from "../../api/meta/field-error.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import type { UserInfo } from "../../api/request/user.ts";
import type { Pausing } from "../../lifecycle/breather.ts";

/** What only an authorizer can say of whoever writes. */
export interface Permissions {
  /** Of the request: a patch is not an update. */
  readonly verb: string;
  /** Why that may not be done to the resource that is written, in upstream's words; undefined: it may. */
  refusal(asked: { readonly verb: string; readonly subresource: string; readonly namespace: string; readonly name: string }): Promise<string | undefined>;
}

export interface WriteContext {
  readonly user: UserInfo;
  readonly nowMs: number;
  readonly dryRun: boolean;
  /** Of the version the request names: some are stricter than others of the same resource. */
  readonly group?: string | undefined;
  /** Absent: nobody asks. */
  readonly permissions?: Permissions | undefined;
  /** A random uuid. */
  uuid(): string;
  /** Tells the client of what is no longer to be seen once the object is prepared. */
  warn?(text: string): void;
}

export interface Resource<T extends ApiObject = ApiObject> {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;

  /** Fills in what the API defaults imperatively. Also applied to objects read in other versions. Mutates. */
  defaults?(object: T): void;
  /** The part of `defaults` that is below status. Where it is given, it is all that a patch of the status that leaves spec alone runs of them. Mutates. */
  statusDefaults?(object: T): void;
  /** Clears what a create may not set (status, mostly: done by default for resources with a status subresource), sets what the server decides. Mutates. */
  prepareForCreate?(object: T, context: WriteContext): void;
  /** What is defaulted only when the object is read back from the store: whoever is asked before it is written does not see it. */
  onceStored?(object: Readonly<T>): T;
  /** What readers are shown of what is stored, where that is less. Never mutates. */
  onRead?(object: Readonly<T>): Readonly<T>;
  /** A create may set the status (nodes: a kubelet registers with its capacity). */
  readonly keepsStatusOnCreate?: boolean;
  /** Keeps what an update may not change. Status is kept by default. Mutates `next`. */
  prepareForUpdate?(next: T, old: Readonly<T>, context: WriteContext): void;
  /** `old`: what an update replaces; undefined for a create. What was stored already may have to be let pass. */
  validate?(object: Readonly<T>, old?: Readonly<T>, context?: WriteContext): Iterable<FieldError>;
  /** Errors of the change; `validate` of the new object has been run before. `emptied`: fields that were sent as an empty list or map, which upstream may not take for none. */
  validateUpdate?(next: Readonly<T>, old: Readonly<T>, emptied?: readonly string[]): Iterable<FieldError>;
  /** Texts for the Warning header. */
  warnings?(next: Readonly<T>, old: Readonly<T> | undefined): Iterable<string>;
  /** Whether `next` differs from `old` in what bumps metadata.generation. Default: anything but metadata and status. `false`: this resource has no generation. */
  readonly generation?: false | ((next: Readonly<T>, old: Readonly<T>) => boolean);
  /** It counts from what the client says on, or from nothing; else from 1. */
  readonly keepsGenerationOnCreate?: true;
  /** An empty list is another than none until it is stored: who sends one changes the object each time. */
  readonly tellsEmpty?: true;
  /** How names are checked; default: DNS-1123 subdomain. Yields the texts of what is wrong. */
  validateName?(name: string): Iterable<string>;
  /** In which order upstream tells of an update, where it is not the change of the metadata, the metadata as it is, `validate` and `validateUpdate`. */
  readonly updateOrder?: "change first" | "change last";
  /** Finalizers need only be qualified names, as those of custom resources. */
  readonly anyFinalizer?: boolean;
  /** A generateName need only be what can stand in a path. */
  readonly anyBase?: boolean;
  /** A generateName is the name, and nothing is added to it. */
  readonly takesBaseAsName?: true;
  /** Whether a name need only be what can stand in a path, and finalizers may be anything. */
  anyMeta?(context: WriteContext): boolean;
  /** Why the object of this name is not deleted, if that is so. A collection goes all the same. */
  undeletable?(name: string): string | undefined;
  /** Added by the first delete, whatever it says of dependents: the object stays until somebody has done what they stand for. */
  readonly finalizersOnDelete?: readonly string[];
  /** PUT of a name that does not exist creates it. */
  readonly createOnUpdate?: boolean;
  /** PUT without a resourceVersion is refused when false. Default: true. */
  readonly unconditionalUpdate?: boolean;
  /** Selectable fields beyond metadata.name and metadata.namespace, as field path → value. Every path is always present. */
  fields?(object: Readonly<T>): Record<string, string>;
  /** Seconds of grace a delete gives, from the object and what was asked for; 0: delete at once. Absent: the resource has no graceful deletion. May mutate `object` (a copy) to record it. */
  gracePeriodSeconds?(object: T, requestedSeconds: number | undefined): number;
  /** Whether something of the object's own keeps it from going once it is being deleted (spec.finalizers of a namespace). metadata.finalizers are looked after by store.ts. */
  isHeld?(object: Readonly<T>): boolean;
  /** Objects that differ in these alone are alike in all that is found out about their specs. */
  readonly ownTexts?: OwnTexts;
  /** Changes the copy that is marked for deletion (status.phase of a namespace). */
  markDeleting?(object: T, nowMs: number): void;
  /** Whether deletion keeps dependents when the client does not say ("Orphan"), as for replication controllers. "Unsupported": it knows of none, whatever the client says. */
  readonly defaultPropagation?: "Orphan" | "Background" | "Unsupported";
  /** A warning for a client that deletes without saying what becomes of dependents. */
  readonly deletionWarning?: string;
  readonly subresources?: Readonly<Record<string, Subresource<T>>>;
  /** Takes what the object needs from pools (cluster IPs, node ports) before it is stored. Mutates `next`. What it returns is called once the write has succeeded or failed. */
  allocate?(next: T, old: Readonly<T> | undefined, context: WriteContext): Promise<Allocation> | Allocation;
  /** Finds out what takes long and `validate` will ask for, which has the same `context`: others may have their turns after each piece of it. Of what was not found out `validate` does so itself. */
  foresee?(next: Readonly<T>, old: Readonly<T> | undefined, context: WriteContext): Pausing<void>;
  /** Gives back what a deleted object had. Never throws. */
  afterDelete?(object: Readonly<T>, context: WriteContext): Promise<void>;
}

/** Not empty. */
export type OwnText = string | readonly string[];

/** Texts in a spec that are for others than the API server: it may be known by what is left without them. */
export interface OwnTexts {
  /** The spec with a mark in the place of each, and what they are. */
  apart(spec: object): { readonly outline: object; readonly texts: readonly OwnText[] };
  /** A spec like `known`, of the same outline, with these texts; what was found out about it holds for the other. */
  together(known: object, texts: readonly OwnText[]): object;
}

export interface Allocation {
  commit(): Promise<void> | void;
  rollback(): Promise<void> | void;
}

export type Subresource<T extends ApiObject = ApiObject> =
  /** Writes only a part of the object: status, approval, finalize, resize, ephemeralcontainers. */
  | {
      readonly type: "part";
      /** `false`: a write through it never bumps metadata.generation. */
      readonly generation?: false;
      /** Takes the part from `next` and all the rest from `old`. Mutates `next`. */
      prepare(next: T, old: Readonly<T>, context: WriteContext): void;
      /** What whoever writes may not change of it: told before what is wrong with it. */
      authorize?(next: Readonly<T>, old: Readonly<T>, context: WriteContext): Promise<readonly FieldError[]>;
      validate?(next: Readonly<T>, old: Readonly<T>, context?: WriteContext): Iterable<FieldError>;
      /** Texts for the Warning header. */
      warnings?(next: Readonly<T>): Iterable<string>;
    }
  /** Another kind seen through the object: scale. */
  | {
      readonly type: "view";
      /** Whether a patch that gives it another uid is refused; without it, that says nothing. */
      readonly isOfItself?: true;
      read(object: Readonly<T>): ApiObject;
      /** What a change of it begins with, where that is not what `read` gives. */
      draft?(object: Readonly<T>): ApiObject;
      /** What a GET answers with, where that is not what `read` gives. May throw a StatusError. */
      show?(object: Readonly<T>): ApiObject;
      /** Mutates `object`. */
      write(object: T, view: Readonly<ApiObject>): void;
      validate?(view: Readonly<ApiObject>): Iterable<FieldError>;
    };

export function defineResource<T extends ApiObject>(resource: Resource<T>): Resource<T> {
  return Object.freeze(resource);
}
