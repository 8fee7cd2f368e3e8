/**
 * /flagz and /statusz: with which settings a component runs, and since when. Text for people; JSON, YAML or CBOR for who asks for it by name.
 *
 * Source: kubernetes v1.36 apiserver/pkg/server/{flagz,statusz}
 */
import { type Clock, timestamp } from "../../lifecycle/clock.ts";
import { notAcceptable } from "../meta/status-error.ts";
import { cborCodec } from "./cbor/codec.ts";
import { encodeJson } from "./json.ts";
import { MEDIA_TYPES, matches, type OutputRequest, parseAccept, targetOf, wantsPretty } from "./negotiate.ts";
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

export interface ZPage { readonly contentType: string; readonly body: string | Uint8Array; /** A version that is deprecated brings a warning. */ readonly headers: Readonly<Record<string, string>> }
/** Undefined for other paths. Throws a StatusError for what cannot be given as it is asked for. */
export type ZPages = (path: string, asked: Pick<OutputRequest, "accept" | "userAgent" | "pretty">) => ZPage | undefined;

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

  function page(kind: string, asked: Parameters<ZPages>[1], text: string, content: object): ZPage {
    const wanted = negotiate(kind, asked.accept, cbor);
    if (wanted === "text") return { contentType: "text/plain; charset=utf-8", body: text, headers: {} };
    const { form, version: wantedVersion, pretty } = wanted;
    const document = { kind, apiVersion: `${GROUP}/${wantedVersion}`, metadata: { name: component }, ...content };
    const headers: ZPage["headers"] = wantedVersion === DEPRECATED ? { warning: `299 - "This version of the ${kind.toLowerCase()} endpoint is deprecated. Please use a newer version."` } : {};
    const contentType = `${MEDIA_TYPES[form]};g=${GROUP};v=${wantedVersion};as=${kind}`;
    switch (form) {
      case "cbor": return { contentType, body: cborCodec.encode(document), headers };
      case "yaml": return { contentType, body: encodeYaml(document), headers };
      case "json": return { contentType, body: encodeJson(document, { pretty: pretty || wantsPretty(asked) }), headers };
    }
  }

  return (path, asked) => {
    if (path === "/flagz") return page("Flagz", asked, `\n${component} flagz\n${WARNING}\n${sorted.map(([name, value]) => `${name}=${value}\n`).join("")}`, { flags });
    if (path !== "/statusz") return undefined;
    const upSeconds = Math.floor((clock.uptimeMs() - startedUptimeMs) / 1000);
    return page("Statusz", asked, statusText(upSeconds), { startTime: timestamp(startedMs), uptimeSeconds: upSeconds, goVersion: version.goVersion, binaryVersion, emulationVersion, paths });
  };
}

type Form = "json" | "yaml" | "cbor";

/** Clauses as for objects, but that each must name a page and its version, and text is one more form, which has none. Source: kubernetes v1.36 apiserver/pkg/server/flagz/negotiate */
function negotiate(kind: string, accept: string | undefined, cbor: boolean): "text" | { readonly form: Form; readonly version: string; readonly pretty: boolean } {
  if (accept === undefined || accept.trim() === "") return "text";
  const forms = { json: MEDIA_TYPES.json, yaml: MEDIA_TYPES.yaml, text: "text/plain", ...(cbor && { cbor: MEDIA_TYPES.cbor }) };
  for (const clause of parseAccept(accept)) {
    const { params } = clause, target = targetOf(params);
    if (["stream", "sv"].some((name) => (params.get(name) ?? "") !== "")) continue;
    for (const [form, mediaType] of Object.entries(forms)) {
      if (!matches(clause, mediaType)) continue;
      if (form === "text" && target === undefined) return "text";
      if (form !== "text" && target?.group === GROUP && target.kind === kind && VERSIONS.includes(target.version)) return { form: form as Form, version: target.version, pretty: params.get("pretty") === "1" };
    }
  }
  throw notAcceptable(Object.values(forms));
}

/** Go's time.UnixDate: Fri Nov 27 21:52:33 UTC 2026; a day of one digit has a space before it. */
function unixDate(ms: number): string {
  const [weekday = "", day = "", month, year, time] = new Date(ms).toUTCString().split(" ");
  return `${weekday.slice(0, -1)} ${month} ${day.replace(/^0/, " ")} ${time} UTC ${year}`;
}
