/**
 * $(NAME) in environment values, commands and arguments. $$ is a dollar; a name nobody knows stays as it is written.
 *
 * Whoever may make a pod writes these: a text of texts of texts doubles with each, and would take all memory of the node. What the kernel would not start a
 * program with is not made.
 *
 * Source: kubernetes v1.36 third_party/forked/golang/expansion/expand.go, pkg/kubelet/container/helpers.go
 */
type Lookup = (name: string) => string | undefined;

/** Of one argument or variable. Source: linux include/uapi/linux/binfmts.h MAX_ARG_STRLEN */
const LENGTH_MAX = 128 * 1024;
/** Of all of them together: three quarters of what a stack may be. Source: linux fs/exec.c bprm_stack_limits */
const TOGETHER_LENGTH_MAX = 6 * 1024 * 1024;

const SHOWN_LENGTH_MAX = 100;

/** Counts what is given to a program, in characters; throws an Error for the user when it is too much. */
export function lengthBudget(what: string): (text: string) => void {
  let length = 0;
  return (text) => {
    length += text.length;
    if (length > TOGETHER_LENGTH_MAX) throw new Error(`${what} are longer than ${TOGETHER_LENGTH_MAX} characters together, which no program can be started with`);
  };
}

/** Throws an Error for the user. */
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
      if (result.length > LENGTH_MAX) throw new Error(`${JSON.stringify(text.slice(0, SHOWN_LENGTH_MAX))} becomes longer than ${LENGTH_MAX} characters, which no program can be started with`);
    } else end = at + 1;
  }
  return result + text.slice(done);
}

export function expandAll(texts: readonly string[] | undefined, lookup: Lookup): string[] {
  const count = lengthBudget("arguments");
  return (texts ?? []).map((text) => {
    const expanded = expand(text, lookup);
    count(expanded);
    return expanded;
  });
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
