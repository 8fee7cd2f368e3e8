/**
 * Where the controllers and the scheduler each tell how they are, as kube-controller-manager and kube-scheduler do: HTTPS on a port of their own with the
 * API server's certificate, and for whoever the API server lets read the path.
 *
 *   127.0.0.1:10257   /healthz (the controllers that run)           /metrics /metrics/slis /configz /flagz /statusz
 *   127.0.0.1:10259   /healthz /livez /readyz                       the same and /metrics/resources
 *
 * Source: kubernetes v1.36 cmd/kube-controller-manager/app/controllermanager.go, cmd/kube-scheduler/app/server.go
 */
import type { RunningControllers } from "../../core/controllers/all.ts";
import { zpages } from "../../core/api/codec/zpages.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import { aborted } from "../../core/lifecycle/aborted.ts";
import type { Runnable } from "../../core/lifecycle/run-all.ts";
import { httpsServer, type HttpsServer } from "../../core/net/http-server.ts";
import type { TlsMaterial } from "../../core/net/tls.ts";
import { isOfControllers, isOfScheduler } from "../../core/observe/families.ts";
import type { Log } from "../../core/observe/log.ts";
import { type Metrics, metricsRegistry } from "../../core/observe/metrics.ts";
import { raw } from "../../core/server/answer.ts";
import type { ColumnTexts } from "../../core/server/column-texts.ts";
import { componentHandler } from "../../core/server/component.ts";
import { type HealthCheck, healthPathsOf, shown, zpagesPath } from "../../core/server/health.ts";
import { httpFront } from "../../core/server/http.ts";
import type { PathHandler, ServerDeps } from "../../core/server/scope.ts";
import type { Listening } from "../component-listening.ts";
import { versionInfo } from "../version.ts";

/** What the loops of this process tell of themselves. */
export class LoopsState {
  controllers: RunningControllers = { names: [], workers: new Map() };
  /** Whether the scheduler, where it runs, knows the cluster. */
  scheduler: "elsewhere" | "starting" | "synced" = "elsewhere";
  /** Of requests they make, which are not the API server's own. */
  readonly controllersRequests: Metrics = metricsRegistry();
  readonly schedulerRequests: Metrics = metricsRegistry();
}

interface Deps extends Pick<ServerDeps, "authenticator" | "authorizer"> {
  /** /debug; of those that may be profiled. */
  readonly debug: PathHandler;
  readonly state: LoopsState;
  /** Undefined: this server has none. */
  readonly controllers: { readonly listening: Listening; readonly given: readonly string[]; readonly configz: () => object } | undefined;
  readonly scheduler: { readonly listening: Listening; readonly given: readonly string[]; readonly configz: () => object; readonly resources: PathHandler } | undefined;
  /** A Lease says who works. */
  readonly isShared: boolean;
  readonly isStopping: () => boolean;
  readonly tls: () => TlsMaterial;
  readonly metrics: Metrics;
  readonly columnTexts: ColumnTexts;
  readonly cbor: boolean;
  readonly clock: Clock;
  readonly log: Log;
}

export interface Components { readonly parts: readonly Runnable[]; reloadCertificates(): void }

type Check = Pick<HealthCheck, "name" | "check">;
const ok = (name: string): Check => ({ name, check: () => undefined });

export function components(deps: Deps): Components {
  const { state, controllers, scheduler, metrics } = deps;
  const leading = deps.isShared ? [ok("leaderElection")] : []; // who does not hold the Lease waits for it, and is well
  const listeners = [
    ...(controllers === undefined ? [] : [listener(deps, {
      name: "kube-controller-manager", ...controllers, paths: ["/configz", "/flagz", "/healthz", "/metrics"], configName: "kubecontrollermanager.config.k8s.io",
      handlers: [
        withoutSingle(healthPathsOf((endpoint) => (endpoint === "healthz" ? [...leading, ...state.controllers.names.map(ok)] : undefined), metricsRegistry())),
        metricsOf(metrics, isOfControllers, state.controllersRequests),
      ],
    })]),
    ...(scheduler === undefined ? [] : [listener(deps, {
      name: "kube-scheduler", ...scheduler, paths: ["/configz", "/flagz", "/healthz", "/livez", "/metrics", "/metrics/resources", "/readyz"], configName: "componentconfig",
      handlers: [healthPathsOf((endpoint) => schedulerChecks(deps, leading, endpoint), metricsRegistry()), metricsOf(metrics, isOfScheduler, state.schedulerRequests, { canReset: true }), scheduler.resources],
    })]),
  ];
  return { parts: listeners.map(({ part }) => part), reloadCertificates: () => { for (const one of listeners) one.reloadCertificates(); } };
}

function schedulerChecks({ state, isStopping }: Pick<Deps, "state" | "isStopping">, leading: readonly Check[], endpoint: "healthz" | "livez" | "readyz"): readonly Check[] {
  if (endpoint === "livez") return [ok("ping")];
  if (endpoint === "healthz") return leading.length > 0 ? leading : [ok("ping")];
  return [
    ...leading, { name: "shutdown", check: () => (isStopping() ? "process is shutting down" : undefined) },
    { name: "sched-handler-sync", check: () => (state.scheduler === "starting" ? "handlers are not fully synchronized" : undefined) },
  ];
}

/** Upstream's controllers cannot be asked about one by one. */
function withoutSingle(health: PathHandler): PathHandler { return (request, user) => (request.path.startsWith("/healthz/") ? undefined : health(request, user)); }

/** What is counted for all of the process, and the component's own requests after it. Upstream's controllers count on whoever asks. */
function metricsOf(metrics: Metrics, isShown: (family: string) => boolean, requests: Metrics, { canReset = false }: { readonly canReset?: boolean } = {}): PathHandler {
  const isRequest = (family: string): boolean => family.startsWith("rest_client_");
  const all = { families: () => [...metrics.families(isShown), ...requests.families(isRequest)], ...(canReset && { reset: () => (metrics.reset(isShown), requests.reset(isRequest)) }) };
  return (request) => (request.path === "/metrics" ? shown(all, request) : undefined);
}

interface Component {
  readonly name: "kube-controller-manager" | "kube-scheduler";
  readonly listening: Listening;
  readonly given: readonly string[];
  readonly configz: () => object;
  readonly configName: string;
  readonly paths: readonly string[];
  readonly handlers: readonly PathHandler[];
}

interface Listener { readonly part: Runnable; reloadCertificates(): void }

/** A port that somebody else has is asked for again after this long: nothing here depends on it. */
const RETRY_MS = 5_000;

function listener({ authenticator, authorizer, debug, tls, columnTexts, cbor, clock, log: parent }: Deps, { name, listening: { address, port }, given, configz, configName, paths, handlers }: Component): Listener {
  const log = parent.with({ part: name });
  const flags = { "bind-address": address, "secure-port": String(port), ...flagsOf(given) };
  const handler = componentHandler({
    authenticator, authorizer, log,
    paths: [
      ...handlers, ...(isProfiled(given) ? [debug] : []),
      ({ path }) => (path === "/configz" ? raw(JSON.stringify({ [configName]: configz() }), "application/json", 200, { "x-content-type-options": "nosniff" }) : undefined),
      zpagesPath(zpages({ component: name, flags, version: versionInfo(), paths, cbor, clock })),
    ],
  });
  let open: HttpsServer | undefined;
  const front = httpFront({ handler, clock, log, stopping: () => open!.stopping, columnTexts });

  async function run(signal: AbortSignal, ready: () => void): Promise<void> {
    ready();
    for (let isTold = false; !signal.aborted && port !== 0; isTold = true) {
      open = httpsServer({ host: address, port, portFlag: `--${name}-arg secure-port=`, tls, handler: front.request, upgrade: front.upgrade, log, clock });
      try {
        await open.run(signal, () => undefined);
      } catch (error) {
        if (!isTold) log.warn("nothing is told at a component's own port, tried again until it is", { address, port, error });
        await clock.sleep(RETRY_MS, signal);
      }
    }
    await aborted(signal);
  }

  return { part: { name: `${name}'s port`, run }, reloadCertificates: () => open?.reloadCertificates() };
}

/** As upstream has it, unless --profiling=false. */
export function isProfiled(given: readonly string[]): boolean { return flagsOf(given)["profiling"] !== "false"; }

/** name=value, as they were given. */
function flagsOf(given: readonly string[]): Record<string, string> {
  return Object.fromEntries(given.map((text) => text.replace(/^--/, "")).map((text) => [text.split("=")[0]!, text.includes("=") ? text.slice(text.indexOf("=") + 1) : "true"]));
}
