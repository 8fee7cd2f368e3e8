/**
 * What an agent does around its work on Windows: it keeps its directory to administrators, and with --windows-service it is a service of the service manager
 * (installers/windows/install.ps1 registers it), which has no console: it logs to <data-dir>\agent\coracle.log.
 */
import { join } from "node:path";
import { systemClock } from "../core/lifecycle/clock.ts";
import type { VerboseLog } from "../core/observe/log.ts";
import type { ShutdownNotices } from "../node/kubelet/shutdown/shutdown.ts";
import { restrictToAdministrators } from "../node/os/acl.windows.ts";
import { windowsService } from "../node/os/service.windows.ts";
import type { Settings } from "./config/flags.ts";
import { fileLog } from "./file-log.ts";
import { paths } from "./paths.ts";
import { stderrLog } from "./stderr-log.ts";
import { type StopSignal, stopSignal } from "./stop-signal.ts";

/** Under which the service manager knows us. */
const SERVICE_NAME = "coracle";

export async function agentOnWindows({ dataDir, logLevel, windowsService: asService }: Settings, run: (log: VerboseLog, stop: StopSignal, notices?: ShutdownNotices) => Promise<number>): Promise<number> {
  restrictToAdministrators(dataDir);
  if (!asService) return await run(stderrLog(logLevel), stopSignal(process));
  const directory = paths(dataDir).agent;
  const log = fileLog(join(directory, "coracle.log"), logLevel);
  const service = await windowsService({ name: SERVICE_NAME, directory, clock: systemClock, log });
  let exitCode = 1;
  try {
    exitCode = await run(log, { signal: service.signal, reason: () => "the service manager" }, service.notices);
  } catch (error) {
    log.error("coracle agent failed", { error });
  } finally {
    service.ended(exitCode);
  }
  return exitCode;
}
