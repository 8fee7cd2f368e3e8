/**
 * Which encoding a client wants and which it sent.
 *
 *   negotiateOutput({ accept: "application/json;as=Table;g=meta.k8s.io;v=v1,application/json", … })
 *     → { encoding: "json", convert: { group: "meta.k8s.io", version: "v1", kind: "Table" }, … }
 *
 * Clauses are tried in order of their q, what is named before what any may stand for, then in the order given; one whose parameters we cannot honour is passed over. No clause left is a 406
 * that lists what there is. The order of the media types offered is upstream's: the first is the answer to a missing Accept header.
 *
 * Source: kubernetes v1.36 apiserver/pkg/endpoints/handlers/negotiation/negotiate.go, apiserver/pkg/endpoints/handlers/rest.go
 */
import type { GroupVersionKind } from "../meta/gvk.ts";
import { withoutSpaces } from "../meta/quantity.ts";
import { notAcceptable, routerNotAcceptable, unsupportedMediaType } from "../meta/status-error.ts";

export type Encoding = "json" | "yaml" | "protobuf" | "cbor";

export const MEDIA_TYPES: Readonly<Record<Encoding, string>> = {
  json: "application/json", yaml: "application/yaml", protobuf: "application/vnd.kubernetes.protobuf", cbor: "application/cbor",
};
/** One item after another. */
export const CBOR_SEQUENCE = "application/cbor-seq";
/** Of watches, in the order they are offered in. In YAML they would need a framing that does not exist. */
const STREAM_TYPES: Readonly<Partial<Record<Encoding, string>>> = { json: `${MEDIA_TYPES.json};stream=watch`, protobuf: `${MEDIA_TYPES.protobuf};stream=watch`, cbor: CBOR_SEQUENCE };

const PLAIN: readonly Encoding[] = ["json", "yaml", "protobuf"], WITH_CBOR: readonly Encoding[] = [...PLAIN, "cbor"];

/** What there is altogether. `cbor`: the server speaks it. */
export function encodings({ cbor = false }: { readonly cbor?: boolean | undefined } = {}): readonly Encoding[] { return cbor ? WITH_CBOR : PLAIN; }

/** Kinds any object can be turned into on its way out. */
const CONVERSIONS: ReadonlySet<string> = new Set(["Table", "PartialObjectMetadata", "PartialObjectMetadataList"]);
const CONVERSION_VERSIONS: ReadonlySet<string> = new Set(["v1", "v1beta1"]);

export type Convertible = (target: GroupVersionKind, encoding: Encoding) => boolean;

export interface OutputRequest {
  /** The Accept header; undefined or empty if there is none. */
  readonly accept: string | undefined;
  readonly userAgent?: string | undefined;
  /** The value of ?pretty=, undefined if there is none. */
  readonly pretty?: string | undefined;
  /** It is of a custom resource, which has no protobuf message: only its metadata can be written in that. */
  readonly custom?: boolean;
  /** The server speaks CBOR, too. */
  readonly cbor?: boolean | undefined;
  /** Whether the endpoint can answer as `target`; by default Tables and object metadata. */
  readonly convertible?: Convertible;
}

export interface Output {
  readonly encoding: Encoding;
  readonly pretty: boolean;
  /** undefined: the object as it is. */
  readonly convert: GroupVersionKind | undefined;
  /** The Content-Type to answer with. */
  readonly contentType: string;
}

/** Throws a StatusError, 406. */
export function negotiateOutput(request: OutputRequest): Output {
  const found = choose(request);
  if (!found) throw notAcceptable(encodings(request).map((encoding) => MEDIA_TYPES[encoding]));
  return { ...found, pretty: found.encoding === "json" && (found.pretty || wantsPretty(request)) };
}

/** For watches. Throws a StatusError, 406. */
export function negotiateStream(request: OutputRequest): Output {
  const found = choose(request), contentType = found && STREAM_TYPES[found.encoding];
  if (contentType === undefined) throw notAcceptable(streamTypes(request.cbor));
  return { ...found!, pretty: false, contentType: found!.encoding === "json" ? MEDIA_TYPES.json : contentType };
}

/** The decoder for a Content-Type; none means JSON. Throws a StatusError, 415. */
export function negotiateInput(contentType: string | undefined, { custom = false, cbor }: Pick<OutputRequest, "custom" | "cbor"> = {}): Encoding {
  if (contentType === undefined || contentType === "") return "json";
  const mediaType = mediaTypeOf(contentType);
  const found = encodings({ cbor }).find((encoding) => MEDIA_TYPES[encoding] === mediaType);
  if (!found || (custom && found === "protobuf")) throw unsupportedMediaType(encodings({ cbor }).map((encoding) => MEDIA_TYPES[encoding]));
  return found;
}

function streamTypes(cbor: boolean | undefined): string[] { return encodings({ cbor }).flatMap((encoding) => STREAM_TYPES[encoding] ?? []); }

const TOKEN = "[!#$%&'*+.^`|~\\w-]+";
const PARAMETER = new RegExp(`^\\s*;\\s*(${TOKEN})\\s*=\\s*(${TOKEN}|"(?:[^"\\\\\\r\\n]|\\\\.)*")`);

/** A Content-Type without its parameters; undefined if they cannot be read, or say two things of one. Source: Go's mime.ParseMediaType */
function mediaTypeOf(contentType: string): string | undefined {
  const [given = ""] = contentType.split(";", 1);
  let rest = contentType.slice(given.length);
  const seen = new Map<string, string>();
  while (rest.trim() !== "" && rest.trim() !== ";") {
    const [all, name = "", value = ""] = PARAMETER.exec(rest) ?? [];
    if (all === undefined || (seen.get(name.toLowerCase()) ?? value) !== value) return undefined;
    seen.set(name.toLowerCase(), value);
    rest = rest.slice(all.length);
  }
  return given.trim().toLowerCase();
}

/** What upstream's router makes sure of first: that a media type of the route is among those that are accepted, whatever their parameters. Throws a StatusError, 406. */
export function checkRoute(accept: string, { cbor, types = encodings({ cbor }).map((encoding) => MEDIA_TYPES[encoding]), streams = false }: {
  readonly types?: readonly string[];
  readonly streams?: boolean;
  readonly cbor?: boolean | undefined;
} = {}): void {
  const accepted = accept.split(",").map((clause) => clause.split(";", 1)[0]!.trim());
  const produced = streams ? [...types, ...streamTypes(cbor)] : types;
  if (accept === "" || accepted.some((type) => type === "*/*" || produced.includes(type))) return;
  throw routerNotAcceptable(produced);
}

/** A Table has no protobuf message. */
export function convertibleToMeta({ group, version, kind }: GroupVersionKind, encoding: Encoding): boolean {
  return group === "meta.k8s.io" && CONVERSION_VERSIONS.has(version) && CONVERSIONS.has(kind) && (kind !== "Table" || encoding !== "protobuf");
}

export interface AcceptClause { readonly type: string; readonly subtype: string; readonly q: number; readonly params: ReadonlyMap<string, string> }

/** The clauses of an Accept header, best first. Source: github.com/munnerz/goautoneg */
export function parseAccept(header: string): AcceptClause[] {
  const clauses: AcceptClause[] = [];
  for (const part of header.split(",")) {
    const [range = "", ...rest] = withoutSpaces(part).split(";");
    const [type = "", subtype = type === "*" ? "*" : "", ...more] = range.split("/").map(withoutSpaces);
    if (subtype === "" || more.length > 0) continue;
    const params = new Map<string, string>();
    let q = 1;
    for (const param of rest) {
      const [name = "", value = "", ...others] = param.split("=");
      if (value === "" || others.length > 0) continue;
      if (withoutSpaces(name) === "q") q = Number.isNaN(Number(value)) || value.includes(" ") ? 0 : Number(value);
      else params.set(withoutSpaces(name), withoutSpaces(value));
    }
    clauses.push({ type, subtype, q, params });
  }
  return inOrder(clauses);
}

/** Upstream likes what is named more than what any may stand for, whatever its q, wherever it compares the two: so they are compared as there, each with those before it. */
function inOrder(clauses: AcceptClause[]): AcceptClause[] {
  const isBefore = (a: AcceptClause, b: AcceptClause): boolean => a.q > b.q || (a.type !== "*" && b.type === "*") || (a.subtype !== "*" && b.subtype === "*");
  for (let last = 1; last < Math.min(clauses.length, CLAUSES_MAX); last++) {
    for (let at = last; at > 0 && isBefore(clauses[at]!, clauses[at - 1]!); at--) [clauses[at - 1], clauses[at]] = [clauses[at]!, clauses[at - 1]!];
  }
  return clauses;
}

/** As many are looked at: nobody sends more, and each is compared with those before it. */
const CLAUSES_MAX = 64;

function choose({ accept = "", custom = false, cbor, convertible = convertibleToMeta }: OutputRequest): Output | undefined {
  if (accept === "") return { encoding: "json", pretty: false, convert: undefined, contentType: MEDIA_TYPES.json };
  const offered = encodings({ cbor });
  const isPlain = (encoding: Encoding): boolean => !custom || encoding !== "protobuf";
  const comma = accept.includes(";") ? -1 : accept.indexOf(","); // without parameters what comes first is liked best
  const first = comma < 0 ? accept : accept.slice(0, comma);
  const only = offered.find((encoding) => MEDIA_TYPES[encoding] === first && isPlain(encoding)); // nearly always; no clause needs to be taken apart
  if (only) return { encoding: only, pretty: false, convert: undefined, contentType: first };
  for (const clause of parseAccept(accept)) {
    for (const encoding of offered) {
      if (!matches(clause, MEDIA_TYPES[encoding])) continue;
      const output = honour(clause, { encoding, plain: isPlain(encoding), convertible });
      if (output) return output;
    }
  }
  return undefined;
}

/** Whatever its parameters. */
export function matches({ type, subtype }: AcceptClause, mediaType: string): boolean {
  const [ownType, ownSubtype] = mediaType.split("/");
  return type === "*" ? subtype === "*" : type === ownType && (subtype === "*" || subtype === ownSubtype);
}

/** undefined: the clause asks for something that this endpoint cannot do. */
function honour({ params }: AcceptClause, offer: { readonly encoding: Encoding; readonly plain: boolean; readonly convertible: Convertible }): Output | undefined {
  const { encoding } = offer;
  const stream = params.get("stream") ?? "";
  if (stream !== "" && (stream !== "watch" || STREAM_TYPES[encoding] === undefined)) return undefined;
  if (!["", "v1"].includes(params.get("sv") ?? "")) return undefined; // the version of Status and the like: there is one
  const convert = targetOf(params);
  if (convert ? !offer.convertible(convert, encoding) : !offer.plain) return undefined;
  return { encoding, pretty: params.get("pretty") === "1", convert, contentType: MEDIA_TYPES[encoding] };
}

/** What a clause wants an answer turned into; undefined: it says nothing of that. */
export function targetOf(params: AcceptClause["params"]): GroupVersionKind | undefined {
  return params.has("as") || params.has("g") || params.has("v") ? { group: params.get("g") ?? "", version: params.get("v") ?? "", kind: params.get("as") ?? "" } : undefined;
}

/** ?pretty decides; else programs that people read the output of get it. */
export function wantsPretty({ pretty, userAgent = "" }: Pick<OutputRequest, "pretty" | "userAgent">): boolean {
  if (pretty !== undefined && pretty !== "") return ["1", "t", "T", "TRUE", "true", "True"].includes(pretty);
  return /^(?:curl|Wget|Mozilla\/5\.0)/.test(userAgent);
}
