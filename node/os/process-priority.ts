/**
 * How this process stands with others that want the processor, on Windows: its priority class, by Windows' names.
 *
 * Source: kubernetes v1.36 cmd/kubelet/app/init_windows.go getPriorityValue
 */
import { constants } from "node:os";

const { PRIORITY_LOW, PRIORITY_BELOW_NORMAL, PRIORITY_NORMAL, PRIORITY_ABOVE_NORMAL, PRIORITY_HIGH, PRIORITY_HIGHEST } = constants.priority;

/** As `setPriority` of node:os takes them, which makes Windows' classes of them. */
const CLASSES: Readonly<Record<string, number>> = {
  IDLE_PRIORITY_CLASS: PRIORITY_LOW, BELOW_NORMAL_PRIORITY_CLASS: PRIORITY_BELOW_NORMAL, NORMAL_PRIORITY_CLASS: PRIORITY_NORMAL,
  ABOVE_NORMAL_PRIORITY_CLASS: PRIORITY_ABOVE_NORMAL, HIGH_PRIORITY_CLASS: PRIORITY_HIGH, REALTIME_PRIORITY_CLASS: PRIORITY_HIGHEST,
};

/** Throws an Error with upstream's words for a class there is not. */
export function priorityOfClass(name: string): number {
  const priority = Object.hasOwn(CLASSES, name) ? CLASSES[name] : undefined;
  if (priority === undefined) throw new Error(`unknown priority class ${name}, valid ones are available at https://docs.microsoft.com/en-us/windows/win32/procthread/scheduling-priorities`);
  return priority;
}
