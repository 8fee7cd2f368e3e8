/** /proc/<pid>/mountinfo as data. Source: proc_pid_mountinfo(5). */

export interface MountPoint {
  readonly target: string;
  readonly options: readonly string[];
  readonly fsType: string;
  readonly source: string;
  readonly superOptions: readonly string[];
}

export function parseMountinfo(text: string): MountPoint[] {
  return text.split("\n").filter((line) => line !== "").map((line) => {
    const [, , , , target, options, ...rest] = line.split(" ");
    const dash = rest.indexOf("-"); // ends the optional fields
    const [fsType, source, superOptions] = rest.slice(dash + 1);
    return {
      target: decodeOctal(target ?? ""), options: (options ?? "").split(","),
      fsType: fsType ?? "", source: decodeOctal(source ?? ""), superOptions: (superOptions ?? "").split(","),
    };
  });
}

/** Mount points at `path` or below it, in the order in which they can be unmounted: newest first. */
export function mountsUnder(table: readonly MountPoint[], path: string): MountPoint[] {
  const prefix = path.endsWith("/") ? path : `${path}/`;
  return table.filter(({ target }) => target === path || target.startsWith(prefix)).toReversed();
}

/** The mount that `path`, without links in it, is on: of several in one place the newest. */
export function mountOf(table: readonly MountPoint[], path: string): MountPoint | undefined {
  const over = table.filter(({ target }) => target === path || path.startsWith(target.endsWith("/") ? target : `${target}/`));
  return over.reduce<MountPoint | undefined>((best, mount) => (best && best.target.length > mount.target.length ? best : mount), undefined);
}

/** The kernel writes blank, tab, newline and backslash as \ooo. */
function decodeOctal(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}
