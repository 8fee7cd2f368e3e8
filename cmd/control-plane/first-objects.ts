/** What every cluster has from the start, made or brought up to date at each start of a server, some of it whenever it is missing: roles, namespaces, the Service `kubernetes`, and what machines need to join. */
import { bootstrapPolicy } from "../../core/authz/bootstrap-policy.ts";
import { ensureBootstrapPolicy } from "../../core/authz/reconcile-policy.ts";
import type { Client } from "../../core/client/client.ts";
import type { Events } from "../../core/client/events.ts";
import { type Clock, timestamp } from "../../core/lifecycle/clock.ts";
import type { Runnable } from "../../core/lifecycle/run-all.ts";
import type { Log } from "../../core/observe/log.ts";
import type { Pki } from "../../core/pki/pki.ts";
import { type BootstrapOptions, ensureBootstrapObjects, type Rewritten, standingObjects } from "../../core/server/bootstrap.ts";
import { ensureJoinObjects } from "../../core/server/join-objects.ts";
import { afterChange, isSameSetting, sharedSettings } from "../cluster-settings.ts";
import type { Settings } from "../config/flags.ts";
import type { Identity } from "./identity.ts";

interface Options extends Pick<Identity, "extraCas" | "proxyNames" | "proxyHeaders"> {
  readonly settings: Settings;
  readonly client: Client;
  readonly pki: Pki;
  readonly apiServiceIp: string;
  readonly advertisePort: number;
  /** https://address:port of this server. */
  readonly url: string;
  /** Feature gates that are off by default and were switched on: some have roles of their own. */
  readonly gates: ReadonlySet<string>;
  /** Asked for once the first objects are there. */
  readonly events: () => Pick<Events, "from">;
  readonly clock: Clock;
  readonly log: Log;
}

/** `done` once all are there. */
export function firstObjects({ settings, client, pki, apiServiceIp, advertisePort, url, extraCas, proxyNames, proxyHeaders, gates, events, clock, log }: Options): Runnable & { readonly done: boolean } {
  let done = false;
  const enabled = (part: string): boolean => !settings.disable.includes(part);
  const controlled = (part: string): boolean => enabled(part) && enabled("controllers");
  return {
    name: "bootstrap",
    get done() { return done; },
    async run(signal, ready) {
      const bundle = (name: "server-ca" | "client-ca" | "request-header-ca"): string => pki.authority(name).bundlePem;
      const options: BootstrapOptions = {
        serviceCidrs: settings.serviceCidr.split(","), apiServiceIp, apiServicePort: 443, apiServerPort: advertisePort,
        clusterDns: enabled("dns") ? settings.clusterDns : undefined, localStorage: controlled("local-storage"), ingress: controlled("ingress"),
        clientCa: () => [bundle("client-ca"), ...extraCas.clients()].join("\n"), requestHeaderCa: () => [bundle("request-header-ca"), ...extraCas.proxies()].join("\n"), proxyNames, proxyHeaders, today: () => timestamp(clock.nowMs()).slice(0, 10),
      };
      const joining: Rewritten = {
        of: () => bundle("server-ca") + bundle("client-ca"),
        write: async (signal) => {
          const changed = await ensureJoinObjects(client, { server: url, serverCa: bundle("server-ca"), clientCa: bundle("client-ca"), settings: sharedSettings(settings) }, signal);
          for (const { name, before, now } of changed.filter((one) => !isSameSetting(one))) log.warn("a setting that all nodes share is another than the cluster had", { setting: `--${name}`, before, now, ...(afterChange(name) && { consequence: afterChange(name) }) });
        },
      };
      await untilMade({ clock, log, ready }, signal, async () => {
        await ensureBootstrapPolicy(client, { signal, log, policy: bootstrapPolicy(gates) });
        await ensureBootstrapObjects(client, options, signal, () => { done = true; });
        await joining.write(signal);
      });
      if (signal.aborted) return;
      await standingObjects({ client, clock, log, options, rewritten: [joining], recorder: events().from({ component: "kubernetes-service-cidr-controller" }) }).run(signal, ready);
    },
  };
}

/** How soon it is tried again. */
const RETRY_MS = 1_000; // kubernetes v1.36 pkg/registry/rbac/rest/storage_rbac.go

/**
 * Until `make` succeeds, or the signal. After the first failure the parts of the server that wait for this one start as well: the webhook that refuses what is to be made may be a pod
 * of this very node, and whoever wants to take the webhook away needs a server.
 */
export async function untilMade({ clock, log, ready }: { readonly clock: Clock; readonly log: Log; readonly ready: () => void }, signal: AbortSignal, make: () => Promise<void>): Promise<void> {
  for (let told = ""; !signal.aborted; await clock.sleep(RETRY_MS, signal)) {
    try {
      return await make();
    } catch (error) {
      const { message } = error as Error;
      if (!signal.aborted && message !== told) log.warn("what every cluster has could not be made; trying again", { error }); // one trouble is logged once
      told = message;
      ready();
    }
  }
}
