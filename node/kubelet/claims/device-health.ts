/**
 * How the devices of drivers are, as those tell that watch them. What a driver has not said lately is not known.
 *
 *   kubelet ──NodeWatchResources──▶ driver    a stream of all its devices, each time one changes
 *
 * Source: kubernetes v1.36 pkg/kubelet/cm/dra/healthinfo.go, staging/src/k8s.io/kubelet/pkg/apis/dra-health/v1alpha1
 */
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Log } from "../../../core/observe/log.ts";
import { serviceMethods } from "../../cri/facts.ts";
import { rpcClient, RpcError } from "../../cri/rpc-client.ts";
import text from "../plugins/dra-health-facts.txt" with { type: "text" };
import type { DeviceHealth, Methods } from "../plugins/gen/dra-health.v1alpha1.ts";

export interface Health { readonly health: "Healthy" | "Unhealthy" | "Unknown"; readonly message?: string | undefined }

export interface DeviceHealths {
  of(driver: string, pool: string, device: string): Health;
  /** Until `signal` aborts; a driver that watches nothing is left alone. */
  follow(driver: string, socket: string, signal: AbortSignal): Promise<void>;
}

interface Deps { readonly clock: Clock; readonly log: Log; readonly onChange: () => void }
interface Known extends Health { readonly goodUntilMs: number }

const TIMEOUT_SECONDS = 30;
const RETRY_MS = 5_000;
const MESSAGE_BYTES_MAX = 1024;
const UNKNOWN: Health = { health: "Unknown" };
const WORDS = { UNKNOWN: "Unknown", HEALTHY: "Healthy", UNHEALTHY: "Unhealthy" } as const;

export function deviceHealths({ clock, log, onChange }: Deps): DeviceHealths {
  const known = new Map<string, ReadonlyMap<string, Known>>(); // by driver, by pool and device

  function of(driver: string, pool: string, device: string): Health {
    const found = known.get(driver)?.get(`${pool}/${device}`);
    if (!found || clock.uptimeMs() > found.goodUntilMs) return UNKNOWN;
    const { health, message } = found;
    return { health, ...(message ? { message } : {}) };
  }

  /** Devices that are not told of keep what was said, as long as it is good. */
  function take(driver: string, devices: readonly DeviceHealth[]): void {
    const before = known.get(driver);
    const told = new Map(devices.map(({ device, health = "UNKNOWN", health_check_timeout_seconds: seconds = 0, message = "" }): [string, Known] => [
      `${device?.pool_name ?? ""}/${device?.device_name ?? ""}`,
      { health: WORDS[health], message: shortened(message), goodUntilMs: clock.uptimeMs() + (seconds > 0 ? seconds : TIMEOUT_SECONDS) * 1000 },
    ]));
    known.set(driver, new Map([...(before ?? []), ...told]));
    if ([...told].some(([key, { health, message }]) => before?.get(key)?.health !== health || before.get(key)?.message !== message)) onChange();
  }

  return {
    of,
    async follow(driver, socket, signal) {
      const client = rpcClient<Methods>({ socket, methods: serviceMethods(text, "v1alpha1"), nowMs: clock.nowMs });
      while (!signal.aborted) {
        try {
          for await (const { devices = [] } of client.stream("DRAResourceHealth/NodeWatchResources", {}, signal)) take(driver, devices);
        } catch (error) {
          if (error instanceof RpcError && error.code === "Unimplemented") break;
          if (!signal.aborted) log.debug("the driver does not tell how its devices are, next try soon", { driver, error });
        }
        if (known.delete(driver)) onChange(); // nobody watches them now
        await clock.sleep(RETRY_MS, signal);
      }
      client.close();
    },
  };
}

function shortened(message: string): string {
  if (Buffer.byteLength(message) <= MESSAGE_BYTES_MAX) return message;
  let start = message.slice(0, MESSAGE_BYTES_MAX - 3);
  while (Buffer.byteLength(start) > MESSAGE_BYTES_MAX - 3) start = start.slice(0, -1);
  return `${start}...`;
}
