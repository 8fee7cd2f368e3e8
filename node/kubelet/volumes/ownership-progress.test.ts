import { expect, test } from "vitest";
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import { tellingProgress } from "./ownership-progress.ts";

test("a volume that takes long to be given to its group is told of after half a minute, then every minute, with how far it is", async () => {
  const told: string[] = [];
  const alarms: { readonly ms: number; readonly work: () => void; live: boolean }[] = [];
  const clock = { after(ms: number, work: () => void) { const alarm = { ms, work, live: true }; alarms.push(alarm); return { cancel() { alarm.live = false; } }; } };
  const events = { event: (_: unknown, type: string, reason: string, message: string) => void told.push(`${type} ${reason} ${message}`) };
  const pod = { metadata: { name: "p", namespace: "d", uid: "u1" } } as unknown as Pod;
  await tellingProgress({ clock, events: events as never }, pod, "/k/pods/u1/volumes/x/mount", async (count) => {
    for (let i = 0; i < 3; i++) count();
    for (const at of [0, 1, 2]) alarms[at]!.work();
  });
  expect(told).toEqual([
    "Warning VolumePermissionChangeInProgress Setting volume ownership for u1/volumes/x/mount is taking longer than expected, consider using OnRootMismatch - https://kubernetes.io/docs/tasks/configure-pod-container/security-context/#configure-volume-permission-and-ownership-change-policy-for-pods",
    "Warning VolumePermissionChangeInProgress Setting volume ownership for u1/volumes/x/mount, processed 3 files.",
    "Warning VolumePermissionChangeInProgress Setting volume ownership for u1/volumes/x/mount, processed 3 files.",
  ]);
  expect(alarms.map(({ ms }) => ms)).toEqual([30_000, 60_000, 60_000, 60_000]);
  expect(alarms.at(-1)!.live).toBe(false);
});
