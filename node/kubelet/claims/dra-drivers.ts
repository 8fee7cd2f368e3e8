/**
 * Drivers of dynamic resource allocation, as they register and go. What a driver that is gone, or does not answer any more, has published, its ResourceSlices,
 * goes after a while; those of before a start of the kubelet go at once, drivers publish anew.
 *
 * Source: kubernetes v1.36 pkg/kubelet/cm/dra/plugin
 */
import { isNotFound } from "../../../core/api/meta/status-error.ts";
import type { Client } from "../../../core/client/client.ts";
import { RESOURCE_SLICES } from "../../../core/client/resources.ts";
import { aborted } from "../../../core/lifecycle/aborted.ts";
import { backoffMs } from "../../../core/lifecycle/backoff.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Runnable } from "../../../core/lifecycle/run-all.ts";
import type { Log } from "../../../core/observe/log.ts";
import { serviceMethods } from "../../cri/facts.ts";
import { type RpcClient, rpcClient } from "../../cri/rpc-client.ts";
import text from "../plugins/dra-facts.txt" with { type: "text" };
import type { Methods } from "../plugins/gen/dra.v1.ts";
import type { PluginHandler } from "../plugins/plugin-watcher.ts";

export interface DraDriver {
  readonly client: RpcClient<Methods>;
  /** By its full name, of the version the driver speaks. */
  readonly service: string;
}

export interface DraDrivers extends Runnable {
  readonly handler: PluginHandler;
  /** Throws an Error for the user when there is none of that name. */
  driver(name: string): DraDriver;
}

interface Deps {
  readonly nodeName: string;
  readonly client: Client;
  readonly clock: Clock;
  readonly log: Log;
  /** Is there: until `signal` aborts, which it does when the driver goes. */
  readonly onRegistered: (name: string, endpoint: string, signal: AbortSignal) => void;
}

/** As drivers name them when they register; the newest first. */
const SERVICES = [["v1.DRAPlugin", "k8s.io.kubelet.pkg.apis.dra.v1"], ["v1beta1.DRAPlugin", "k8s.io.kubelet.pkg.apis.dra.v1beta1"]] as const;
/** A driver that is updated is back by then. */
const WIPE_MS = 30_000;
const WIPE_RETRY = { minMs: 1_000, maxMs: 300_000 };

export function draDrivers({ nodeName, client, clock, log, onRegistered }: Deps): DraDrivers {
  const drivers = new Map<string, DraDriver & { readonly endpoint: string; stop(): void }>();
  const wipes = new Map<string, AbortController>(); // by driver
  const life = new AbortController();

  /** Until the API server has done it. */
  async function wipe(selector: string, signal: AbortSignal): Promise<void> {
    for (let failures = 0; !signal.aborted;) {
      try {
        return await client.resource(RESOURCE_SLICES).deleteCollection({ fieldSelector: selector }, {}, { signal });
      } catch (error) {
        if (signal.aborted || isNotFound(error)) return;
        log.debug("resource slices not deleted, next try later", { selector, error });
        await clock.sleep(backoffMs(++failures, WIPE_RETRY), signal);
      }
    }
  }

  async function wipeLater(name: string): Promise<void> {
    if (wipes.has(name)) return;
    const stop = new AbortController();
    wipes.set(name, stop);
    const signal = AbortSignal.any([stop.signal, life.signal]);
    await clock.sleep(WIPE_MS, signal);
    await wipe(`spec.nodeName=${nodeName},spec.driver=${name}`, signal);
    if (wipes.get(name) === stop) wipes.delete(name);
  }

  function keepSlices(name: string): void {
    wipes.get(name)?.abort();
    wipes.delete(name);
  }

  const handler: PluginHandler = {
    type: "DRAPlugin",
    validate({ name, endpoint, versions }) {
      const refuse = (why: string): never => { throw new Error(`invalid supported gRPC versions of DRA driver plugin ${name} at endpoint ${endpoint}: ${why}`); };
      if (versions.length === 0) refuse("empty list of supported gRPC services (aka supported versions)");
      if (!SERVICES.some(([service]) => versions.includes(service))) refuse(`none of services supported by the plugin (${quoted(versions)}) are supported by the kubelet (${quoted(SERVICES.map(([service]) => service))})`);
    },
    async register({ name, endpoint, versions }) {
      const [, protoPackage] = SERVICES.find(([service]) => versions.includes(service))!;
      drivers.get(name)?.stop();
      const quit = new AbortController();
      const rpc = rpcClient<Methods>({ socket: endpoint, methods: serviceMethods(text, protoPackage), nowMs: clock.nowMs });
      drivers.set(name, { endpoint, client: rpc, service: `${protoPackage}.DRAPlugin`, stop() { quit.abort(); rpc.close(); } });
      rpc.attend((isConnected) => {
        if (quit.signal.aborted || life.signal.aborted) return;
        log.debug("connection to a driver of claims", { driver: name, endpoint, isConnected });
        if (isConnected) keepSlices(name);
        else void wipeLater(name);
      });
      onRegistered(name, endpoint, AbortSignal.any([quit.signal, life.signal]));
    },
    async deregister({ name, endpoint }) {
      const gone = drivers.get(name);
      if (gone?.endpoint !== endpoint) return;
      gone.stop();
      drivers.delete(name);
      void wipeLater(name);
    },
  };

  return {
    name: "dra-drivers",
    handler,
    driver(name) {
      const found = drivers.get(name);
      if (!found) throw new Error(`DRA driver ${name} is not registered`);
      return found;
    },
    async run(signal, ready) {
      ready();
      await wipe(`spec.nodeName=${nodeName}`, signal);
      await aborted(signal);
      life.abort();
      for (const one of drivers.values()) one.stop();
    },
  };
}

function quoted(versions: readonly string[]): string { return `[${versions.map((one) => JSON.stringify(one)).join(" ")}]`; }
