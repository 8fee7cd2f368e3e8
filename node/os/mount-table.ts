/** /proc/<pid>/mountinfo as data. Source: proc_pid_mountinfo(5). */

export interface MountPoint {
  readonly id: number;
  readonly parentId: number;
  /** The path inside the mounted file system that shows at `target`: not "/" for a bind mount of a directory. */
  readonly root: string;
  readonly target: string;
  readonly options: readonly string[];
  /** shared:N, master:N … of proc(5); empty for a private mount. */
  readonly propagation: readonly string[];
  readonly fsType: string;
  readonly source: string;
  readonly superOptions: readonly string[];
}

export function parseMountinfo(text: string): MountPoint[] {
  return text.split("\n").filter((line) => line !== "").map((line) => {
    const [id, parentId, , root, target, options, ...rest] = line.split(" ");
    const dash = rest.indexOf("-"); // ends the optional fields
    const [fsType, source, superOptions] = rest.slice(dash + 1);
    return {
      id: Number(id), parentId: Number(parentId), root: decodeOctal(root ?? ""), target: decodeOctal(target ?? ""), options: (options ?? "").split(","),
      propagation: rest.slice(0, dash), fsType: fsType ?? "", source: decodeOctal(source ?? ""), superOptions: (superOptions ?? "").split(","),
    };
  });
}

/** Mount points at `path` or below it, in the order in which they can be unmounted: newest first. */
export function mountsUnder(table: readonly MountPoint[], path: string): MountPoint[] {
  const prefix = path.endsWith("/") ? path : `${path}/`;
  return table.filter(({ target }) => target === path || target.startsWith(prefix)).toReversed();
}

/** The kernel writes blank, tab, newline and backslash as \ooo. */
function decodeOctal(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}
