/** What every cluster has from the start, made or brought up to date at each start of a server, some of it whenever it is missing: roles, namespaces, the Service `kubernetes`, and what machines need to join. */
import { ensureBootstrapPolicy } from "../../core/authz/reconcile-policy.ts";
import type { Client } from "../../core/client/client.ts";
import type { Events } from "../../core/client/events.ts";
import { type Clock, timestamp } from "../../core/lifecycle/clock.ts";
import type { Runnable } from "../../core/lifecycle/run-all.ts";
import type { Log } from "../../core/observe/log.ts";
import type { Pki } from "../../core/pki/pki.ts";
import { type BootstrapOptions, ensureBootstrapObjects, type Rewritten, standingObjects } from "../../core/server/bootstrap.ts";
import { ensureJoinObjects } from "../../core/server/join-objects.ts";
import { sharedSettings } from "../cluster-settings.ts";
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
  /** Asked for once the first objects are there. */
  readonly events: () => Pick<Events, "from">;
  readonly clock: Clock;
  readonly log: Log;
}

/** `done` once all are there. */
export function firstObjects({ settings, client, pki, apiServiceIp, advertisePort, url, extraCas, proxyNames, proxyHeaders, events, clock, log }: Options): Runnable & { readonly done: boolean } {
  let done = false;
  const enabled = (part: string): boolean => !settings.disable.includes(part);
  const controlled = (part: string): boolean => enabled(part) && enabled("controllers");
  return {
    name: "bootstrap",
    get done() { return done; },
    async run(signal, ready) {
      const bundle = (name: "server-ca" | "client-ca" | "request-header-ca"): string => pki.authority(name).bundlePem;
      await ensureBootstrapPolicy(client, { signal, log });
      const options: BootstrapOptions = {
        serviceCidrs: settings.serviceCidr.split(","), apiServiceIp, apiServicePort: 443, apiServerPort: advertisePort, clusterDns: enabled("dns") ? settings.clusterDns : undefined, localStorage: controlled("local-storage"), ingress: controlled("ingress"),
        clientCa: () => [bundle("client-ca"), ...extraCas.clients()].join("\n"), requestHeaderCa: () => [bundle("request-header-ca"), ...extraCas.proxies()].join("\n"), proxyNames, proxyHeaders, today: () => timestamp(clock.nowMs()).slice(0, 10),
      };
      await ensureBootstrapObjects(client, options, signal);
      const joining: Rewritten = {
        of: () => bundle("server-ca") + bundle("client-ca"),
        write: (signal) => ensureJoinObjects(client, { server: url, serverCa: bundle("server-ca"), clientCa: bundle("client-ca"), settings: sharedSettings(settings) }, signal),
      };
      await joining.write(signal);
      done = true;
      await standingObjects({ client, clock, log, options, rewritten: [joining], recorder: events().from({ component: "kubernetes-service-cidr-controller" }) }).run(signal, ready);
    },
  };
}
