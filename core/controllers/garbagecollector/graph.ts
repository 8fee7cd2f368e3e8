/**
 * Who owns whom: every object of the cluster as a node, its owners and its dependents. No I/O; changes come in, what must be looked at comes out.
 *
 * A node is *virtual* as long as it is known only from the owner references of others. Whether such an owner exists is for a live look at it to say;
 * if it does not, `absent` is told, and what hangs on it is looked at in turn.
 *
 * Owner references may be wrong: of another namespace, or with the uid of an object of another kind or name. Such a reference never makes an
 * object vanish that it does not name: dependents are told apart by the full coordinates of the owner they name, not by its uid alone.
 *
 * Source: kubernetes v1.36 pkg/controller/garbagecollector/{graph,graph_builder}.go
 */
import { parseApiVersion } from "../../api/meta/gvk.ts";
import { type ApiObject, hasFinalizer, isDeleting, namespaceOf, type OwnerReference } from "../../api/meta/object-meta.ts";

export const ORPHAN = "orphan";
export const FOREGROUND = "foregroundDeletion";

/** Names an object fully. Cluster-scoped: namespace "". */
export interface Identity { readonly apiVersion: string; readonly kind: string; readonly namespace: string; readonly name: string; readonly uid: string }

export interface GraphNode {
  identity: Identity;
  virtual: boolean;
  beingDeleted: boolean;
  /** It is being deleted in the foreground: it waits for its dependents. */
  deletingDependents: boolean;
  owners: readonly Readonly<OwnerReference>[];
  /** The same by uid, if they are many: of each owner that is not there the node is asked for what it says of it. */
  byUid?: ReadonlyMap<string, readonly Readonly<OwnerReference>[]> | undefined;
  readonly dependents: Set<GraphNode>;
}

export interface Effects {
  /** Nodes to try to delete, or whose owners to check. */
  readonly look: GraphNode[];
  /** Virtual nodes to look at again, but not at once. */
  readonly lookLater: GraphNode[];
  /** Nodes whose dependents are to be set free. */
  readonly orphan: GraphNode[];
  /** Owners found not to exist. */
  readonly gone: Identity[];
  /** References into another namespace, to be told to the user. */
  readonly invalid: { readonly dependent: GraphNode; readonly owner: Identity }[];
}

function none(): Effects { return { look: [], lookLater: [], orphan: [], gone: [], invalid: [] }; }

export function identityOf(object: Readonly<ApiObject>, { apiVersion, kind }: { readonly apiVersion: string; readonly kind: string }): Identity {
  return { apiVersion, kind, namespace: namespaceOf(object), name: object.metadata.name, uid: object.metadata.uid };
}

/** The owner that a reference in `namespace` names. */
export function ownerIdentity({ apiVersion, kind, name, uid }: Readonly<OwnerReference>, namespace: string): Identity { return { apiVersion, kind, namespace, name, uid }; }

function sameOwner(reference: Readonly<OwnerReference>, identity: Identity): boolean {
  return reference.uid === identity.uid && reference.name === identity.name && reference.kind === identity.kind && reference.apiVersion === identity.apiVersion;
}

export function sameIdentity(a: Identity, b: Identity): boolean { return a.namespace === b.namespace && sameOwner(a, b); }

export class OwnerGraph {
  readonly #nodes = new Map<string, GraphNode>();

  get(uid: string): GraphNode | undefined { return this.#nodes.get(uid); }

  /** An informer of one kind, in whichever version, does not show all that others have shown: whether the rest is gone is asked at the source, of what was on its way, too. */
  doubt(of: { readonly group: string; readonly kind: string }, isShown: (identity: Identity) => boolean): Effects {
    const effects = none();
    for (const node of this.#nodes.values()) {
      const { apiVersion, kind } = node.identity;
      if (node.virtual || kind !== of.kind || parseApiVersion(apiVersion).group !== of.group || isShown(node.identity)) continue;
      node.beingDeleted = false;
      effects.look.push(node);
    }
    return effects;
  }

  /** An object appeared or changed. */
  put(identity: Identity, object: Readonly<ApiObject>, old: Readonly<ApiObject> | undefined): Effects {
    const effects = none();
    const owners = object.metadata.ownerReferences ?? [];
    let node = this.#nodes.get(identity.uid);
    if (node?.virtual) this.#observe(node, identity, effects);
    if (node === undefined) {
      const waits = isDeleting(object) && hasFinalizer(object, FOREGROUND);
      node = { identity, virtual: false, beingDeleted: isDeleting(object), deletingDependents: waits, owners, byUid: indexOf(owners), dependents: new Set() };
      this.#nodes.set(identity.uid, node);
      this.#addToOwners(node, owners, effects);
    } else {
      this.#changeOwners(node, owners, effects);
      if (isDeleting(object)) node.beingDeleted = true;
    }
    if (deletionStarts(old, object, ORPHAN)) effects.orphan.push(node);
    else if (deletionStarts(old, object, FOREGROUND)) {
      node.deletingDependents = true;
      effects.look.push(...node.dependents, node);
    }
    return effects;
  }

  /** An object is gone. */
  remove(uid: string): Effects {
    const effects = none();
    const node = this.#nodes.get(uid);
    if (node !== undefined) this.#drop(node, node.identity, effects);
    return effects;
  }

  /** A live look has found that this does not exist. */
  absent(identity: Identity): Effects {
    const effects = none();
    const node = this.#nodes.get(identity.uid);
    if (node === undefined) return effects;
    const { matching, other } = partition(node, identity);
    if (!node.virtual && sameIdentity(node.identity, identity)) this.#drop(node, identity, effects);
    else if (!node.virtual) {
      if (matching.length > 0) effects.gone.push(identity);
      effects.look.push(...matching);
    } else if (other.length === 0) this.#drop(node, identity, effects);
    else {
      // Some name this owner, some another one of the same uid: the first lose theirs, the node stands for the other from now on.
      if (matching.length > 0) effects.gone.push(identity);
      effects.look.push(...matching);
      const next = sameIdentity(node.identity, identity) ? alternative(other, identity) : undefined;
      if (next !== undefined) {
        node.identity = next;
        effects.lookLater.push(node);
      }
    }
    return effects;
  }

  /** What was known by hearsay is seen. Dependents that named it wrongly are looked at. */
  #observe(node: GraphNode, identity: Identity, effects: Effects): void {
    if (!sameIdentity(node.identity, identity)) {
      for (const dependent of partition(node, identity).other) {
        if (identity.namespace !== "" && dependent.identity.namespace !== identity.namespace) effects.invalid.push({ dependent, owner: identity });
        effects.look.push(dependent);
      }
      node.identity = identity;
    }
    node.virtual = false;
  }

  #addToOwners(node: GraphNode, owners: readonly Readonly<OwnerReference>[], effects: Effects): void {
    let suspect = false;
    for (const reference of owners) {
      const owner = this.#nodes.get(reference.uid);
      if (owner === undefined) {
        const identity = ownerIdentity(reference, node.identity.namespace);
        const virtual: GraphNode = { identity, virtual: true, beingDeleted: false, deletingDependents: false, owners: [], dependents: new Set([node]) };
        this.#nodes.set(reference.uid, virtual);
        effects.look.push(virtual);
        continue;
      }
      owner.dependents.add(node);
      const { namespace } = owner.identity;
      const elsewhere = namespace !== "" && namespace !== node.identity.namespace;
      if (elsewhere && !owner.virtual) effects.invalid.push({ dependent: node, owner: owner.identity });
      suspect ||= elsewhere || !sameOwner(reference, owner.identity) || (owner.virtual && namespace !== node.identity.namespace);
    }
    if (suspect) effects.look.push(node);
  }

  #changeOwners(node: GraphNode, next: readonly Readonly<OwnerReference>[], effects: Effects): void {
    const before = new Map(node.owners.map((reference) => [reference.uid, reference]));
    const after = new Map(next.map((reference) => [reference.uid, reference]));
    // An owner that this one no longer blocks may go on with its own deletion.
    for (const [uid, reference] of before) {
      const owner = reference.blockOwnerDeletion && !after.get(uid)?.blockOwnerDeletion ? this.#nodes.get(uid) : undefined;
      if (owner !== undefined) effects.look.push(owner);
    }
    node.owners = next;
    node.byUid = indexOf(next);
    this.#addToOwners(node, next.filter(({ uid }) => !before.has(uid)), effects);
    for (const uid of before.keys()) if (!after.has(uid)) this.#nodes.get(uid)?.dependents.delete(node);
  }

  #drop(node: GraphNode, identity: Identity, effects: Effects): void {
    this.#nodes.delete(node.identity.uid);
    for (const { uid } of node.owners) {
      const owner = this.#nodes.get(uid);
      owner?.dependents.delete(node);
      if (owner?.deletingDependents) effects.look.push(owner);
    }
    if (node.dependents.size > 0) effects.gone.push(identity);
    effects.look.push(...node.dependents);
  }
}

function deletionStarts(old: Readonly<ApiObject> | undefined, object: Readonly<ApiObject>, finalizer: string): boolean {
  if (!isDeleting(object) || !hasFinalizer(object, finalizer)) return false;
  return old === undefined || !isDeleting(old) || !hasFinalizer(old, finalizer);
}

/** Below it looking through all of them is as quick, and there are as many nodes as objects. */
const INDEXED_MIN = 16;

function indexOf(owners: readonly Readonly<OwnerReference>[]): GraphNode["byUid"] { return owners.length < INDEXED_MIN ? undefined : Map.groupBy(owners, ({ uid }) => uid); }

/** What a node says of the owner of this uid. */
export function referencesTo({ owners, byUid }: GraphNode, uid: string): readonly Readonly<OwnerReference>[] { return byUid ? byUid.get(uid) ?? [] : owners.filter((reference) => reference.uid === uid); }

/** Dependents that name exactly this owner, and those that name another of the same uid; one can do both. */
function partition(node: GraphNode, identity: Identity): { readonly matching: GraphNode[]; readonly other: GraphNode[] } {
  const matching: GraphNode[] = [];
  const other: GraphNode[] = [];
  for (const dependent of node.dependents) {
    const references = referencesTo(dependent, identity.uid);
    const elsewhere = identity.namespace !== "" && identity.namespace !== dependent.identity.namespace;
    if (!elsewhere && references.some((reference) => sameOwner(reference, identity))) matching.push(dependent);
    if (elsewhere || references.some((reference) => !sameOwner(reference, identity))) other.push(dependent);
  }
  return { matching, other };
}

/** The next owner to look for under a uid, in one order round and round, so that each gets its turn. */
function alternative(dependents: readonly GraphNode[], absent: Identity): Identity | undefined {
  const found = new Map<string, Identity>();
  for (const dependent of dependents) {
    const { namespace } = dependent.identity;
    for (const reference of referencesTo(dependent, absent.uid)) {
      if (sameOwner(reference, absent) && (absent.namespace === "" || absent.namespace === namespace)) continue;
      const scope = absent.namespace === "" && reference.apiVersion === absent.apiVersion && reference.kind === absent.kind ? "" : namespace;
      const identity = ownerIdentity(reference, scope);
      if (!sameIdentity(identity, absent)) found.set(orderOf(identity), identity);
    }
  }
  const keys = [...found.keys()].toSorted();
  const next = keys.find((key) => key > orderOf(absent)) ?? keys[0];
  return next === undefined ? undefined : found.get(next);
}

function orderOf({ kind, apiVersion, namespace, name, uid }: Identity): string { return [kind, apiVersion, namespace, name, uid].join("\n"); }

/** Those that keep an owner from going in the foreground. */
export function blockingDependents({ identity: { uid }, dependents }: GraphNode): GraphNode[] {
  return [...dependents].filter((dependent) => referencesTo(dependent, uid).some(({ blockOwnerDeletion }) => blockOwnerDeletion === true));
}
