/** Why a volume is not there yet. */

/** With the step and the name the user knows from upstream's events: MountVolume.MountDevice failed for volume "pvc-1" : … */
export class MountFailure extends Error {
  constructor(step: string, volume: string, cause: Error) {
    super(`${step} failed for volume "${volume}" : ${cause.message}`, { cause });
    this.name = "MountFailure";
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
