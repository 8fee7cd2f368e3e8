/**
 * What the aliases of a document stand for, found in one walk: the parser itself walks through all of a document again for one alias after the other, with a list of all that is above each
 * node, which a text of a few kilobytes makes minutes of.
 */
import { Alias, type Document, isAlias, isCollection, isPair, isScalar, type Node } from "yaml";
import { DEPTH_MAX } from "./json-document.ts";

type Target = ReturnType<Alias["resolve"]>;

/** From here on each knows what it stands for. Returns the name of an anchor whose value has an alias of it somewhere within, if there is one. Throws RangeError for what nests too deep. */
export function settleAliases(document: Document.Parsed): string | undefined {
  const anchored = new Map<string, Target>(), open = new Set<Target>();
  let endless: string | undefined;

  function walk(node: unknown, depth: number): void {
    if (depth > DEPTH_MAX) throw new RangeError("a document that nests too deep");
    if (isPair(node)) {
      walk(node.key, depth);
      walk(node.value, depth);
    } else if (isAlias(node)) {
      const target = anchored.get(node.source);
      if (target && open.has(target)) endless ??= node.source;
      settle(node, target);
    } else if (isScalar(node) || isCollection(node)) {
      const target = node as Target & Node;
      if (target.anchor !== undefined) anchored.set(target.anchor, target);
      if (!isCollection(node)) return;
      open.add(target);
      for (const item of node.items) walk(item, depth + 1);
      open.delete(target);
    }
  }

  walk(document.contents, 0);
  return endless;
}

/** With a context there is more to do than to tell, and the walk through all is made but once. */
function settle(alias: Alias, target: Target): void {
  alias.resolve = (document, context) => (context ? Alias.prototype.resolve.call(alias, document, context) : target);
}
