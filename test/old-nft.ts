/**
 * What of an nft script the nft of Debian 12 (1.0.6) dies of once a newer one has loaded it: an administrator's `nft list ruleset` or `nft add rule`, in whatever
 * table, ends in a segmentation fault. The newer one writes down beside a set what its keys are made of, and the older one does not know all of that.
 *
 *   sets and maps declared with `type`
 *   anonymous sets and maps of anything but header fields and addresses' types, such as `numgen … map { … }`
 *
 * test/cluster/traffic.test.ts asks the real one, where it is the machine's.
 */
const LOOKED_UP = /(?:saddr|daddr|dport|sport|l4proto|icmpv6 type|addr type)(?: !=)? \{/;

export function oldNftDiesOf(script: string): string[] {
  return script.split("\n").filter((line) => {
    if (/^add (set|map) /.test(line)) return /\{ type /.test(line);
    if (!line.startsWith("add rule") && !line.startsWith("insert rule")) return false;
    return line.split(/(?<=\{)/).slice(0, -1).some((part) => !LOOKED_UP.test(part) && !/(?:update|add) @\S+ \{$/.test(part));
  });
}
