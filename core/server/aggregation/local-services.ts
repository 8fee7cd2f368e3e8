/** Registers what this server serves itself, as APIServices: local-plan.ts decides. */
import { isAlreadyExists, isConflict, isNotFound } from "../../api/meta/status-error.ts";
import type { ResourceClient } from "../../client/client.ts";
import type { Informer } from "../../client/informer.ts";
import type { Clock } from "../../lifecycle/clock.ts";
import type { Runnable } from "../../lifecycle/run-all.ts";
import { until } from "../../lifecycle/until.ts";
import type { Log } from "../../observe/log.ts";
import type { APIService } from "../../registry/apiregistration/api-service.ts";
import type { Registry } from "../../registry/registry.ts";
import { builtInVersions } from "../group-versions.ts";
import { apiServiceName, type LocalAction, planLocal, type Wanted } from "./local-plan.ts";

interface Deps {
  readonly registry: Registry;
  readonly apiServices: Informer<APIService>;
  readonly resource: ResourceClient<APIService>;
  readonly clock: Clock;
  readonly log: Log;
}

/** Before the next try, and before what was put right a moment ago is put right again: somebody else wants it otherwise. */
const AGAIN_MS = 1_000;
/** Source: pkg/controlplane/controller/crdregistration */
const CUSTOM_PRIORITY = { groupPriority: 1000, versionPriority: 100 };

/** `done` once all of the start are there. */
export function localServices({ registry, apiServices, resource, clock, log }: Deps): Runnable & { readonly done: boolean } {
  let done = false;
  async function act(action: LocalAction, signal: AbortSignal): Promise<void> {
    try {
      switch (action.type) {
        case "create": return void (await resource.create(action.apiService, { signal }));
        case "update": return void (await resource.update(action.apiService, { signal }));
        case "delete": return void (await resource.delete({ metadata: { name: action.name } }, {}, { signal }));
      }
    } catch (error) {
      if (!isAlreadyExists(error) && !isNotFound(error) && !isConflict(error)) throw error; // another server was first
    }
  }

  return {
    name: "APIService registration",
    get done() { return done; },
    async run(signal, ready) {
      let stale = true;
      const seen = new Set<string>();
      let wake = (): void => {};
      let mended: readonly string[] = [];
      const noted = (): void => {
        stale = true;
        wake();
      };
      const ends = [apiServices.onChange(noted), registry.onChange(noted)];
      ready();
      await apiServices.whenSynced(signal);
      while (!signal.aborted) {
        stale = false;
        let wait = false;
        try {
          const existing = new Map([...apiServices.list()].map((one) => [one.metadata.name, one]));
          const wanted = wantedOf(registry);
          const actions = planLocal(wanted, existing, seen);
          for (const action of actions) await act(action, signal);
          const updated = actions.flatMap((action) => (action.type === "update" ? [action.apiService.metadata.name] : []));
          wait = updated.some((name) => mended.includes(name));
          mended = updated;
          for (const one of wanted) seen.add(apiServiceName(one));
          done = true;
        } catch (error) {
          if (signal.aborted) break;
          stale = wait = true;
          log.warn("an APIService could not be registered, next try soon", { error });
        }
        if (wait) await clock.sleep(AGAIN_MS, signal);
        if (!stale) await until(signal, (done) => { wake = done; });
      }
      for (const end of ends) end();
    },
  };
}

function wantedOf(registry: Registry): Wanted[] {
  const built = builtInVersions(registry).map((one): Wanted => ({ ...one, managed: "onstart" }));
  const known = new Set(built.map(({ group, version }) => `${group}/${version}`));
  const rest = new Map<string, Wanted>();
  for (const { group, version, custom } of registry.rows())
    if (!known.has(`${group}/${version}`)) rest.set(`${group}/${version}`, { group, version, ...CUSTOM_PRIORITY, managed: custom ? "true" : "onstart" });
  return [...built, ...rest.values()];
}
