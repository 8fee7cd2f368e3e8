/**
 * The directories behind volumes of the class local-path on this node: made and removed when the control plane's provisioner asks, over the
 * kubelet's server (POST and DELETE /localPath/<name>).
 *
 * A directory that is said to be made has reached the disk: a volume must not be there while what it stands on is lost to a power cut.
 */
import { chmod, mkdir, open, realpath } from "node:fs/promises";
import { join } from "node:path";
import { ifThere } from "../../../core/lifecycle/if-there.ts";
import type { Mounts } from "../../os/mount.ts";
import { removeTree } from "./remove-tree.ts";

export interface LocalPathDirectories {
  /** Its path; made unless it is there. Throws BadName. */
  make(name: string): Promise<string>;
  /** With everything in it; gone already is good. Throws BadName, and an Error while something is mounted in it. */
  remove(name: string): Promise<void>;
}

export class BadName extends Error {
  constructor(name: string) {
    super(`${JSON.stringify(name)} is no name of a local-path volume`);
    this.name = "BadName";
  }
}

/** <volume>_<namespace>_<claim>, none of which can name another directory. */
const NAME = /^[a-z0-9][-a-z0-9.]*(_[a-z0-9][-a-z0-9.]*){0,2}$/;

export function localPathDirectories({ root, mounts }: { readonly root: string; readonly mounts: Pick<Mounts, "list"> }): LocalPathDirectories {
  function pathOf(name: string): string {
    if (!NAME.test(name) || name.length > 255 * 3) throw new BadName(name);
    return join(root, name);
  }
  return {
    async make(name) {
      const path = pathOf(name);
      await mkdir(root, { recursive: true, mode: 0o755 });
      if ((await mkdir(path, { recursive: true })) !== undefined) await chmod(path, 0o777); // whoever the container runs as; what its user changed since stays
      const parent = await open(root);
      try {
        await parent.sync();
      } finally {
        await parent.close();
      }
      return path;
    },
    async remove(name) {
      const path = pathOf(name);
      const known = join((await ifThere(realpath(root))) ?? root, name); // by the kernel, where a link leads to it
      const mounted = mounts.list().find(({ target }) => target === known || target.startsWith(`${known}/`));
      if (mounted) throw new Error(`still mounted: ${mounted.target}`); // never delete through a mount
      await removeTree(path);
    },
  };
}
