/**
 * Which volume there is would be a claim's on a node: the one that is meant for it, or the smallest that will do.
 * Whatever does not depend on the node is asked once for all of them; local volumes are found by the label of the node they are on, so that a node is not compared with every other node's.
 *
 * Source: kubernetes v1.36 component-helpers storage/volume FindMatchingVolume
 */
import type { Node, NodeSelectorTerm, PersistentVolume, PersistentVolumeClaim } from "../api/gen/core.v1.ts";
import { labelSelector } from "../api/meta/label-selector.ts";
import { labelsOf } from "../api/meta/object-meta.ts";
import { compareQuantities } from "../api/meta/quantity.ts";
import { matchesNodeSelector } from "./node-selector.ts";

type Volume = Readonly<PersistentVolume>;

/** For one claim: its volume on a node, if none of those `taken` by its pod's other claims may be it. */
export type VolumeChoice = (node: Readonly<Node>, taken: ReadonlySet<string>) => Volume | undefined;

interface Ranked { readonly volume: Volume; readonly rank: number } // the smallest first, of equal ones the first

export function volumeChoice(claim: Readonly<PersistentVolumeClaim>, volumes: readonly Volume[]): VolumeChoice {
  const able = volumes.filter((volume) => isAble(volume, claim));
  const meant = able.find((volume) => isMeantFor(volume, claim));
  if (meant) return (node, taken) => (!taken.has(meant.metadata.name) && reaches(meant, node) ? meant : undefined);
  const byPlace = new Map<string, Map<string, Ranked[]>>(); // label of nodes, its value
  const anywhere: Ranked[] = [];
  for (const [rank, volume] of able.filter((one) => isFree(one, claim)).toSorted((a, b) => compareQuantities(capacityOf(a), capacityOf(b))).entries()) {
    const places = placesOf(volume);
    if (!places) anywhere.push({ volume, rank });
    else for (const [label, value] of places) append(within(byPlace, label), value, { volume, rank });
  }
  return (node, taken) => {
    const labels = labelsOf(node);
    let best: Ranked | undefined;
    for (const ranked of [anywhere, ...[...byPlace].map(([label, byValue]) => byValue.get(labels[label] ?? "") ?? [])]) {
      const found = ranked.find(({ volume, rank }) => (best && rank > best.rank) || (!taken.has(volume.metadata.name) && reaches(volume, node)));
      if (found && (!best || found.rank < best.rank)) best = found;
    }
    return best?.volume;
  };
}

export function isMeantFor({ spec: { claimRef } }: Volume, { metadata }: Readonly<PersistentVolumeClaim>): boolean {
  return claimRef?.name === metadata.name && claimRef.namespace === metadata.namespace && (!claimRef.uid || claimRef.uid === metadata.uid);
}

export function reaches({ spec }: Volume, node: Readonly<Node>): boolean {
  return !spec.nodeAffinity?.required || matchesNodeSelector(spec.nodeAffinity.required, node);
}

export function sizeOf({ spec }: Readonly<PersistentVolumeClaim>): string {
  return spec.resources?.requests?.["storage"] ?? "0";
}

function capacityOf({ spec }: Volume): string { return spec.capacity?.["storage"] ?? "0"; }

/** It would do for the claim, were it free. */
function isAble(volume: Volume, claim: Readonly<PersistentVolumeClaim>): boolean {
  const { spec, metadata } = volume;
  return metadata.deletionTimestamp == null && (!spec.claimRef || isMeantFor(volume, claim)) && compareQuantities(capacityOf(volume), sizeOf(claim)) >= 0
    && (spec.volumeMode ?? "Filesystem") === (claim.spec.volumeMode ?? "Filesystem") && (spec.volumeAttributesClassName ?? "") === (claim.spec.volumeAttributesClassName ?? "");
}

/** It may be anybody's who asks for what it is. */
function isFree({ spec, metadata, status }: Volume, claim: Readonly<PersistentVolumeClaim>): boolean {
  return status?.phase === "Available" && (!claim.spec.selector || labelSelector(claim.spec.selector).matches(metadata.labels ?? {}))
    && (claim.spec.accessModes ?? []).every((mode) => (spec.accessModes ?? []).includes(mode));
}

/** Labels one of which a node has that it reaches; undefined: nodes without any may be reached, too. */
function placesOf({ spec }: Volume): [label: string, value: string][] | undefined {
  const terms = spec.nodeAffinity?.required?.nodeSelectorTerms ?? [];
  const places = terms.map(placesOfTerm);
  return terms.length === 0 || places.includes(undefined) ? undefined : places.flatMap((those) => those ?? []);
}

function placesOfTerm({ matchExpressions = [] }: NodeSelectorTerm): [string, string][] | undefined {
  const listed = matchExpressions.find(({ operator }) => operator === "In");
  return listed && [...new Set(listed.values)].map((value) => [listed.key, value]);
}

function within(byPlace: Map<string, Map<string, Ranked[]>>, label: string): Map<string, Ranked[]> {
  const known = byPlace.get(label) ?? new Map<string, Ranked[]>();
  byPlace.set(label, known);
  return known;
}

function append(byValue: Map<string, Ranked[]>, value: string, ranked: Ranked): void {
  const known = byValue.get(value);
  if (known) known.push(ranked);
  else byValue.set(value, [ranked]);
}
