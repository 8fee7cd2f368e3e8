/** What the checks have in common: a pod's containers of all kinds, and lists as upstream words them. */
import type { Container, EphemeralContainer, PodSpec, SecurityContext } from "../../api/gen/core.v1.ts";
import { compareText } from "../../api/meta/compare-text.ts";

export type AnyContainer = Readonly<Container | EphemeralContainer>;

/** What a check looks at. */
export interface Checked {
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: Readonly<PodSpec>;
  /** Init containers, containers and ephemeral containers. */
  readonly containers: readonly AnyContainer[];
}

/** What is wrong; undefined: nothing. */
export interface Violation { readonly reason: string; readonly detail: string }
export type Check = (checked: Checked) => Violation | undefined;

export function checkedOf(annotations: Readonly<Record<string, string>> | undefined, spec: Readonly<PodSpec>): Checked {
  return { annotations: annotations ?? {}, spec, containers: [...(spec.initContainers ?? []), ...(spec.containers ?? []), ...(spec.ephemeralContainers ?? [])] };
}

/** "a", "b" */
export function joinQuoted(items: Iterable<string>): string { return [...items].map((item) => `"${item}"`).join(", "); }

/** Each once, in the order of their bytes. */
export function sorted(items: Iterable<string>): string[] { return [...new Set(items)].sort(compareText); }

export function plural(singular: string, several: string, count: number): string { return count === 1 ? singular : several; }

/** container "a", containers "a", "b" */
export function containersNamed(names: readonly string[]): string { return `${plural("container", "containers", names.length)} ${joinQuoted(names)}`; }

export function namesOf(containers: readonly AnyContainer[], isBad: (container: AnyContainer) => boolean): string[] { return containers.filter(isBad).map(({ name }) => name); }

/** "pod and container "a"", for what can be set for the pod and for a container. */
function settersOf(podIsBad: boolean, containers: readonly string[]): string[] {
  return [...(podIsBad ? ["pod"] : []), ...(containers.length > 0 ? [containersNamed(containers)] : [])];
}

/**
 * For a member of the security contexts of the pod and of its containers, where some values are bad: who sets one, and which.
 */
export function badValues<T>({ spec, containers }: Checked, valueOf: (context: Readonly<SecurityContext>) => T | undefined, isBad: (value: T) => boolean): { readonly setters: string[]; readonly values: T[] } {
  const values: T[] = [];
  const bad = (context: object | undefined): boolean => {
    const value = context && valueOf(context as SecurityContext); // the pod has some of the same members
    if (value === undefined || value === null || !isBad(value)) return false;
    values.push(value);
    return true;
  };
  const pod = bad(spec.securityContext);
  return { setters: settersOf(pod, namesOf(containers, ({ securityContext }) => bad(securityContext))), values };
}

/** Its fields for Linux need not be set: validation has refused them for Windows. */
export function isWindows({ spec }: Checked): boolean { return spec.os?.name === "windows"; }

/** Root in a user namespace is nobody outside it. */
export function hasUserNamespace({ spec }: Checked): boolean { return spec.hostUsers === false; }
