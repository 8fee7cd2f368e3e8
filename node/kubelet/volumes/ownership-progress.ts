/**
 * Giving a volume with many files to a group takes long, and its pod waits for that: whoever looks at the pod is told why.
 *
 * Source: kubernetes v1.36 pkg/volume/volume_linux.go (initiateProgressMonitor)
 */
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import type { EventRecorder } from "../../../core/client/events.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import { podReference } from "../pod-spec.ts";

const FIRST_MS = 30_000;
const AGAIN_MS = 60_000;

export interface Told { readonly clock: Pick<Clock, "after">; readonly events: EventRecorder }

/** Does `work`, which calls `count` for each file that it has seen to. */
export async function tellingProgress({ clock, events }: Told, pod: Pod, path: string, work: (count: () => void) => Promise<void>): Promise<void> {
  let files = 0;
  const { uid } = pod.metadata;
  const name = path.slice(Math.max(0, path.indexOf(uid))); // the rest is the same for all pods
  const tell = (rest: string): void => events.event(podReference(pod), "Warning", "VolumePermissionChangeInProgress", `Setting volume ownership for ${name}${rest}`);
  let alarm = clock.after(FIRST_MS, () => {
    tell(" is taking longer than expected, consider using OnRootMismatch - https://kubernetes.io/docs/tasks/configure-pod-container/security-context/#configure-volume-permission-and-ownership-change-policy-for-pods");
    again();
  });
  function again(): void {
    alarm = clock.after(AGAIN_MS, () => {
      tell(`, processed ${files} files.`);
      again();
    });
  }
  try {
    await work(() => { files++; });
  } finally {
    alarm.cancel();
  }
}
