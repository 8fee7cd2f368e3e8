/**
 * $(NAME) in environment values, commands and arguments. $$ is a dollar; a name nobody knows stays as it is written.
 *
 * Source: kubernetes v1.36 third_party/forked/golang/expansion/expand.go, pkg/kubelet/container/helpers.go
 */
type Lookup = (name: string) => string | undefined;

export function expand(text: string, lookup: Lookup): string {
  const closedUntil = text.lastIndexOf(")");
  let result = "", done = 0;
  for (let at = text.indexOf("$"), end: number; at >= 0; at = text.indexOf("$", end)) {
    const next = text[at + 1];
    if (next === "$") {
      result += text.slice(done, at) + "$";
      done = end = at + 2;
    } else if (next === "(" && at < closedUntil) {
      end = text.indexOf(")", at) + 1;
      result += text.slice(done, at) + (lookup(text.slice(at + 2, end - 1)) ?? text.slice(at, end));
      done = end;
    } else end = at + 1;
  }
  return result + text.slice(done);
}

export function expandAll(texts: readonly string[] | undefined, lookup: Lookup): string[] {
  return (texts ?? []).map((text) => expand(text, lookup));
}

/** For paths, where a name nobody knows is an error, and so is one without a value. */
export function expandStrictly(text: string, lookup: Lookup): string {
  const missing = new Set<string>();
  const result = expand(text, (name) => {
    const value = lookup(name);
    if (!value) missing.add(name);
    return value;
  });
  if (missing.size > 0) throw new Error(`missing value for ${[...missing].toSorted().join(", ")}`);
  return result;
}
