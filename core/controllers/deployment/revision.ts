/**
 * The annotations by which a Deployment numbers its ReplicaSets, remembers what it scaled them for, and hands down its own annotations.
 *
 * Source: kubernetes v1.36 pkg/controller/deployment/util/deployment_util.go
 */
import type { Deployment, ReplicaSet } from "../../api/gen/apps.v1.ts";
import { annotationsOf } from "../../api/meta/object-meta.ts";

export const REVISION = "deployment.kubernetes.io/revision";
export const REVISION_HISTORY = "deployment.kubernetes.io/revision-history";
export const DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas";
export const MAX_REPLICAS = "deployment.kubernetes.io/max-replicas";
export const ROLLBACK_TO = "deprecated.deployment.rollback.to";

/** Not handed down to ReplicaSets. */
const OWN = new Set(["kubectl.kubernetes.io/last-applied-configuration", REVISION, REVISION_HISTORY, DESIRED_REPLICAS, MAX_REPLICAS, ROLLBACK_TO]);

/** The revisions a set has had are kept, up to this many characters. */
const HISTORY_LENGTH_MAX = 2000;

type Annotations = Record<string, string>;

/** The largest number that is one: Go's int64. */
const REVISION_MAX = 2n ** 63n - 1n;

/** 0 if it has none, or none that is a number. */
export function revisionOfSet(set: Readonly<ReplicaSet>): bigint { return parseRevision(annotationsOf(set)[REVISION]) ?? 0n; }

function parseRevision(text: string | undefined): bigint | undefined {
  const revision = text !== undefined && /^\d{1,19}$/.test(text) ? BigInt(text) : undefined;
  return revision !== undefined && revision <= REVISION_MAX ? revision : undefined;
}

export function maxRevision(sets: readonly Readonly<ReplicaSet>[]): bigint { return sets.map(revisionOfSet).reduce((max, revision) => (revision > max ? revision : max), 0n); }

/** The second largest revision: what an unnamed rollback goes back to. */
export function lastRevision(sets: readonly Readonly<ReplicaSet>[]): bigint { return sets.map(revisionOfSet).toSorted((a, b) => (a < b ? 1 : a > b ? -1 : 0))[1] ?? 0n; }

/** Annotations for the set with the Deployment's template, which becomes revision `revision`: a set that had an older number keeps that in its history. */
export function currentAnnotations(deployment: Readonly<Deployment>, before: Readonly<Annotations>, revision: bigint): Annotations {
  const after: Annotations = { ...before, ...inherited(annotationsOf(deployment)) };
  const text = before[REVISION];
  const old = parseRevision(text);
  if (text !== undefined && text !== "" && old === undefined) return after; // someone else's numbering: leave it
  if ((old ?? 0n) >= revision) return after;
  after[REVISION] = String(revision);
  if (text === undefined) return after;
  const history = (before[REVISION_HISTORY] ?? "").split(",").filter((one) => one !== "");
  history.push(text);
  let length = history.join(",").length, first = 0;
  while (length > HISTORY_LENGTH_MAX) length -= history[first++]!.length + 1;
  after[REVISION_HISTORY] = history.slice(first).join(",");
  return after;
}

export function scaleAnnotations(desired: number, max: number): Annotations { return { [DESIRED_REPLICAS]: String(desired), [MAX_REPLICAS]: String(max) }; }

function inherited(annotations: Readonly<Annotations>): Annotations {
  return Object.fromEntries(Object.entries(annotations).filter(([name]) => !OWN.has(name)));
}

/** What a Deployment's annotations become when it goes back to the template of `set`. */
export function rollbackAnnotations(deployment: Readonly<Deployment>, set: Readonly<ReplicaSet>): Annotations {
  const own = Object.entries(annotationsOf(deployment)).filter(([name]) => OWN.has(name) && name !== ROLLBACK_TO);
  return { ...Object.fromEntries(own), ...inherited(annotationsOf(set)) };
}
