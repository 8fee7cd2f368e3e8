/**
 * Device plugins: processes that register a resource (vendor.com/dongle), say which devices of it this node has and how they are, and what a
 * container needs that gets some.
 *
 *   <plugin> ──Register──▶ device-plugins/kubelet.sock         or by a socket in plugins_registry (plugins/plugin-watcher.ts)
 *   kubelet ──GetDevicePluginOptions, ListAndWatch, GetPreferredAllocation, Allocate, PreStartContainer──▶ <plugin>
 *
 * When a plugin's stream ends its devices are unhealthy; five minutes later the resource is gone from the node. After a start of the kubelet its
 * sockets are gone, which tells plugins to register again.
 *
 * Source: kubernetes v1.36 pkg/kubelet/cm/devicemanager, staging/src/k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1
 */
import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { isExtendedResource } from "../../../core/api/meta/resource-names.ts";
import { aborted } from "../../../core/lifecycle/aborted.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Runnable } from "../../../core/lifecycle/run-all.ts";
import type { Log } from "../../../core/observe/log.ts";
import type { Metrics } from "../../../core/observe/metrics.ts";
import { serviceMethods } from "../../cri/facts.ts";
import { type RpcClient, rpcClient, type RpcError } from "../../cri/rpc-client.ts";
import { RpcFailure, rpcServer } from "../../cri/rpc-server.ts";
import text from "../plugins/device-plugin-facts.txt" with { type: "text" };
import type { DevicePluginOptions, Methods } from "../plugins/gen/device-plugin.v1beta1.ts";
import type { PluginHandler } from "../plugins/plugin-watcher.ts";
import type { KnownDevice } from "./device-choice.ts";

export const DEVICE_PLUGINS = "device-plugins";
const VERSION = "v1beta1";
const PATIENCE_MS = 5 * 60_000;
const CONNECT_MS = 10_000;

export interface DevicePlugin {
  readonly resource: string;
  readonly options: DevicePluginOptions;
  readonly call: RpcClient<Methods>["call"];
}

export interface DevicePlugins {
  readonly parts: readonly Runnable[];
  readonly handler: PluginHandler;
  plugin(resource: string): DevicePlugin | undefined;
  devices(resource: string): readonly KnownDevice[];
  device(resource: string, id: string): KnownDevice | undefined;
  /** Nothing starts with such devices before their plugin has prepared them, whether it is there or not. */
  wantsPreStart(resource: string): boolean;
  /** Those that ever registered and are not gone. */
  resources(): readonly string[];
}

interface Deps {
  readonly dataDir: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Resources known from before: none of their devices is there until they register. */
  readonly known: readonly string[];
  /** Devices have come, gone, or changed. */
  readonly onChange: () => void;
}

interface Known { plugin: (DevicePlugin & { stop(): void }) | undefined; /** By id. */ devices: ReadonlyMap<string, KnownDevice>; endedAtMs: number | undefined }

export function devicePlugins({ dataDir, clock, log, metrics, known, onChange }: Deps): DevicePlugins {
  const registrations = metrics.counter("kubelet_device_plugin_registration_total", "[ALPHA] Cumulative number of device plugin registrations. Broken down by resource name.");
  const directory = join(dataDir, DEVICE_PLUGINS);
  const methods = serviceMethods(text, VERSION);
  const table = new Map<string, Known>(known.map((resource) => [resource, { plugin: undefined, devices: new Map(), endedAtMs: clock.uptimeMs() }]));
  const preparing = new Set<string>(); // resources whose plugin, as it registered last, prepares what is started with them
  const life = new AbortController();

  async function connect(resource: string, socket: string): Promise<void> {
    const client = rpcClient<Methods>({ socket, methods, nowMs: clock.nowMs, waitForReady: true });
    const stop = new AbortController();
    const end = (): void => { stop.abort(); client.close(); };
    try {
      const options = await client.call("DevicePlugin/GetDevicePluginOptions", {}, { signal: life.signal, timeoutMs: CONNECT_MS }).catch((error: RpcError) => {
        throw new RpcFailure("Unknown", error.code === "DeadlineExceeded" ? "failed to dial device plugin: context deadline exceeded" : `failed to get device plugin options: ${error.message}`);
      });
      const plugin = { resource, options, call: client.call, stop: end };
      if (options.pre_start_required) preparing.add(resource);
      else preparing.delete(resource);
      table.get(resource)?.plugin?.stop();
      table.set(resource, { plugin, devices: table.get(resource)?.devices ?? new Map(), endedAtMs: undefined }); // as they were, until it tells
      void follow(plugin, client, AbortSignal.any([stop.signal, life.signal]));
    } catch (error) {
      end();
      throw error;
    }
  }

  async function follow(plugin: NonNullable<Known["plugin"]>, client: RpcClient<Methods>, signal: AbortSignal): Promise<void> {
    const { resource } = plugin;
    const isCurrent = (): boolean => table.get(resource)?.plugin === plugin;
    let before: ReadonlyMap<string, KnownDevice> | undefined;
    try {
      for await (const { devices = [] } of client.stream("DevicePlugin/ListAndWatch", {}, signal)) {
        if (!isCurrent()) return;
        const told = new Map(devices.map(({ ID = "", health, topology }) => [ID, { id: ID, healthy: health === "Healthy", numaNodes: (topology?.nodes ?? []).map((node) => node.ID ?? 0) }])); // one that is told of twice is one
        if (before && isSame(before, told)) continue; // some tell them every second: that is neither news for the cluster nor for the disk
        before = told;
        table.set(resource, { plugin, devices: told, endedAtMs: undefined });
        log.info("devices of a plugin", { resource, devices: told.size, healthy: told.values().filter(({ healthy }) => healthy).toArray().length });
        onChange();
      }
    } catch (error) {
      if (!signal.aborted) log.warn("device plugin's stream broke: its devices are unhealthy", { resource, error });
    }
    plugin.stop();
    if (!isCurrent() || life.signal.aborted) return;
    const now = table.get(resource)!;
    table.set(resource, { plugin: undefined, devices: new Map(now.devices.values().map((device) => [device.id, { ...device, healthy: false }])), endedAtMs: clock.uptimeMs() });
    onChange();
  }

  function validate(resource: string, version: string): void {
    if (version !== VERSION) throw new RpcFailure("Unknown", `requested API version "${version}" is not supported by kubelet. Supported version is ["${VERSION}"]`);
    if (!isExtendedResource(resource)) throw new RpcFailure("Unknown", `the ResourceName "${resource}" is invalid`);
  }

  const registration = rpcServer<Methods>({
    name: "device-plugins", socket: join(directory, "kubelet.sock"), methods, log,
    calls: {
      async "Registration/Register"({ resource_name = "", version = "", endpoint = "" }) {
        if (isExtendedResource(resource_name)) registrations.inc({ resource_name });
        validate(resource_name, version);
        if (endpoint === "" || endpoint.includes("/")) throw new RpcFailure("Unknown", `invalid endpoint "${endpoint}"`);
        try {
          await connect(resource_name, join(directory, endpoint));
        } catch (error) {
          log.warn("device plugin not connected", { resource: resource_name, endpoint, error });
          throw error; // so that it registers again
        }
        return {};
      },
    },
  });

  const server: Runnable = {
    name: "device-plugins",
    async run(signal, ready) {
      await mkdir(directory, { recursive: true, mode: 0o750 });
      for (const entry of await readdir(directory, { withFileTypes: true })) if (entry.isSocket()) await rm(join(directory, entry.name), { force: true });
      await registration.run(signal, ready);
    },
  };
  /** Forgets what has not come back. */
  const patience: Runnable = {
    name: "device-plugins-gone",
    async run(signal, ready) {
      ready();
      for await (const _ of clock.every(PATIENCE_MS / 5, signal)) {
        const gone = [...table].filter(([, { endedAtMs }]) => endedAtMs !== undefined && clock.uptimeMs() - endedAtMs > PATIENCE_MS);
        for (const [resource] of gone) table.delete(resource);
        if (gone.length > 0) onChange();
      }
      await aborted(signal);
      life.abort();
    },
  };

  return {
    parts: [server, patience],
    handler: {
      type: "DevicePlugin",
      validate({ name, versions }) {
        if (!versions.includes(VERSION)) throw new Error(`manager version, ${VERSION}, is not among plugin supported versions [${versions.join(" ")}]`);
        if (!isExtendedResource(name)) throw new Error(`invalid name of device plugin socket: the ResourceName "${name}" is invalid`);
      },
      register: ({ name, endpoint }) => connect(name, endpoint),
      async deregister({ name }) {
        table.get(name)?.plugin?.stop();
      },
    },
    plugin: (resource) => table.get(resource)?.plugin,
    devices: (resource) => [...(table.get(resource)?.devices.values() ?? [])],
    device: (resource, id) => table.get(resource)?.devices.get(id),
    wantsPreStart: (resource) => preparing.has(resource),
    resources: () => [...table.keys()],
  };
}

/** In whatever order. */
function isSame(before: ReadonlyMap<string, KnownDevice>, now: ReadonlyMap<string, KnownDevice>): boolean {
  return before.size === now.size && now.values().every(({ id, healthy, numaNodes }) => {
    const old = before.get(id);
    return old?.healthy === healthy && old.numaNodes.length === numaNodes.length && old.numaNodes.every((node, i) => node === numaNodes[i]);
  });
}
