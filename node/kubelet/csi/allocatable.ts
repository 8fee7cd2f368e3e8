/**
 * What CSIDrivers say, watched from the first driver on. How many volumes of a driver fit on this node may change. A CSIDriver with nodeAllocatableUpdatePeriodSeconds has its driver asked again that often, and
 * the CSINode says what it answers. Of a driver that has registered while the server was away the cluster is told here as well.
 *
 * Source: kubernetes v1.36 pkg/volume/csi/csi_node_updater.go
 */
import type { CSIDriver } from "../../../core/api/gen/storage.v1.ts";
import { asDouble } from "../../../core/api/meta/go-integer.ts";
import { objectKey } from "../../../core/api/meta/object-meta.ts";
import type { Client } from "../../../core/client/client.ts";
import { CSI_DRIVERS } from "../../../core/client/resources.ts";
import { watchedInformer } from "../../../core/client/watched-informer.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Random } from "../../../core/lifecycle/random.ts";
import type { Runnable } from "../../../core/lifecycle/run-all.ts";
import type { Log } from "../../../core/observe/log.ts";
import type { CsiDrivers } from "./drivers.ts";

/** The shortest period there may be; longer ones end at the next look. */
const LOOK_MS = 10_000;

interface Deps {
  readonly client: Client;
  readonly drivers: Pick<CsiDrivers, "names" | "refresh" | "isOwed">;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Is told of every CSIDriver, and whenever one changes. */
  readonly onChange: (object: Readonly<CSIDriver>) => void;
}

export function csiAllocatable({ client, drivers, clock, random, log, onChange }: Deps): Runnable {
  const objects = watchedInformer(client.resource(CSI_DRIVERS), { clock, random, log });
  objects.onChange(({ object, deleted }) => { if (!deleted) onChange(object); });
  const askedMs = new Map<string, number>(); // by driver, by uptime

  async function look(name: string, signal: AbortSignal): Promise<void> {
    const seconds = objects.get(objectKey("", name))?.spec.nodeAllocatableUpdatePeriodSeconds;
    const nowMs = clock.uptimeMs();
    const lastMs = askedMs.get(name);
    const isOwed = drivers.isOwed(name);
    const isDue = isOwed || (lastMs !== undefined && seconds !== undefined && nowMs - lastMs >= asDouble(seconds) * 1000);
    if (isDue || lastMs === undefined || seconds === undefined) askedMs.set(name, nowMs);
    if (!isDue) return;
    await drivers.refresh(name, signal).catch((error: unknown) => {
      if (isOwed) log.debug("the cluster cannot be told of a CSI driver yet", { driver: name, error });
      else if (!signal.aborted) log.warn("a CSI driver did not say how many volumes the node takes", { driver: name, error });
    });
  }

  return {
    name: "csi-allocatable",
    async run(signal, ready) {
      ready();
      let watching: Promise<void> | undefined; // from the first driver on
      for await (const _ of clock.every(LOOK_MS, signal)) {
        const names = drivers.names();
        if (names.length > 0) watching ??= objects.run(signal, () => undefined);
        await Promise.all(names.map((name) => look(name, signal)));
      }
      await watching;
    },
  };
}
