/**
 * What an election is about to do: whether one is needed, who is asked whether it is there, who of those that are is to lead, and what is to stand in the Lease then.
 *
 * Nothing of an election is kept: it is all in the Lease and in its candidates.
 *
 * Source: kubernetes v1.36 pkg/controlplane/controller/leaderelection/{leaderelection_controller,election}.go
 */
import type { Lease, LeaseSpec } from "../../api/gen/coordination.v1.ts";
import type { LeaseCandidate } from "../../api/gen/coordination.v1beta1.ts";
import { compareVersions, versionOf } from "../../cel/library/semver.ts";
import { microTimestamp } from "../../lifecycle/clock.ts";

export type Candidate = Readonly<LeaseCandidate>;

/** How long a candidate has to answer, and for how long it counts that it has. */
const ELECTION_MS = 5_000;
/** A candidate that has not told of itself for so long is none. */
export const CANDIDATE_VALID_MS = 30 * 60_000;
const LEASE_SECONDS = 5;

export interface Voter {
  readonly candidate: Candidate;
  /** How long ago it was asked whether it is there. Infinity: never. */
  readonly pingedMs: number;
  /** How long ago it said that it is. */
  readonly renewedMs: number;
}

export interface Election { readonly strategy: string; /** Absent: by a strategy of somebody else's, who names the holder. */ readonly holder?: string | undefined }

export type Step =
  | { readonly does: "nothing" }
  /** The time of something will be over then. */
  | { readonly does: "wait" }
  | { readonly does: "ping"; readonly whom: readonly Candidate[] }
  /** Their clocks are behind: by what they have answered they would have to answer still, again and again. */
  | { readonly does: "excuse"; readonly whom: readonly Candidate[] }
  | { readonly does: "elect"; readonly election: Election }
  | { readonly does: "fail"; readonly why: string; /** Time may mend it; else only a change does. */ readonly again: boolean };

const WAIT: Step = { does: "wait" };

/** `voters`: all candidates for the Lease. `renewedMs`: how long ago its holder renewed it. */
export function nextStep(voters: readonly Voter[], { lease, renewedMs }: { readonly lease: Readonly<Lease> | undefined; readonly renewedMs: number }): Step {
  const admitted = voters.filter((one) => one.renewedMs <= CANDIDATE_VALID_MS);
  if (admitted.length === 0) return { does: "nothing" };
  const late = admitted.filter((one) => !isAsked(one) && owesAnswer(one.candidate)).map(({ candidate }) => candidate);
  if (late.length > 0) return { does: "excuse", whom: late };
  const settled = lease && !isExpired(lease, renewedMs) && holderOf(lease) !== "" && admitted.every((one) => one.renewedMs <= CANDIDATE_VALID_MS / 2) ? whoIsBest(admitted.map(({ candidate }) => candidate)) : undefined;
  if (typeof settled === "string") return { does: "fail", why: settled, again: true };
  if (settled && (settled.holder === undefined || settled.holder === holderOf(lease!))) return WAIT;
  const whom = admitted.filter((one) => !isThere(one) && !isAsked(one)).map(({ candidate }) => candidate);
  if (whom.length > 0) return { does: "ping", whom };
  if (admitted.some((one) => isAsked(one) && one.pingedMs < ELECTION_MS)) return WAIT;
  const there = admitted.filter(isThere);
  if (there.length === 0) return { does: "fail", why: "no available candidates", again: false };
  const election = whoIsBest(there.map(({ candidate }) => candidate));
  return typeof election === "string" ? { does: "fail", why: election, again: false } : { does: "elect", election };
}

function isThere({ renewedMs }: Voter): boolean { return renewedMs < ELECTION_MS; }

/** It owes an answer. Who has not answered in time is not asked again before it has told of itself. */
function isAsked({ pingedMs, renewedMs }: Voter): boolean { return renewedMs > pingedMs; }

/** By what is written, which is all that it knows itself. */
function owesAnswer({ spec: { pingTime, renewTime } }: Candidate): boolean { return pingTime !== undefined && renewTime !== undefined && pingTime > renewTime; }

/** Of some candidates; or why it cannot be told. */
function whoIsBest(candidates: readonly Candidate[]): Election | string {
  const [newest, ...others] = candidates.toSorted((a, b) => compare(b.spec.binaryVersion, a.spec.binaryVersion));
  const { strategy = "" } = newest!.spec;
  const other = others.find(({ spec }) => compare(spec.binaryVersion, newest!.spec.binaryVersion) === 0 && (spec.strategy ?? "") !== strategy);
  if (other) return `candidates ${JSON.stringify(newest!.metadata.name)}, ${JSON.stringify(other.metadata.name)} at same binary version but received differing strategies ${strategy}, ${other.spec.strategy ?? ""}`;
  if (strategy !== "OldestEmulationVersion") return { strategy };
  return { strategy, holder: candidates.filter(hasVersions).toSorted(byEmulation)[0]?.metadata.name };
}

function hasVersions({ spec }: Candidate): boolean { return [spec.emulationVersion ?? "", spec.binaryVersion].every((text) => versionOf(text) !== undefined); }

/** The oldest first, so that no older one is led by what it does not know. */
function byEmulation(a: Candidate, b: Candidate): number {
  return compare(a.spec.emulationVersion, b.spec.emulationVersion) || compare(a.spec.binaryVersion, b.spec.binaryVersion)
    || a.metadata.creationTimestamp.localeCompare(b.metadata.creationTimestamp) || (a.metadata.name < b.metadata.name ? -1 : 1);
}

const NO_VERSION = versionOf("0.0.0")!;

function compare(a = "", b = ""): number { return compareVersions(versionOf(a) ?? NO_VERSION, versionOf(b) ?? NO_VERSION); }

export function isExpired({ spec }: Readonly<Lease>, renewedMs: number): boolean {
  return spec?.leaseDurationSeconds === undefined || renewedMs > spec.leaseDurationSeconds * 1000;
}

function holderOf({ spec }: Readonly<Lease>): string { return spec?.holderIdentity ?? ""; }

/** What asks a candidate. It answers a time after its own last one: a clock that is behind its own asks for the moment after that. */
export function pinged(candidate: Candidate, nowMs: number): LeaseCandidate {
  const { renewTime } = candidate.spec;
  return { ...candidate, spec: { ...candidate.spec, pingTime: microTimestamp(Math.max(nowMs, renewTime === undefined ? 0 : Date.parse(renewTime) + 1)) } };
}

/** Of a Lease that is to be made. */
export function firstSpec({ strategy, holder }: Election, nowMs: number): LeaseSpec {
  return { strategy, leaseDurationSeconds: LEASE_SECONDS, renewTime: microTimestamp(nowMs), ...(holder === undefined ? {} : { holderIdentity: holder }) };
}

/** What the Lease becomes; undefined: it is as it should be. A holder who is there is told whom to leave it to; one who is not has lost it. */
export function elected(lease: Readonly<Lease>, { strategy, holder }: Election, { renewedMs, nowMs }: { readonly renewedMs: number; readonly nowMs: number }): Lease | undefined {
  const { acquireTime, preferredHolder, ...rest } = lease.spec ?? {};
  const holds = holderOf(lease), differs = holder !== undefined && holder !== holds;
  if (differs && (holds === "" || isExpired(lease, renewedMs))) return { ...lease, spec: { ...rest, ...firstSpec({ strategy, holder }, nowMs) } };
  if (lease.spec?.strategy === strategy && (!differs || preferredHolder === holder)) return undefined;
  return { ...lease, spec: { ...lease.spec, strategy, ...(differs ? { preferredHolder: holder } : {}) } };
}
