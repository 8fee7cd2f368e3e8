/**
 * Which level and version of the Pod Security Standards a namespace asks for, in each of the three modes, by its labels:
 *
 *   pod-security.kubernetes.io/enforce: restricted          pods that violate it are refused
 *   pod-security.kubernetes.io/enforce-version: v1.30       as the standards were then; default: latest
 *   …/audit, …/audit-version, …/warn, …/warn-version        they are noted, or the client is told
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/pod-security-admission/api/{helpers,constants}.go
 */
import { type FieldError, invalid } from "../../api/meta/field-error.ts";

const LEVELS = ["privileged", "baseline", "restricted"] as const;
export type Level = (typeof LEVELS)[number];
/** The minor version, of major version 1. */
export type Version = number | "latest";
export interface LevelVersion { readonly level: Level; readonly version: Version }

export const MODES = ["enforce", "audit", "warn"] as const;
export type Mode = (typeof MODES)[number];
export type Policy = Readonly<Record<Mode, LevelVersion>>;

export const LABEL_PREFIX = "pod-security.kubernetes.io/";

/** Undefined: no level. */
export function parseLevel(text: string): Level | undefined { return LEVELS.find((level) => level === text); }

export const LEVEL_PROBLEM = `must be one of ${LEVELS.join(", ")}`;
export const VERSION_PROBLEM = 'must be "latest" or "v1.x"';

/** Undefined: no version. */
export function parseVersion(text: string): Version | undefined {
  if (text === "latest") return "latest";
  const minor = /^v1\.([0-9]|[1-9][0-9]*)$/.exec(text)?.[1];
  return minor === undefined || !Number.isSafeInteger(Number(minor)) ? undefined : Number(minor);
}

/** "restricted:latest", "baseline:v1.30" */
export function formatLevelVersion({ level, version }: LevelVersion): string { return `${level}:${version === "latest" ? version : `v1.${version}`}`; }

export function sameLevelVersion(a: LevelVersion, b: LevelVersion): boolean { return a.level === b.level && a.version === b.version; }

/** Less than 0: `a` asks for less than `b`. */
export function compareLevels(a: Level, b: Level): number { return LEVELS.indexOf(a) - LEVELS.indexOf(b); }

export function isFullyPrivileged(policy: Policy): boolean { return MODES.every((mode) => policy[mode].level === "privileged"); }

/** Whether both demand the same of a pod: privileged demands nothing, whatever its version. */
export function isEquivalent(a: Policy, b: Policy): boolean {
  return MODES.every((mode) => (a[mode].level === "privileged" && b[mode].level === "privileged") || sameLevelVersion(a[mode], b[mode]));
}

/** Always a policy, also with problems: a label that cannot be read enforces the strictest, and warns of nothing. */
export function policyOf(labels: Readonly<Record<string, string>> | undefined, defaults: Policy): { readonly policy: Policy; readonly problems: readonly FieldError[] } {
  const problems: FieldError[] = [];
  const read = <T>(name: string, parse: (text: string) => T | undefined, problem: string): { readonly given: boolean; readonly value: T | undefined } => {
    const label = `${LABEL_PREFIX}${name}`;
    const text = labels?.[label];
    if (text === undefined) return { given: false, value: undefined };
    const value = parse(text);
    if (value === undefined) problems.push(invalid(`metadata.labels[${label}]`, text, problem));
    return { given: true, value };
  };
  const readMode = (mode: Mode) => {
    const level = read(mode, parseLevel, LEVEL_PROBLEM);
    const version = read(`${mode}-version`, parseVersion, VERSION_PROBLEM);
    const unreadable: Level = mode === "enforce" ? "restricted" : "privileged";
    const result: LevelVersion = {
      level: level.given ? level.value ?? unreadable : defaults[mode].level,
      version: version.given ? version.value ?? "latest" : defaults[mode].version,
    };
    return { level, version, result };
  };
  const enforce = readMode("enforce");
  const audit = readMode("audit");
  const warn = readMode("warn");
  let warned = warn.result;
  if (!warn.level.given && enforce.level.value !== undefined && compareLevels(enforce.result.level, warned.level) > 0) // who enforces also wants to be warned of templates
    warned = { level: enforce.result.level, version: warn.version.given ? warned.version : enforce.result.version };
  return { policy: { enforce: enforce.result, audit: audit.result, warn: warned }, problems };
}
