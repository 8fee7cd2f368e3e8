/**
 * Texts that each pod may have of its own while all else is as in others: what its containers run, and the values of their variables. The API server looks into none of them: what it has
 * found out about a spec (its form, that nothing is wrong with it, which of its fields are whose) holds for those of other texts, too. So it is with the pods of pipelines and of workers.
 */
import type { Container, EnvVar, PodSpec } from "../../../api/gen/core.v1.ts";
import type { OwnText, OwnTexts } from "../../generic/resource.ts";

/** In the place of a text, and of a list of some. */
const MARK = "…", MARKS: readonly string[] = [MARK];

export const podTexts: OwnTexts = {
  apart(spec) {
    const texts: OwnText[] = [];
    const outline = replaced(spec as PodSpec, (text) => {
      texts.push(text);
      return typeof text === "string" ? MARK : MARKS;
    });
    return { outline, texts };
  },
  together(known, texts) {
    let next = 0;
    return replaced(known as PodSpec, () => texts[next++]!);
  },
};

type Replace = (text: OwnText) => OwnText;

/** With other texts, in the order in which they stand there. What has none, or the same, is the same. */
function replaced(spec: PodSpec, replace: Replace): PodSpec {
  let out = spec;
  for (const list of ["initContainers", "containers"] as const) {
    const before = spec[list]; // null is none, too
    const after = before && mapped(before, (container) => withTexts(container, replace));
    if (after !== before) out = { ...out, [list]: after };
  }
  return out;
}

function withTexts(container: Container, replace: Replace): Container {
  let out = container;
  for (const field of ["command", "args"] as const) {
    const before = container[field];
    if (before === undefined || before.length === 0) continue; // none at all is told apart
    const after = replace(before) as string[];
    if (!isSame(after, before)) out = { ...out, [field]: after };
  }
  const env = container.env && mapped(container.env, (variable) => withValue(variable, replace));
  return env === container.env ? out : { ...out, env };
}

/** A value that names another variable is looked into where the name is there twice: warnings.ts. */
function withValue(variable: EnvVar, replace: Replace): EnvVar {
  const { value, valueFrom } = variable;
  if (!value || valueFrom || value.includes("$(")) return variable;
  const after = replace(value) as string;
  return after === value ? variable : { ...variable, value: after };
}

function mapped<T>(list: T[], map: (item: T) => T): T[] {
  let out = list;
  for (let i = 0; i < list.length; i++) {
    const after = map(list[i]!);
    if (after === list[i]) continue;
    if (out === list) out = [...list];
    out[i] = after;
  }
  return out;
}

function isSame(a: readonly string[], b: readonly string[]): boolean { return a.length === b.length && a.every((text, i) => text === b[i]); }
