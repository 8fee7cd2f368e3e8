/**
 * A selector and a template of the pods it selects: what Deployments, ReplicaSets, StatefulSets and DaemonSets have in common.
 *
 * Source: kubernetes v1.36 pkg/apis/apps/validation/validation.go
 */
import { child, type FieldError, forbidden, invalid, notSupported, required } from "../../api/meta/field-error.ts";
import type { PodTemplateSpec } from "../../api/gen/core.v1.ts";
import type { LabelSelector } from "../../api/gen/meta.v1.ts";
import { type LabelSelector as Matcher, labelSelector, validateLabelSelector } from "../../api/meta/label-selector.ts";
import { dns1123Label } from "../../api/meta/names.ts";
import { validatePodTemplate } from "../core/pod/template.ts";

type Selector = Readonly<LabelSelector> | null | undefined;

/** `what`: as the message about an empty selector names it. */
export function* requiredSelector(path: string, selector: Selector, what: string): Iterable<FieldError> {
  if (!selector) { yield required(path); return; }
  yield* validateLabelSelector(selector, path);
  if (isEmptySelector(selector)) yield invalid(path, selector, `empty selector is invalid for ${what}`);
}

export function isEmptySelector(selector: Readonly<LabelSelector>): boolean {
  return Object.keys(selector.matchLabels ?? {}).length + (selector.matchExpressions ?? []).length === 0;
}

/** Undefined for a selector that cannot be read. */
export function matcherOf(selector: Selector): Matcher | undefined {
  try {
    return labelSelector(selector ?? undefined);
  } catch {
    return undefined; // the caller says what is wrong with it
  }
}

/** As a query writes it; "" for one that selects nothing or cannot be read. */
export function selectorQuery(selector: Selector): string { return matcherOf(selector)?.toString() ?? ""; }

export function* matchesTemplate(path: string, matcher: Matcher, template: Readonly<PodTemplateSpec>): Iterable<FieldError> {
  const labels = template.metadata?.labels;
  if (!matcher.empty && !matcher.matches(labels)) yield invalid(child(path, "metadata", "labels"), labels ?? null, "`selector` does not match template `labels`");
}

/** The template of Deployments and ReplicaSets. */
export function* replicatedTemplate(path: string, selectorPath: string, { selector, template, old }: {
  readonly selector: Selector; readonly template: Readonly<PodTemplateSpec> | undefined; readonly old?: Readonly<PodTemplateSpec> | undefined;
}): Iterable<FieldError> {
  const matcher = matcherOf(selector);
  if (!matcher) { yield invalid(selectorPath, selector, "invalid label selector"); return; }
  const given = template ?? ({ metadata: {}, spec: { containers: [] } } as PodTemplateSpec);
  yield* matchesTemplate(path, matcher, given);
  yield* validatePodTemplate(path, given, old);
  yield* runsForEver(path, given, "ReplicaSet");
}

/** Pods that are replaced when they end restart always, and have no deadline. */
export function* runsForEver(path: string, { spec }: Readonly<PodTemplateSpec>, kind: string): Iterable<FieldError> {
  const policy = spec?.restartPolicy ?? "";
  if (policy !== "Always") yield notSupported(child(path, "spec", "restartPolicy"), policy, ["Always"]);
  if (spec?.activeDeadlineSeconds !== undefined) yield forbidden(child(path, "spec", "activeDeadlineSeconds"), `activeDeadlineSeconds in ${kind} is not Supported`);
}

/** Of a name that becomes part of host names. */
export function* podNameWarnings(name: string): Iterable<string> {
  const texts = dns1123Label(name);
  if (texts.length > 0)
    yield `metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended: [${texts.join(" ")}]`;
}
