/**
 * Regular expressions as Kubernetes reads them: RE2. Matching takes time in the length of the text, whatever the pattern; there are no back-references
 * and no look-around, and what is wrong with a pattern is said in Go's words.
 */
import { errorText } from "../api/meta/error-text.ts";
import { RE2JS } from "re2js";

export interface Regex {
  readonly source: string;
  /** Whether it matches anywhere in `text`. */
  test(text: string): boolean;
  /** The first match and its groups; undefined for a group that took no part. */
  exec(text: string): RegexMatch | undefined;
  /** All matches that do not overlap, at most `limit` of them if that is not negative. */
  all(text: string, limit?: number): RegexMatch[];
  readonly groupCount: number;
}

export interface RegexMatch {
  readonly start: number;
  readonly end: number;
  /** The whole match first. */
  readonly groups: readonly (string | undefined)[];
}

/** The message is what Go's regexp.Compile says: "error parsing regexp: missing closing ]: `[a`". */
export class RegexError extends Error { override readonly name = "RegexError"; }

/** Throws RegexError. */
export function compileRegex(source: string): Regex {
  const compiled = compile(source);
  const groupCount = compiled.groupCount();
  function* matches(text: string): Iterable<RegexMatch> {
    const matcher = compiled.matcher(text);
    while (matcher.find()) {
      const groups = Array.from({ length: groupCount + 1 }, (_, i) => matcher.group(i) ?? undefined);
      yield { start: matcher.start(), end: matcher.end(), groups };
    }
  }
  return {
    source, groupCount,
    test: (text) => compiled.test(text),
    exec(text) {
      for (const match of matches(text)) return match;
      return undefined;
    },
    all(text, limit = -1) {
      const found: RegexMatch[] = [];
      let end = -1;
      for (const match of matches(text)) {
        if (limit >= 0 && found.length >= limit) break;
        if (match.start !== match.end || match.start !== end) found.push(match); // nothing is found where another match ends
        end = match.end;
      }
      return found;
    },
  };
}

function compile(source: string): RE2JS {
  try {
    return RE2JS.compile(source);
  } catch (error) {
    const message = errorText(error), nameless = message.startsWith(DUPLICATE) ? withoutNames(source) : source;
    if (nameless !== source) return compile(nameless);
    throw new RegexError(message.endsWith("trailing backslash at end of expression") ? `${message}: \`\`` : message, { cause: error });
  }
}

/** What is wrong only here: behind it, as behind anything that is wrong, stands a piece of the pattern. */
const DUPLICATE = "error parsing regexp: duplicate capture group name";

/** What stands for itself, to the end where it has none, then the name of a group. */
const NAMES = /(\\Q[\s\S]*?(?:\\E|$)|\\[\s\S]|\[\^?\]?(?:\\[\s\S]?|\[:\^?\w+:\]|[^\]\\])*(?:\]|$))|\(\?P?<\w+>/g;

/** Go lets two groups have one name; nobody here asks for groups by name. */
function withoutNames(source: string): string { return source.replace(NAMES, (_, literal: string | undefined) => literal ?? "("); }
