/** Why a volume is not there yet. */

/** Whether there is anything to map is told as of other volumes. */
const BLOCK_STEP = /^MapVolume\.(?!NodeAffinity|FindMapperPlugin)/;

/** With the step and the name the user knows from upstream's events: MountVolume.MountDevice failed for volume "pvc-1" : … */
export class MountFailure extends Error {
  /** Of the event that tells of it. */
  readonly reason: "FailedMount" | "FailedMapVolume";

  /** `doing`: what else was done in that step. */
  constructor(step: string, volume: string, cause: Error, { doing = "" }: { readonly doing?: string } = {}) {
    super(`${step} failed${doing && ` ${doing}`} for volume "${volume}" : ${cause.message}`, { cause });
    this.name = "MountFailure";
    this.reason = BLOCK_STEP.test(step) ? "FailedMapVolume" : "FailedMount";
  }
}

/** What stands behind the volume is not to be used, so that nothing of it is tried: a claim that is not bound, a kind that this node does not know. */
export class UnusableVolume extends Error {
  constructor(volume: string, message: string, options?: ErrorOptions) {
    super(`Unable to attach or mount volumes: unmounted volumes=[${volume}], unattached volumes=[], failed to process volumes=[${volume}]: ${message}`, options);
    this.name = "UnusableVolume";
  }
}

/** Nothing is wrong, others have to do something first: looked at again soon, told to the user only when it takes long. */
export class VolumePending extends Error {
  constructor(message: string) {
    super(message);
    this.name = "VolumePending";
  }
}

/** The storage says that the node has as many volumes as it takes. */
export class AttachLimitReached extends VolumePending {
  constructor(message: string) {
    super(message);
    this.name = "AttachLimitReached";
  }
}

/** What a file system's error says, as users know it from upstream: open /a/b: no such file or directory. */
export function mountErrorText({ message }: Error): string {
  const [, text, call, path] = /^[A-Z]+: (.*), (\w+) '(.*)'$/.exec(message) ?? [];
  return text === undefined ? message : `${call} ${path}: ${text}`;
}
