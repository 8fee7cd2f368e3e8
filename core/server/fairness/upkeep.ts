/** Keeps FlowSchemas and PriorityLevelConfigurations as they should be, tells of each FlowSchema whether its level exists, and has seats lent every ten seconds. */
import type { FlowSchema, PriorityLevelConfiguration } from "../../api/gen/flowcontrol.v1.ts";
import { ifFound } from "../../api/meta/if-found.ts";
import type { ApiObject, NewObject } from "../../api/meta/object-meta.ts";
import { isAlreadyExists, isConflict, isNotFound } from "../../api/meta/status-error.ts";
import type { ResourceClient } from "../../client/client.ts";
import type { Informer } from "../../client/informer.ts";
import { type Clock, timestamp } from "../../lifecycle/clock.ts";
import { until } from "../../lifecycle/until.ts";
import type { Runnable } from "../../lifecycle/run-all.ts";
import type { Log } from "../../observe/log.ts";
import { MANDATORY_LEVELS, MANDATORY_SCHEMAS, SUGGESTED_LEVELS, SUGGESTED_SCHEMAS } from "./bootstrap-objects.ts";
import type { Fairness } from "./fairness.ts";
import { planUpkeep, type UpkeepAction } from "./upkeep-plan.ts";
import { WriteLimit } from "./write-limit.ts";

interface Deps {
  readonly fairness: Fairness;
  readonly schemas: Informer<FlowSchema>;
  readonly levels: Informer<PriorityLevelConfiguration>;
  readonly schemaClient: ResourceClient<FlowSchema>;
  readonly levelClient: ResourceClient<PriorityLevelConfiguration>;
  readonly clock: Clock;
  readonly log: Log;
}

const UPKEEP_MS = 60_000;
/** How soon the status of a FlowSchema follows. */
const STATUS_MS = 500;
/** When what was held back, or has failed, is tried again. Source: apf_controller.go digestConfigObjects, 30 to 75 s */
const HELD_BACK_MS = 30_000;
const ADJUST_MS = 10_000;
const PRODUCER = "api-priority-and-fairness-config-producer-v1";
const FIELD_MANAGER = "api-priority-and-fairness-config-consumer-v1";

export function fairnessUpkeep({ fairness, schemas, levels, schemaClient, levelClient, clock, log }: Deps): Runnable {
  async function keep(signal: AbortSignal): Promise<void> {
    for (const action of planUpkeep([...levels.list()], MANDATORY_LEVELS, SUGGESTED_LEVELS)) await act(levelClient, action, signal);
    for (const action of planUpkeep([...schemas.list()], MANDATORY_SCHEMAS, SUGGESTED_SCHEMAS)) await act(schemaClient, action, signal);
  }

  const limit = new WriteLimit();

  /** Whether all is told: another server may say the opposite each time. */
  async function tell(signal: AbortSignal): Promise<boolean> {
    let all = true;
    limit.keep(new Set([...schemas.list()].map(({ metadata }) => metadata.name)));
    const known = new Set([...levels.list()].map(({ metadata }) => metadata.name));
    for (const schema of [...schemas.list()]) {
      const condition = dangling(schema, known);
      if (!condition) continue;
      const { name } = schema.metadata;
      if (!limit.take(name, clock.uptimeMs())) {
        all = false;
        continue;
      }
      const said = { apiVersion: "flowcontrol.apiserver.k8s.io/v1", kind: "FlowSchema", metadata: { name }, status: { conditions: [{ ...condition, lastTransitionTime: timestamp(clock.nowMs()) }] } };
      await ifFound(schemaClient.apply(said as unknown as NewObject<FlowSchema>, { signal, fieldManager: FIELD_MANAGER, force: true, subresource: "status" })); // gone meanwhile
    }
    return all;
  }

  async function attempt<T>(work: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T | undefined> {
    try {
      return await work(signal);
    } catch (error) {
      if (!signal.aborted) log.warn("the objects of priority and fairness could not be kept up", { error });
      return undefined;
    }
  }

  async function repeat(periodMs: number, signal: AbortSignal, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    for await (const _ of clock.every(periodMs, signal)) await attempt(work, signal);
  }

  return {
    name: "priority and fairness",
    async run(signal, ready) {
      let stale = true;
      let wake = (): void => {};
      const noted = (): void => {
        stale = true;
        wake();
        fairness.changed();
      };
      const ends = [schemas.onChange(noted), levels.onChange(noted)];
      ready();
      await Promise.all([schemas.whenSynced(signal), levels.whenSynced(signal)]);
      if (!signal.aborted) {
        await Promise.all([
          repeat(UPKEEP_MS, signal, keep),
          (async () => {
            while (!signal.aborted) {
              stale = false;
              const isTold = await attempt(tell, signal);
              await clock.sleep(STATUS_MS, signal);
              if (stale) continue;
              const again = isTold !== true ? clock.after(HELD_BACK_MS, () => wake()) : undefined;
              await until(signal, (done) => { wake = done; });
              again?.cancel();
            }
          })(),
          repeat(ADJUST_MS, signal, () => Promise.resolve(fairness.adjust())),
        ]);
      }
      for (const end of ends) end();
    },
  };
}

/** Does what is planned, in the name upstream does it in. */
export async function act<T extends ApiObject>(client: ResourceClient<T>, action: UpkeepAction<T>, signal: AbortSignal): Promise<void> {
  try {
    switch (action.type) {
      case "create": return void (await client.create(action.object as unknown as NewObject<T>, { signal, fieldManager: PRODUCER }));
      case "update": return void (await client.update(action.object, { signal, fieldManager: PRODUCER }));
      case "delete": return void (await client.delete({ metadata: { name: action.name } }, {}, { signal }));
    }
  } catch (error) {
    if (!isAlreadyExists(error) && !isConflict(error) && !isNotFound(error)) throw error; // another server was first
  }
}

/** The condition to write; undefined: it says so already. */
export function dangling({ spec, status }: Readonly<FlowSchema>, levels: ReadonlySet<string>): { readonly type: string; readonly status: string; readonly reason: string; readonly message: string } | undefined {
  const name = spec?.priorityLevelConfiguration.name ?? "";
  const exists = levels.has(name);
  const about = `This FlowSchema references the PriorityLevelConfiguration object named ${JSON.stringify(name)}`;
  const wanted = { type: "Dangling", status: exists ? "False" : "True", reason: exists ? "Found" : "NotFound", message: exists ? `${about} and it exists` : `${about} but there is no such object` };
  const known = status?.conditions?.find(({ type }) => type === "Dangling");
  return known?.status === wanted.status && known.reason === wanted.reason && known.message === wanted.message ? undefined : wanted;
}
