/** One kind as a row of cells, and the small formats many of them share. */
import type { PodTemplateSpec } from "../../gen/core.v1.ts";
import type { LabelSelector } from "../../gen/meta.v1.ts";
import { formatLabelSelector, labelSelector } from "../../meta/label-selector.ts";
import type { Column } from "./columns.ts";

export type Cell = string | number | bigint | boolean | null;

export interface RowCondition { readonly type: "Completed"; readonly status: "True"; readonly reason: string; readonly message: string }

// biome-ignore lint/suspicious/noExplicitAny: each printer states the kind it prints; the table of all printers cannot
export interface Printer<T = any> {
  readonly columns: readonly Column[];
  /** As many cells as there are columns. */
  cells(object: Readonly<T>, nowMs: number): Cell[];
  /** Whether all cells but AGE say the same of an object whatever the time. Absent: they may not. */
  agesOnly?(object: Readonly<T>): boolean;
  conditions?(object: Readonly<T>): RowCondition[];
  /** The order of rows, where it is not the list's. */
  compare?(a: Readonly<T>, b: Readonly<T>): number;
  /** Of no objects there are no rows, not even an empty list of them. */
  readonly nullRows?: true;
}

/** For `agesOnly` of kinds whose cells take work, and of which there are many. */
export function always(): boolean { return true; }

export function printer<T>(of: Printer<T>): Printer<T> { return Object.freeze(of); }

/** `a=1,b=2`, sorted; `<none>` for none. */
export function formatLabels(labels: Readonly<Record<string, string>> | undefined): string {
  const pairs = Object.entries(labels ?? {}).map(([key, value]) => `${key}=${value}`).sort();
  return pairs.length === 0 ? "<none>" : pairs.join(",");
}

export function formatSelector(selector: Readonly<LabelSelector> | undefined): string {
  try { return formatLabelSelector(selector); } catch { return "<error>"; /* a selector from before it was validated */ }
}

/** As Deployments print theirs: nothing for a selector that is empty. */
export function formatSelectorPlain(selector: Readonly<LabelSelector> | undefined): string {
  try { return labelSelector(selector).toString(); } catch { return "<invalid>"; /* a selector from before it was validated */ }
}

/** Names and images of a template's containers, each joined by commas. */
export function containerCells(template: Readonly<PodTemplateSpec> | undefined): [names: string, images: string] {
  const containers = template?.spec?.containers ?? [];
  return [containers.map(({ name }) => name ?? "").join(","), containers.map(({ image }) => image ?? "").join(",")];
}

/** Goes on after `max` items with how many there are more; `<unset>` for none. */
export function listWithMore(items: readonly string[], max: number): string {
  const shown = items.slice(0, max).join(",");
  if (items.length > max) return `${shown} + ${items.length - max} more...`;
  return shown === "" ? "<unset>" : shown;
}
