/**
 * Patterns for a part of a host's name, as Go's path.Match has them: `*`, `?`, `[a-z]`, `[^a]`, `\x`. They stand in Secrets, so that whoever may make a pod
 * writes them: matching takes no more steps than pattern and text are long together, multiplied.
 *
 * Source: Go's path/filepath, match.go
 */
type Token = "any" | ((character: string) => boolean);

/** False for a pattern that is none. */
export function globMatches(glob: string, text: string): boolean {
  const tokens = tokensOf(glob);
  if (!tokens) return false;
  const characters = [...text];
  let [at, next] = [0, 0];
  let retry: { readonly next: number; at: number } | undefined; // the last star, and what it has not taken: earlier ones need not be tried again
  while (at < characters.length) {
    const token = tokens[next];
    if (token === "any") retry = { next: ++next, at };
    else if (token?.(characters[at]!)) [at, next] = [at + 1, next + 1];
    else if (retry) [at, next] = [++retry.at, retry.next];
    else return false;
  }
  return tokens.slice(next).every((token) => token === "any");
}

function tokensOf(glob: string): Token[] | undefined {
  const tokens: Token[] = [];
  const rest = [...glob];
  for (let character = rest.shift(); character !== undefined; character = rest.shift()) {
    const token = character === "*" ? "any" : character === "?" ? () => true : character === "[" ? classOf(rest) : literalOf(character, rest);
    if (!token) return undefined;
    tokens.push(token);
  }
  return tokens;
}

function literalOf(character: string, rest: string[]): Token | undefined {
  const literal = character === "\\" ? rest.shift() : character;
  return literal === undefined ? undefined : (other) => other === literal;
}

/** Takes what belongs to it from `rest`, which begins after the bracket. */
function classOf(rest: string[]): Token | undefined {
  const isNegated = rest[0] === "^";
  if (isNegated) rest.shift();
  const ranges: (readonly [from: string, to: string])[] = [];
  while (rest[0] !== "]" || ranges.length === 0) {
    const from = memberOf(rest);
    const to = rest[0] === "-" ? (rest.shift(), memberOf(rest)) : from;
    if (from === undefined || to === undefined) return undefined;
    ranges.push([from, to]);
  }
  rest.shift();
  return (character) => ranges.some(([from, to]) => from <= character && character <= to) !== isNegated;
}

function memberOf(rest: string[]): string | undefined {
  const character = rest.shift();
  return character === "-" || character === "]" ? undefined : character === "\\" ? rest.shift() : character;
}
