/**
 * Plugins that register themselves: each puts a socket into plugins_registry, is asked there what it is, and is told whether it was taken.
 *
 *   plugins_registry/<any>.sock ──GetInfo──▶ type, name, endpoint, versions ──▶ the handler of that type ──NotifyRegistrationStatus──▶ plugin
 *
 * A socket that is made anew is registered anew; one that goes takes its plugin with it, unless another one of the same name is there: an update that failed leaves the
 * plugin that it was to replace. What failed is tried again later and later.
 *
 * Source: kubernetes v1.36 pkg/kubelet/pluginmanager
 */
import { type FSWatcher, watch as watchDirectory } from "node:fs";
import { mkdir, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { backoffMs } from "../../../core/lifecycle/backoff.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Runnable } from "../../../core/lifecycle/run-all.ts";
import type { Log } from "../../../core/observe/log.ts";
import type { Metrics } from "../../../core/observe/metrics.ts";
import { serviceMethods } from "../../cri/facts.ts";
import { rpcClient } from "../../cri/rpc-client.ts";
import type { Methods } from "./gen/registration.v1.ts";
import text from "./registration-facts.txt" with { type: "text" };

export interface PluginIdentity {
  readonly name: string;
  /** The socket it is served at. */
  readonly endpoint: string;
  readonly versions: readonly string[];
}

export interface PluginHandler {
  readonly type: string;
  /** Throws why the plugin cannot be taken. */
  validate(plugin: PluginIdentity): void;
  /** Throws why it could not be taken: it is asked again later. */
  register(plugin: PluginIdentity, signal: AbortSignal): Promise<void>;
  /** Its socket is gone. */
  deregister(plugin: PluginIdentity, signal: AbortSignal): Promise<void>;
}

interface Deps {
  readonly directory: string;
  readonly handlers: readonly PluginHandler[];
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  /** The kernel's, unless given. */
  readonly watch?: ((directory: string, changed: () => void) => FSWatcher) | undefined;
}

/** `nth`: of all registrations. Of several sockets of one plugin, while it is updated, the one that registered last is served. */
interface Registered { readonly handler: PluginHandler; readonly plugin: PluginIdentity; readonly nth: number }

interface Seen {
  /** Another one is another plugin, or the same one started again. */
  readonly identity: string;
  registered: Registered | undefined;
  /** What was registered at this socket before it was made anew, and is served until that has come of it. */
  before: Registered | undefined;
  /** It is being asked: one that does not answer keeps no other waiting. */
  underWay: boolean;
  failures: number;
  retryAtMs: number;
}

/** Where the kernel does not tell of changes they are found this late; what failed is tried at these moments. */
const SCAN_MS = 5_000;
const CALL_MS = 10_000;
const RETRY = { minMs: 500, maxMs: 122_000 };
const DEPTH_MAX = 3;

export function pluginWatcher({ directory, handlers, clock, log, metrics, watch = watchDirectory }: Deps): Runnable {
  const seen = new Map<string, Seen>(); // by socket
  metrics.gaugeFrom("plugin_manager_total_plugins", "[ALPHA] Number of plugins in Plugin Manager", () => [...seen].flatMap(([socket_path, { registered }]) => [
    [{ socket_path, state: "desired_state_of_world" }, 1] as const, ...(registered ? [[{ socket_path, state: "actual_state_of_world" }, 1] as const] : []),
  ]));
  const underWay = new Set<Promise<void>>();
  let registrations = 0;

  async function scan(signal: AbortSignal): Promise<void> {
    const sockets = new Map((await socketsIn(directory, DEPTH_MAX)).map(({ path, identity }) => [path, identity]));
    for (const [path, one] of seen) {
      if (sockets.get(path) === one.identity) continue;
      seen.delete(path);
      const last = one.registered ?? one.before;
      if (!last) continue;
      const { handler, plugin, nth } = last;
      const anew = sockets.get(path);
      if (anew !== undefined) {
        seen.set(path, { identity: anew, registered: undefined, before: last, underWay: false, failures: 0, retryAtMs: 0 });
        continue;
      }
      const other = newestOf(handler, plugin.name);
      if (other) {
        if (nth > other.registered!.nth) await fallBack(other, signal);
        continue;
      }
      log.info("plugin is gone", { type: handler.type, plugin: plugin.name, socket: path });
      await handler.deregister(plugin, signal).catch((error: unknown) => log.warn("plugin not taken off", { plugin: plugin.name, error }));
    }
    for (const [path, identity] of sockets) {
      const one = seen.get(path) ?? { identity, registered: undefined, before: undefined, underWay: false, failures: 0, retryAtMs: 0 };
      seen.set(path, one);
      if (one.registered || one.underWay || clock.uptimeMs() < one.retryAtMs) continue;
      const asked = ask(path, one, signal).finally(() => underWay.delete(asked));
      underWay.add(asked);
    }
  }

  /** Never throws. */
  async function ask(path: string, one: Seen, signal: AbortSignal): Promise<void> {
    one.underWay = true;
    try {
      const registered = await register(path, signal);
      if (seen.get(path) !== one) return await takeBack(registered.handler, registered.plugin, signal); // it has gone meanwhile
      one.registered = registered;
      one.failures = 0;
      await leave(one, signal);
    } catch (error) {
      if (signal.aborted) return;
      one.retryAtMs = clock.uptimeMs() + backoffMs(++one.failures, RETRY);
      log.warn("plugin not registered, next try later", { socket: path, error });
    } finally {
      one.underWay = false;
    }
  }

  /** Another plugin has come in the place of the one before. */
  async function leave(one: Seen, signal: AbortSignal): Promise<void> {
    const { before, registered } = one;
    one.before = undefined;
    if (!before || (before.plugin.name === registered?.plugin.name && before.handler === registered.handler) || newestOf(before.handler, before.plugin.name)) return;
    await before.handler.deregister(before.plugin, signal).catch((error: unknown) => log.warn("plugin not taken off", { plugin: before.plugin.name, error }));
  }

  function newestOf(handler: PluginHandler, name: string): Seen | undefined {
    return [...seen.values()].filter(({ registered }) => registered?.plugin.name === name && registered.handler === handler).sort((a, b) => b.registered!.nth - a.registered!.nth)[0];
  }

  /** One that was taken, and could not be told so, does not count on it. */
  async function takeBack(handler: PluginHandler, plugin: PluginIdentity, signal: AbortSignal): Promise<void> {
    const other = newestOf(handler, plugin.name);
    if (other) return await fallBack(other, signal);
    await handler.deregister(plugin, signal).catch((error: unknown) => log.warn("plugin not taken off", { plugin: plugin.name, error }));
  }

  /** The newer one is gone: the older one, which has been told of its registration, is served again. */
  async function fallBack(one: Seen, signal: AbortSignal): Promise<void> {
    const { handler, plugin } = one.registered!;
    log.info("plugin is gone, the one before it is there", { type: handler.type, plugin: plugin.name, endpoint: plugin.endpoint });
    try {
      await handler.register(plugin, signal);
    } catch (error) {
      one.registered = undefined; // asked anew
      log.warn("plugin that was there before not registered again", { plugin: plugin.name, error });
    }
  }

  async function register(socket: string, signal: AbortSignal): Promise<Registered> {
    const client = rpcClient<Methods>({ socket, methods: serviceMethods(text, "pluginregistration"), nowMs: clock.nowMs });
    const call = { signal, timeoutMs: CALL_MS };
    try {
      const { type = "", name = "", endpoint = "", supported_versions: versions = [] } = await client.call("Registration/GetInfo", {}, call);
      const plugin: PluginIdentity = { name, endpoint: endpoint || socket, versions };
      const refuse = async (problem: string, cause?: unknown): Promise<never> => {
        const message = `RegisterPlugin error -- ${problem}`;
        await client.call(
          "Registration/NotifyRegistrationStatus", { plugin_registered: false, error: message }, call,
        ).catch((error: unknown) => log.debug("plugin not told that it is refused", { socket, error })); // some end at once when they hear it
        throw new Error(message, { cause });
      };
      const handler = handlers.find((one) => one.type === type);
      if (!handler) return await refuse(`no handler registered for plugin type: ${type} at socket ${socket}`);
      try {
        handler.validate(plugin);
      } catch (cause) {
        return await refuse(`plugin validation failed with err: ${(cause as Error).message}`, cause);
      }
      try {
        await handler.register(plugin, signal);
      } catch (cause) {
        return await refuse(`plugin registration failed with err: ${(cause as Error).message}`, cause);
      }
      await client.call("Registration/NotifyRegistrationStatus", { plugin_registered: true }, call).catch(async (cause: Error) => {
        await takeBack(handler, plugin, signal);
        throw new Error(`RegisterPlugin error -- failed to send registration status at socket ${socket}, err: ${cause.message}`, { cause });
      });
      log.info("plugin registered", { type, plugin: name, endpoint: plugin.endpoint });
      return { handler, plugin, nth: ++registrations };
    } finally {
      client.close();
    }
  }

  /** Undefined: all that the machine may watch is watched by others, which is no reason to be no node. */
  function watched(changed: () => void): FSWatcher | undefined {
    const untold = (error: unknown): void => log.warn("plugins are found by looking only", { directory, error });
    try {
      return watch(directory, changed).on("error", untold);
    } catch (error) {
      untold(error);
      return undefined;
    }
  }

  return {
    name: "plugin-watcher",
    async run(signal, ready) {
      await mkdir(directory, { recursive: true, mode: 0o750 });
      let woken = new AbortController();
      const watcher = watched(() => woken.abort());
      try {
        ready();
        while (!signal.aborted) {
          woken = new AbortController();
          await scan(signal).catch((error: unknown) => log.warn("plugins not looked for, next try soon", { directory, error }));
          await clock.sleep(SCAN_MS, AbortSignal.any([signal, woken.signal]));
        }
      } finally {
        watcher?.close();
        await Promise.all(underWay);
      }
    },
  };
}

/** Or what leads to one. What goes while we look is not there. */
async function socketsIn(directory: string, depth: number): Promise<{ readonly path: string; readonly identity: string }[]> {
  const entries = ((await unlessGone(readdir(directory, { withFileTypes: true }))) ?? []).filter(({ name }) => !name.startsWith("."));
  const found = await Promise.all(entries.map(async (entry) => {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return depth > 0 ? await socketsIn(path, depth - 1) : [];
    const facts = entry.isSocket() || entry.isSymbolicLink() ? await unlessGone(stat(path)) : undefined;
    return facts?.isSocket() ? [{ path, identity: `${facts.ino} ${facts.ctimeMs}` }] : [];
  }));
  return found.flat();
}

async function unlessGone<T>(found: Promise<T>): Promise<T | undefined> {
  try {
    return await found;
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "ELOOP"].includes((error as NodeJS.ErrnoException).code ?? "")) return undefined;
    throw error;
  }
}
