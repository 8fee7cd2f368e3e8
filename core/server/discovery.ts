/** /api, /apis and what is below them: which groups, versions and resources there are. Made once for each change of the registry. */
import { checkRoute, type Convertible, MEDIA_TYPES, negotiateOutput, type Output } from "../api/codec/negotiate.ts";
import {
  AGGREGATED_PARAMETERS, apiGroup, apiGroupList, apiResourceList, apiVersions, type DiscoveredVersion, etagOf, groupDiscoveryList, isAggregatedDiscovery,
} from "../api/discovery/discovery.ts";
import type { ServedGroupVersion } from "../api/schema/resources.ts";
import { methodNotAllowed } from "../api/meta/status-error.ts";
import { encodeJson } from "../api/codec/json.ts";
import { cborCodec } from "../api/codec/cbor/codec.ts";
import { encodeYaml } from "../api/codec/yaml.ts";
import { protobufCodec } from "../api/codec/protobuf.ts";
import { parseApiVersion } from "../api/meta/gvk.ts";
import type { Registry } from "../registry/registry.ts";
import type { Aggregation } from "./aggregation/aggregator.ts";
import { type Answer, raw } from "./answer.ts";
import { groupVersions, isBuiltInVersion } from "./group-versions.ts";
import type { PathHandler } from "./scope.ts";
import type { ServerRequest } from "./request.ts";

/** What other servers serve behind this one, and what APIServices say of the place of all: aggregation/aggregator.ts. */
export type Foreign = Pick<Aggregation, "changes" | "versions" | "priorityOf">;

/** `serverAddress` is where clients reach this server, for the core group's serverAddressByClientCIDRs: "10.0.0.1:6443". */
export function discoveryPaths(registry: Registry, serverAddress: string, foreign?: Foreign): PathHandler {
  const aggregated = new Map<string, { changes: number; document: object; etag: string }>();

  let own: { readonly changes: number; readonly versions: ReturnType<typeof allVersions> } | undefined;

  /** An autoscaler asks for a group each time that it looks, and there may be hundreds of either. */
  function versionsNow(): ReturnType<typeof allVersions> {
    const changes = registry.changes + (foreign?.changes ?? 0);
    if (own?.changes !== changes) own = { changes, versions: allVersions(registry, foreign) };
    return own.versions;
  }

  function groupDiscovery(core: boolean): { document: object; etag: string } {
    const known = aggregated.get(String(core));
    const changes = registry.changes + (foreign?.changes ?? 0);
    if (known?.changes === changes) return known;
    const versions = versionsNow().filter(({ group }) => (group === "") === core);
    const document = groupDiscoveryList(versions.map((version) => ({ rows: registry.rowsOf(version), ...version })));
    const made = { changes, document, etag: etagOf(document) };
    aggregated.set(String(core), made);
    return made;
  }

  return (request) => {
    const parts = request.path.split("/").filter((part) => part !== "");
    const [root] = parts;
    if ((root !== "api" && root !== "apis") || request.path.includes("//")) return undefined;
    if (isRoute(registry, parts)) {
      if (request.method !== "GET") throw methodNotAllowed();
      checkRoute(request.header("accept") ?? "", { cbor: request.cbor === true && parts.length > 2 - Number(root === "api") });
    }
    return documentAt(request, parts);
  };

  function documentAt(request: ServerRequest, [root, group, version, ...more]: readonly string[]): Answer | undefined {
    if (more.length > 0) return undefined;
    if (group === undefined) {
      const output = outputOf(request, isAggregatedDiscovery);
      if (output.convert) {
        const { document, etag } = groupDiscovery(root === "api");
        const headers = { etag, vary: "Accept", "cache-control": "public" };
        const contentType = MEDIA_TYPES[output.encoding] + AGGREGATED_PARAMETERS;
        return request.header("if-none-match") === etag ? { type: "raw", status: 304, headers, body: "" } : { ...raw(encoded(output, document), contentType, 200, headers), document };
      }
      return answer(request, root === "api" ? apiVersions(serverAddress) : apiGroupList(versionsNow().filter((served) => served.group !== "")));
    }
    if (root === "api") return version === undefined ? resources(request, registry, { group: "", version: group }) : undefined;
    if (version !== undefined) return resources(request, registry, { group, version });
    const found = apiGroup(versionsNow(), group);
    return found && answer(request, found);
  }
}

/** Of upstream's router, which knows GET alone. What is said of all groups, of one, and of versions that definitions make, is answered whatever the method. */
function isRoute(registry: Registry, [root, ...named]: readonly string[]): boolean {
  const [group, version] = root === "api" ? ["", ...named] : named;
  if (version === undefined) return root === "api" || group === "apiregistration.k8s.io"; // the aggregator, which answers for other groups, leaves its own to the router
  return isBuiltInVersion(registry, { group: group!, version });
}

function resources(request: ServerRequest, registry: Registry, wanted: { group: string; version: string }): Answer | undefined {
  const rows = registry.rowsOf(wanted);
  return rows.length === 0 ? undefined : answer(request, apiResourceList(wanted, rows), request.cbor === true && isBuiltInVersion(registry, wanted));
}

/** `cbor`: what upstream's servers of groups say themselves; what is said of groups has no such form. */
function answer(request: ServerRequest, document: object, cbor = false): Answer {
  const output = outputOf(request, () => false, cbor);
  return { ...raw(encoded(output, document), output.contentType), document };
}

function outputOf(request: ServerRequest, convertible: Convertible, cbor = false): Output {
  return negotiateOutput({ cbor, accept: request.header("accept"), userAgent: request.header("user-agent"), pretty: request.query.get("pretty") ?? undefined, convertible });
}

function encoded({ encoding, pretty }: Pick<Output, "encoding" | "pretty">, document: object): Uint8Array | string {
  switch (encoding) {
    case "json": return encodeJson(document, { pretty });
    case "yaml": return encodeYaml(document);
    case "cbor": return cborCodec.encode(document);
    case "protobuf": {
      const { apiVersion = "", kind } = document as { apiVersion?: string; kind: string }; // /api and /api/v1 have never had one
      return protobufCodec.encode({ ...document, apiVersion: apiVersion || "v1", kind }, { ...parseApiVersion(apiVersion), kind });
    }
  }
}

/** With those that other servers serve, in place of our own of that name. */
export function allVersions(registry: Registry, foreign: Foreign | undefined): (ServedGroupVersion & Partial<DiscoveredVersion>)[] {
  const own = groupVersions(registry);
  if (!foreign) return own;
  const others = foreign.versions();
  const taken = new Set(others.map(({ group, version }) => `${group}/${version}`));
  return [...own.filter(({ group, version }) => !taken.has(`${group}/${version}`)).map((one) => ({ ...one, ...foreign.priorityOf(one.group, one.version) })), ...others];
}
