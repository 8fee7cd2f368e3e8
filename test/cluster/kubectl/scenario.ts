/**
 * Scenarios of commands and exactly what they print, as text:
 *
 *   # a comment
 *   $ create configmap colours --from-literal=sky=blue      kubectl's arguments, as a shell reads them
 *   configmap/colours created                               what it prints, both streams together
 *
 *   $[1.30+] debug …                                        only for kubectl 1.30 and newer ([-1.29]: only up to 1.29)
 *   $ apply -f - <<manifest                                 input: the lines up to the word, which are not output
 *   …
 *   manifest
 *   exit 1                                                  as the last line: how it ends, when not with 0
 *   $! sh script                                            a shell command, where `kubectl` is the version under test
 *
 * In what is printed, … stands for any characters of a line, and a line of … alone for any lines (or none). Spaces count as one.
 * Several play at once on one cluster: ~ stands for a digit of the player's own, in names and ports that only one can have.
 */
export interface Step {
  readonly line: number;
  /** A shell's command line. */
  readonly command: string;
  readonly input: string | undefined;
  readonly printed: readonly string[];
  readonly code: number;
}

type Version = readonly [major: number, minor: number];

export function scenario(text: string, { version, player }: { readonly version: Version; readonly player: number }): Step[] {
  const lines = text.replaceAll("~", String(player)).split("\n");
  const steps: Step[] = [];
  for (let at = 0; at < lines.length; ) {
    const line = at + 1;
    const head = /^\$(!?)(?:\[([^\]]+)\])? (.*)$/.exec(lines[at++]!);
    if (!head) continue;
    const [, shell, versions, words] = head;
    const heredoc = / <<(\w+)$/.exec(words!);
    let input: string | undefined;
    if (heredoc) {
      const end = lines.indexOf(heredoc[1]!, at);
      input = lines.slice(at, end).join("\n") + "\n";
      at = end + 1;
    }
    const printed: string[] = [];
    while (at < lines.length && !lines[at]!.startsWith("$") && !lines[at]!.startsWith("# ")) printed.push(lines[at++]!);
    while (printed.at(-1) === "") printed.pop();
    const exit = /^exit (\d+)$/.exec(printed.at(-1) ?? "");
    if (exit) printed.pop();
    if (versions && !covers(versions, version)) continue;
    const command = heredoc ? words!.slice(0, heredoc.index) : words!;
    steps.push({ line, command: shell ? command : `kubectl ${command}`, input, printed, code: exit ? Number(exit[1]) : 0 });
  }
  return steps;
}

/** "1.30+": from there on; "-1.29": up to there. */
function covers(versions: string, [major, minor]: Version): boolean {
  const [atMajor, atMinor] = versions.replace(/^-|\+$/g, "").split(".").map(Number) as [number, number];
  const difference = (major - atMajor) * 1000 + minor - atMinor;
  return versions.startsWith("-") ? difference <= 0 : difference >= 0;
}

/** Undefined if `actual` is as the step says; else both, for a reader. */
export function differs(step: Step, actual: { readonly text: string; readonly code: number }): string | undefined {
  const pattern = step.printed.map((line) => (line.trim() === "…" ? "(?:.*\\n)*?" : `${line.trim().split(/\s+/).map(escaped).join("[ \\t]+").replaceAll("…", ".*")}[ \\t]*\\n`)).join("");
  const text = actual.text.replace(/^[ \t]+/gm, "");
  const normal = text === "" || text.endsWith("\n") ? text : `${text}\n`;
  if (actual.code === step.code && new RegExp(`^\\n*${pattern}\\n*$`).test(normal)) return undefined;
  return `line ${step.line}: ${step.command}\nexpected (exit ${step.code}):\n${step.printed.join("\n")}\nprinted (exit ${actual.code}):\n${actual.text}`;
}

function escaped(words: string): string {
  return words.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
