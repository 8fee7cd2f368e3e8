/**
 * /flagz and /statusz: with which settings a component runs, and since when. Text for people; JSON, YAML or CBOR for who asks for it by name.
 *
 * Source: kubernetes v1.36 apiserver/pkg/server/{flagz,statusz}
 */
import { type Clock, timestamp } from "../../lifecycle/clock.ts";
import { statusError } from "../meta/status-error.ts";
import { encodeJson } from "./json.ts";
import { cborCodec } from "./cbor/codec.ts";
import { MEDIA_TYPES, negotiateOutput } from "./negotiate.ts";
import { encodeYaml } from "./yaml.ts";

interface Options {
  /** Its name; that of kube-apiserver is apiserver. */
  readonly component: string;
  readonly flags: Readonly<Record<string, string>>;
  readonly version: { readonly major: string; readonly minor: string; readonly gitVersion: string; readonly goVersion: string };
  /** Where else to look; sorted. */
  readonly paths: readonly string[];
  /** They can be had in CBOR, too. */
  readonly cbor?: boolean;
  readonly clock: Clock;
}

export interface ZPage { readonly contentType: string; readonly body: string | Uint8Array; /** The Warning header of a version that is deprecated. */ readonly warning?: string | undefined }
/** Undefined for other paths. Throws a StatusError for what cannot be given as it is asked for. */
export type ZPages = (path: string, accept: string | undefined) => ZPage | undefined;

const WARNING = "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.";
const GROUP = "config.k8s.io";
const VERSIONS = ["v1beta1", "v1alpha1"];
const DEPRECATED = "v1alpha1";

export function zpages({ component, flags, version, paths, cbor = false, clock }: Options): ZPages {
  const startedMs = clock.nowMs();
  const startedUptimeMs = clock.uptimeMs();
  const binaryVersion = /^v?([^+]*)/.exec(version.gitVersion)![1]!, emulationVersion = `${version.major}.${version.minor}`;
  const sorted = Object.entries(flags).sort(([a], [b]) => (a < b ? -1 : 1));

  function statusText(upSeconds: number): string {
    const hours = Math.floor(upSeconds / 3600), minutes = Math.floor((upSeconds % 3600) / 60);
    const up = `${hours} hr ${String(minutes).padStart(2, "0")} min ${String(upSeconds % 60).padStart(2, "0")} sec`;
    return `\n${component} statusz\n${WARNING}\n\nStarted: ${unixDate(startedMs)}\nUp: ${up}\nGo version: ${version.goVersion}\nBinary version: ${binaryVersion}\nEmulation version: ${emulationVersion}\nPaths: ${paths.join(" ")}\n`;
  }

  function page(kind: string, accept: string, text: string, content: object): ZPage {
    if (accept === "" || accept.split(",").some((one) => /^\s*(\*\/\*|text\/(\*|plain))\s*(;|$)/.test(one))) return { contentType: "text/plain; charset=utf-8", body: text };
    if (!accept.includes(`as=${kind}`)) throw notAcceptable();
    const output = negotiateOutput({ accept, cbor, convertible: (target, encoding) => encoding !== "protobuf" && target.group === GROUP && target.kind === kind && VERSIONS.includes(target.version) });
    if (!output.convert) throw notAcceptable();
    const document = { kind, apiVersion: `${GROUP}/${output.convert.version}`, metadata: { name: component }, ...content };
    const parameters = `;g=${GROUP};v=${output.convert.version};as=${kind}`;
    const warning = output.convert.version === DEPRECATED ? `299 - "This version of the ${kind.toLowerCase()} endpoint is deprecated. Please use a newer version."` : undefined;
    if (output.encoding === "cbor") return { contentType: `${MEDIA_TYPES.cbor}${parameters}`, body: cborCodec.encode(document), warning };
    return output.encoding === "yaml" ? { contentType: `application/yaml${parameters}`, body: encodeYaml(document), warning } : { contentType: `application/json${parameters}`, body: encodeJson(document), warning };
  }

  return (path, given) => {
    const accept = given?.trim() ?? "";
    if (path === "/flagz") return page("Flagz", accept, `\n${component} flagz\n${WARNING}\n${sorted.map(([name, value]) => `${name}=${value}\n`).join("")}`, { flags });
    if (path !== "/statusz") return undefined;
    const upSeconds = Math.floor((clock.uptimeMs() - startedUptimeMs) / 1000);
    return page("Statusz", accept, statusText(upSeconds), { startTime: timestamp(startedMs), uptimeSeconds: upSeconds, goVersion: version.goVersion, binaryVersion, emulationVersion, paths });
  };
}

/** Go's time.UnixDate: Fri Nov 27 21:52:33 UTC 2026; a day of one digit has a space before it. */
function unixDate(ms: number): string {
  const [weekday = "", day = "", month, year, time] = new Date(ms).toUTCString().split(" ");
  return `${weekday.slice(0, -1)} ${month} ${day.replace(/^0/, " ")} ${time} UTC ${year}`;
}

function notAcceptable(): Error {
  return statusError({ code: 406, reason: "NotAcceptable", message: "only the following media types are accepted: application/json, application/yaml, text/plain" });
}
