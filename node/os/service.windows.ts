/**
 * This process as a Windows service: says to the service manager that it runs, hears when it is to stop, and says when it has.
 *
 * The manager calls a service on threads of its own, where no JavaScript can run; that part is a little C (service.c.txt), and this one looks at what it noted.
 *
 * API: https://learn.microsoft.com/en-us/windows/win32/services/service-program-tasks
 */
import { cc, dlopen, type Pointer, ptr } from "bun:ffi";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Log } from "../../core/observe/log.ts";
import { type ServiceLife, serviceLife } from "./service-life.ts";
import source from "./service.c.txt" with { type: "text" };

export interface WindowsService extends ServiceLife {
  /** Call it at the very end: the manager may end the process at once. */
  ended(exitCode: number): void;
}

const LOOK_MS = 250;
const START_MS_MAX = 30_000;
/** ERROR_FAILED_SERVICE_CONTROLLER_CONNECT: nobody has started this process as a service. */
const NO_MANAGER = 1063;

/** Resolves once the manager knows that the service runs. Throws if this process was not started by it. `directory`: of ours, to keep the C in while it is compiled. */
export async function windowsService({ name, directory, clock, log }: { readonly name: string; readonly directory: string; readonly clock: Clock; readonly log: Log }): Promise<WindowsService> {
  const service = compile(directory);
  const address = addressesIn({ "advapi32.dll": ["StartServiceCtrlDispatcherW", "RegisterServiceCtrlHandlerExW", "SetServiceStatus"], "kernel32.dll": ["CreateThread", "GetLastError", "Sleep"] });
  const wide = Buffer.from(`${name}\0`, "utf16le");
  if (!service.service_start(...address, ptr(wide))) throw new Error("the thread of the Windows service cannot be started");
  const never = new AbortController().signal;
  for (const endMs = clock.uptimeMs() + START_MS_MAX; !service.service_running(); ) {
    const failed = service.service_failed();
    if (failed === NO_MANAGER) throw new Error("--windows-service is for the service manager: sc.exe start coracle, or start without it");
    if (failed !== 0 || clock.uptimeMs() > endMs) throw new Error(`the Windows service cannot be started: error ${failed}`);
    await clock.sleep(LOOK_MS / 5, never);
  }
  const life = serviceLife({
    asked: () => (service.service_stop_asked() ? "stop" : service.service_shutdown_asked() ? "shutdown" : undefined),
    waitFor: (ms) => setPreshutdownTimeout(wide, ms),
    stillEnding: () => service.service_still_ending(),
  }, { clock, log });
  return { ...life, ended: (exitCode) => service.service_ended(exitCode) };
}

const SC_MANAGER_CONNECT = 1, SERVICE_CHANGE_CONFIG = 2, SERVICE_CONFIG_PRESHUTDOWN_INFO = 7;

/** How long the manager waits for the service when the machine shuts down. `name`: in UTF-16, ending in a zero. Throws. */
function setPreshutdownTimeout(name: Uint8Array, ms: number): void {
  const { symbols: advapi } = dlopen("advapi32.dll", {
    OpenSCManagerW: { args: ["ptr", "ptr", "u32"], returns: "ptr" }, OpenServiceW: { args: ["ptr", "ptr", "u32"], returns: "ptr" },
    ChangeServiceConfig2W: { args: ["ptr", "u32", "ptr"], returns: "i32" }, CloseServiceHandle: { args: ["ptr"], returns: "i32" },
  });
  const manager = advapi.OpenSCManagerW(null, null, SC_MANAGER_CONNECT);
  const service = manager && advapi.OpenServiceW(manager, ptr(name), SERVICE_CHANGE_CONFIG);
  try {
    if (!service || advapi.ChangeServiceConfig2W(service, SERVICE_CONFIG_PRESHUTDOWN_INFO, ptr(new Uint32Array([ms]))) === 0) throw new Error("the service manager does not take how long the machine is to wait for this service when it shuts down");
  } finally {
    for (const handle of [service, manager]) if (handle) advapi.CloseServiceHandle(handle);
  }
}

function compile(directory: string) {
  mkdirSync(directory, { recursive: true });
  const path = join(directory, `service-${process.pid}.c`);
  writeFileSync(path, source);
  try {
    return cc({
      source: path,
      symbols: {
        service_start: { args: ["ptr", "ptr", "ptr", "ptr", "ptr", "ptr", "ptr"], returns: "int" }, service_running: { args: [], returns: "u32" }, service_failed: { args: [], returns: "u32" },
        service_stop_asked: { args: [], returns: "u32" }, service_shutdown_asked: { args: [], returns: "u32" }, service_still_ending: { args: [], returns: "void" }, service_ended: { args: ["u32"], returns: "void" },
      },
    }).symbols;
  } finally {
    rmSync(path, { force: true });
  }
}

type Six = readonly [Pointer, Pointer, Pointer, Pointer, Pointer, Pointer];

function addressesIn(libraries: Readonly<Record<string, readonly string[]>>): Six {
  const kernel = dlopen("kernel32.dll", { LoadLibraryW: { args: ["ptr"], returns: "ptr" }, GetProcAddress: { args: ["ptr", "ptr"], returns: "ptr" } }).symbols;
  return Object.entries(libraries).flatMap(([library, names]) => {
    const module = kernel.LoadLibraryW(ptr(Buffer.from(`${library}\0`, "utf16le")));
    return names.map((name) => {
      const found = module && kernel.GetProcAddress(module, ptr(Buffer.from(`${name}\0`)));
      if (!found) throw new Error(`${library} has no ${name}`);
      return found;
    });
  }) as unknown as Six;
}
