/** Windows has no mounts in the sense of mount.ts: volumes are directories and junctions there. */
import { MountError, type Mounts } from "./mount.ts";

export function windowsMounts(): Mounts {
  const no = (): never => {
    throw new MountError("ENOSYS", "mounts do not exist on Windows");
  };
  return { mount: no, bind: no, setPropagation: no, unmount: no, unmountAll: () => [], list: () => [], isMountPoint: () => false };
}
