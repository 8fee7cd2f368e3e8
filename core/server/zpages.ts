/**
 * /flagz and /statusz: with which settings the server runs, and since when. Text for people; JSON or YAML for who asks for it by name.
 *
 * Source: kubernetes v1.36 apiserver/pkg/server/{flagz,statusz}
 */
import { encodeJson } from "../api/codec/json.ts";
import { negotiateOutput } from "../api/codec/negotiate.ts";
import { encodeYaml } from "../api/codec/yaml.ts";
import { statusError } from "../api/meta/status-error.ts";
import { type Clock, timestamp } from "../lifecycle/clock.ts";
import { type Answer, raw } from "./answer.ts";
import type { PathHandler } from "./handler.ts";
import type { VersionInfo } from "./health.ts";
import type { ServerRequest } from "./request.ts";

interface Deps {
  readonly flags: Readonly<Record<string, string>>;
  readonly version: VersionInfo;
  readonly clock: Clock;
}

const COMPONENT = "kube-apiserver";
const WARNING = "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.";
const GROUP = "config.k8s.io";
const VERSIONS = ["v1beta1", "v1alpha1"];
/** Where else to look. */
const PATHS = ["/healthz", "/livez", "/metrics", "/readyz", "/statusz", "/version"];

export function zpages({ flags, version, clock }: Deps): PathHandler {
  const startedMs = clock.nowMs();
  const startedUptimeMs = clock.uptimeMs();
  const sorted = Object.entries(flags).sort(([a], [b]) => (a < b ? -1 : 1));

  function statusText(upSeconds: number): string {
    const hours = Math.floor(upSeconds / 3600), minutes = Math.floor((upSeconds % 3600) / 60);
    const up = `${hours} hr ${String(minutes).padStart(2, "0")} min ${String(upSeconds % 60).padStart(2, "0")} sec`;
    return `\n${COMPONENT} statusz\n${WARNING}\n\nStarted: ${new Date(startedMs).toUTCString()}\nUp: ${up}\nGo version: ${version.goVersion}\nBinary version: ${version.major}.${version.minor}\nEmulation version: ${version.major}.${version.minor}\nPaths: ${PATHS.join(" ")}\n`;
  }

  return (request) => {
    const { path } = request;
    if (path === "/flagz") return answer(request, "Flagz", `\n${COMPONENT} flagz\n${WARNING}\n${sorted.map(([name, value]) => `${name}=${value}\n`).join("")}`, { flags });
    if (path !== "/statusz") return undefined;
    const upSeconds = Math.floor((clock.uptimeMs() - startedUptimeMs) / 1000);
    const binaryVersion = `${version.major}.${version.minor}`;
    return answer(request, "Statusz", statusText(upSeconds), { startTime: timestamp(startedMs), uptimeSeconds: upSeconds, goVersion: version.goVersion, binaryVersion, emulationVersion: binaryVersion, paths: PATHS });
  };
}

function answer(request: ServerRequest, kind: string, text: string, content: object): Answer {
  const accept = request.header("accept")?.trim() ?? "";
  if (accept === "" || accept.split(",").some((one) => /^\s*(\*\/\*|text\/(\*|plain))\s*(;|$)/.test(one))) return raw(text, "text/plain; charset=utf-8");
  if (!accept.includes(`as=${kind}`)) throw notAcceptable();
  const output = negotiateOutput({ accept, convertible: (target, encoding) => encoding !== "protobuf" && target.group === GROUP && target.kind === kind && VERSIONS.includes(target.version) });
  if (!output.convert) throw notAcceptable();
  const document = { kind, apiVersion: `${GROUP}/${output.convert.version}`, metadata: { name: COMPONENT }, ...content };
  return output.encoding === "yaml" ? raw(encodeYaml(document), "application/yaml") : raw(encodeJson(document), "application/json");
}

function notAcceptable(): Error {
  return statusError({ code: 406, reason: "NotAcceptable", message: "only the following media types are accepted: application/json, application/yaml, text/plain", details: {} });
}
