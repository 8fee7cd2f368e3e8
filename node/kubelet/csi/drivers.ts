/**
 * The CSI drivers that have registered on this node, and what each can do.
 *
 * Source: kubernetes v1.36 pkg/volume/csi/{csi_plugin,csi_client,csi_drivers_store}.go
 */
import { StatusError } from "../../../core/api/meta/status-error.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Log } from "../../../core/observe/log.ts";
import { serviceMethods } from "../../cri/facts.ts";
import { type RpcClient, rpcClient } from "../../cri/rpc-client.ts";
import text from "../plugins/csi-facts.txt" with { type: "text" };
import type { Methods, NodeServiceCapabilityRPCType } from "../plugins/gen/csi.v1.ts";
import type { PluginHandler, PluginIdentity } from "../plugins/plugin-watcher.ts";
import type { CsiNodeWriter } from "./csi-node.ts";
import type { MeteredCall } from "./driver-calls.ts";

export interface CsiDriver {
  readonly name: string;
  readonly call: RpcClient<Methods>["call"];
  can(capability: NodeServiceCapabilityRPCType, signal: AbortSignal): Promise<boolean>;
}

export interface CsiDrivers {
  readonly handler: PluginHandler;
  /** Throws "driver name … not found in the list of registered CSI drivers". */
  get(name: string): CsiDriver;
  /** Of those that are registered. */
  names(): readonly string[];
  /** Asks the driver anew what the cluster is to know of it. */
  refresh(name: string, signal: AbortSignal): Promise<void>;
  /** The cluster does not know of it yet: its server was away. */
  isOwed(name: string): boolean;
}

interface Deps {
  readonly node: CsiNodeWriter;
  readonly clock: Clock;
  readonly log: Log;
  readonly metered: MeteredCall;
  /** A driver has come: volumes that wait for it are worth another try. */
  readonly onRegistered: () => void;
}

const INFO_MS = 120_000;

export function csiDrivers({ node, clock, log, metered, onRegistered }: Deps): CsiDrivers {
  const drivers = new Map<string, CsiDriver & { readonly endpoint: string; close(): void }>();
  const owed = new Set<string>(); // of drivers, those of which the cluster is to be told yet
  const methods = serviceMethods(text, "csi.v1");

  function driverAt({ name, endpoint }: PluginIdentity) {
    const client = rpcClient<Methods>({ socket: endpoint, methods, nowMs: clock.nowMs });
    let known: ReadonlySet<string> | undefined;
    const call: CsiDriver["call"] = async (method, request, options) => await metered(name, method, () => client.call(method, request, options));
    return {
      name, endpoint, call, close: client.close,
      async can(capability: NodeServiceCapabilityRPCType, signal: AbortSignal) {
        known ??= new Set((await call("Node/NodeGetCapabilities", {}, { signal })).capabilities?.flatMap(({ rpc }) => rpc?.type ?? []));
        return known.has(capability);
      },
    };
  }

  async function tell(driver: CsiDriver, signal: AbortSignal): Promise<void> {
    const { node_id: nodeId = "", max_volumes_per_node: volumesMax = 0, accessible_topology: topology } = await driver.call("Node/NodeGetInfo", {}, { signal, timeoutMs: INFO_MS });
    await node.add({ name: driver.name, nodeId, volumesMax, topology: topology?.segments ?? {} }, signal);
    owed.delete(driver.name);
  }

  /** While the server is away a node that starts anew has its volumes all the same: the cluster is told later. */
  async function tellNowOrLater(driver: CsiDriver, signal: AbortSignal): Promise<void> {
    try {
      await tell(driver, signal);
    } catch (error) {
      if (signal.aborted || !(error instanceof StatusError) || error.code < 500) throw error;
      owed.add(driver.name);
      log.warn("CSI driver taken while the cluster cannot be told of it", { driver: driver.name, error });
    }
  }

  /** The cluster does not count on one that is not there, be it that it was once. */
  async function forget(name: string, signal: AbortSignal): Promise<void> {
    await node.remove(name, signal).catch((error: unknown) => { if (!signal.aborted) log.warn("CSINode may tell of a driver that is not there", { driver: name, error }); });
  }

  const handler: PluginHandler = {
    type: "CSIPlugin",
    validate({ name, endpoint, versions }) {
      const problem = versionProblem(versions);
      if (problem !== undefined) throw new Error(`validation failed for CSI Driver ${name} at endpoint ${endpoint}: kubernetes.io/csi: ValidatePlugin for CSI driver ${JSON.stringify(name)} failed. ${problem}`);
      if (endpoint === "") throw new Error(`CSI driver "${name}" gave no endpoint`);
    },
    async register(plugin, signal) {
      const driver = driverAt(plugin);
      try {
        await tellNowOrLater(driver, signal);
      } catch (error) {
        driver.close();
        if (!drivers.has(plugin.name)) await forget(plugin.name, signal); // else the one that it was to take the place of stays
        throw error;
      }
      drivers.get(plugin.name)?.close();
      drivers.set(plugin.name, driver);
      log.info("CSI driver registered", { driver: plugin.name, endpoint: plugin.endpoint });
      onRegistered();
    },
    async deregister({ name, endpoint }, signal) {
      const driver = drivers.get(name);
      if (driver?.endpoint !== endpoint) return;
      drivers.delete(name);
      owed.delete(name);
      driver.close();
      await node.remove(name, signal);
    },
  };

  function get(name: string): CsiDriver {
    const driver = drivers.get(name);
    if (!driver) throw new Error(`driver name ${name} not found in the list of registered CSI drivers`);
    return driver;
  }

  return { handler, get, names: () => [...drivers.keys()], isOwed: (name) => owed.has(name), refresh: async (name, signal) => await tell(get(name), signal) };
}

/** Why none of them can be spoken; undefined: one can. As upstream says it. */
export function versionProblem(versions: readonly string[]): string | undefined {
  if (versions.length === 0) return "Plugin returned an empty list for supported versions";
  const problem = highestProblem(versions);
  return problem && `None of the versions specified [${versions.map((version) => JSON.stringify(version)).join(" ")}] are supported. err=${problem}`;
}

/** Source: kubernetes v1.36 apimachinery/pkg/util/version HighestSupportedVersion */
function highestProblem(versions: readonly string[]): string | undefined {
  const parsed = versions.map((version) => ({ version, numbers: numbersOf(version) }));
  const usable = parsed.flatMap(({ numbers }) => (numbers !== undefined && numbers[0]! <= 1 ? [numbers] : []));
  const highest = usable.toSorted(byNumbers).at(-1);
  if (highest !== undefined) return highest[0] === 1 ? undefined : `highest supported version reported is ${highest.join(".")}, must be v1.x`;
  const unread = parsed.find(({ numbers }) => numbers === undefined)?.version;
  const why = unread === undefined ? "<nil>" : /^\s*v?\d/.test(unread) ? `illegal version string ${JSON.stringify(unread)}` : `could not parse ${JSON.stringify(unread)} as version`;
  return `could not find a highest supported version from versions ([${versions.join(" ")}]) reported: ${why}`;
}

/** Of two numbers and more, with whatever after them; undefined: it is no version. */
function numbersOf(version: string): readonly number[] | undefined {
  const [, text] = /^\s*v?((?:0|[1-9]\d*)(?:\.\d+)+)/.exec(version) ?? [];
  return text?.split(".").map(Number);
}

function byNumbers(a: readonly number[], b: readonly number[]): number {
  const differing = a.findIndex((number, i) => number !== (b[i] ?? 0));
  return differing < 0 ? a.length - b.length : a[differing]! - (b[differing] ?? 0);
}
