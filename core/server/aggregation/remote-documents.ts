/**
 * What extension servers say of themselves, kept: the resources they serve and their OpenAPI documents. Asked for when an APIService comes or
 * changes, again every minute, and sooner after a failure. While a server does not answer its version is stale and has no resources; its OpenAPI stays. One that tells its
 * resources and fails to tell its OpenAPI is as well as one that has none.
 *
 * Source: kubernetes v1.36 kube-aggregator/pkg/apiserver/handler_discovery.go, pkg/controllers/{openapi,openapiv3}
 */
import { parseJson } from "../../api/codec/json.ts";
import { objectKey } from "../../api/meta/object-meta.ts";
import { encodeOpenApiV2 } from "../../api/openapi/v2-protobuf.ts";
import type { Swagger } from "../../api/openapi/v2.ts";
import type { Informer } from "../../client/informer.ts";
import { breather } from "../../lifecycle/breather.ts";
import type { Runnable } from "../../lifecycle/run-all.ts";
import { workQueue } from "../../lifecycle/work-queue.ts";
import type { Log } from "../../observe/log.ts";
import type { APIService, APIServiceSpec } from "../../registry/apiregistration/api-service.ts";
import { availabilityOf, isAvailable } from "./availability-plan.ts";
import { ACCEPT_AGGREGATED, isAggregated, readAggregated, readList, type ResourceDiscovery, resourcesIn, resourcesOfList } from "./discovered.ts";
import { askExtension, type ExtensionAnswer, type ExtensionDeps } from "./extension-server.ts";
import { AGGREGATOR } from "./identity.ts";
import type { SwaggerPart } from "./merge-openapi.ts";

export interface RemoteDocuments {
  readonly resources: readonly ResourceDiscovery[];
  readonly stale: boolean;
  /** Of OpenAPI v3's index: the path of this group version's document, with the hash of what it holds. */
  readonly v3: { readonly path: string; readonly hash: string } | undefined;
  readonly v2: { readonly etag: string; readonly document: SwaggerPart } | undefined;
}

const REFRESH_MS = 60_000;
const RETRY = { minMs: 500, maxMs: REFRESH_MS };
const DISCOVERY_MS = 5_000;
const OPENAPI_MS = 60_000;
const WORKERS = 2;
const NOTHING: RemoteDocuments = { resources: [], stale: true, v3: undefined, v2: undefined };

export interface RemoteDeps extends ExtensionDeps {
  readonly apiServices: Informer<APIService>;
  readonly log: Log;
}

export class RemoteCatalog implements Runnable {
  readonly name = "extension servers' documents";
  readonly #deps: RemoteDeps;
  readonly #known = new Map<string, RemoteDocuments>();
  #changes = 0;

  constructor(deps: RemoteDeps) {
    this.#deps = deps;
  }

  /** Grows with every change of what is known. */
  get changes(): number {
    return this.#changes;
  }

  of(apiServiceName: string): RemoteDocuments {
    return this.#known.get(apiServiceName) ?? NOTHING;
  }

  async run(signal: AbortSignal, ready: () => void): Promise<void> {
    const { apiServices, clock, log } = this.#deps;
    const queue = workQueue<string>(clock, { retry: RETRY });
    const end = apiServices.onChange(({ object, old, deleted }) => {
      if (deleted || !object.spec.service) {
        if (this.#known.delete(object.metadata.name)) this.#changes++;
      } else if (!old || !Bun.deepEquals(old.spec, object.spec) || availabilityOf(old) !== availabilityOf(object)) queue.add(object.metadata.name);
    });
    ready();
    await apiServices.whenSynced(signal);
    const work = async (): Promise<void> => {
      for (let name = await queue.take(signal); name !== undefined; name = await queue.take(signal)) {
        try {
          const current = apiServices.get(objectKey("", name));
          if (current?.spec.service) {
            if (availabilityOf(current) === undefined) throw new Error("service unavailable"); // until somebody has looked; after that it is asked what it serves whatever they found
            await this.#refresh(name, current, signal);
            queue.addAfter(name, REFRESH_MS);
          }
          queue.forget(name);
        } catch (error) {
          if (!signal.aborted) log.debug("an extension API server does not tell what it serves", { apiService: name, error });
          const known = this.of(name);
          if (!known.stale || !this.#known.has(name)) this.#keep(name, { ...known, resources: [], stale: true });
          queue.addRateLimited(name);
        } finally {
          queue.done(name);
        }
      }
    };
    await Promise.all(Array.from({ length: WORKERS }, work));
    end();
  }

  async #refresh(name: string, apiService: Readonly<APIService>, signal: AbortSignal): Promise<void> {
    const { spec } = apiService;
    const resources = await this.#resources(spec, signal);
    const known = this.of(name);
    this.#keep(name, { ...known, resources, stale: false });
    if (!isAvailable(apiService)) return;
    const [v3, v2] = await Promise.all([this.#orAsBefore(name, known.v3, () => this.#v3(spec, signal)), this.#orAsBefore(name, known.v2, () => this.#v2(spec, known.v2, signal))]);
    if (!signal.aborted) this.#keep(name, { resources, stale: false, v3, v2 });
  }

  async #orAsBefore<T>(name: string, known: T, ask: () => Promise<T>): Promise<T> {
    try {
      return await ask();
    } catch (error) {
      this.#deps.log.debug("an extension API server does not tell its OpenAPI", { apiService: name, error });
      return known;
    }
  }

  #keep(name: string, documents: RemoteDocuments): void {
    const before = this.#known.get(name);
    this.#known.set(name, documents);
    if (!before || !Bun.deepEquals(before.resources, documents.resources) || before.stale !== documents.stale || before.v3?.hash !== documents.v3?.hash || before.v2?.etag !== documents.v2?.etag) this.#changes++;
  }

  async #ask(spec: Readonly<APIServiceSpec>, question: { readonly path: string; readonly accept: string; readonly timeoutMs?: number; readonly ifNoneMatch?: string | undefined }, signal: AbortSignal): Promise<ExtensionAnswer> {
    return await askExtension(spec, { user: AGGREGATOR, timeoutMs: DISCOVERY_MS, ...question, signal }, this.#deps);
  }

  async #resources(spec: Readonly<APIServiceSpec>, signal: AbortSignal): Promise<readonly ResourceDiscovery[]> {
    const { group = "", version = "" } = spec;
    const whole = await this.#ask(spec, { path: "/apis", accept: ACCEPT_AGGREGATED }, signal);
    if (whole.status === 503) throw new Error(`returned non-success response code: ${whole.status}`);
    if (whole.status === 200 && isAggregated(whole.header("content-type"))) return resourcesIn(readAggregated(jsonOf(whole.body)), group, version) ?? [];
    const path = `/apis/${group}/${version}`;
    const one = await this.#ask(spec, { path, accept: "application/json" }, signal);
    if (one.status !== 200) throw new Error(`failed to download legacy discovery for ${path}: ${one.status}`);
    return resourcesOfList(readList(jsonOf(one.body)));
  }

  async #v3(spec: Readonly<APIServiceSpec>, signal: AbortSignal): Promise<RemoteDocuments["v3"]> {
    const answer = await this.#ask(spec, { path: "/openapi/v3", accept: "application/json", timeoutMs: OPENAPI_MS }, signal);
    if (answer.status === 404) return undefined; // a server may have none
    if (answer.status !== 200) throw new Error(`/openapi/v3: ${answer.status}`);
    const path = `apis/${spec.group}/${spec.version}`;
    const url = (jsonOf(answer.body) as { paths?: Record<string, { serverRelativeURL?: string }> }).paths?.[path]?.serverRelativeURL;
    return url === undefined ? undefined : { path, hash: /[?&]hash=([^&]*)/.exec(url)?.[1] ?? "" };
  }

  async #v2(spec: Readonly<APIServiceSpec>, known: RemoteDocuments["v2"], signal: AbortSignal): Promise<RemoteDocuments["v2"]> {
    const answer = await this.#ask(spec, { path: "/openapi/v2", accept: "application/json", timeoutMs: OPENAPI_MS, ifNoneMatch: known?.etag }, signal);
    if (answer.status === 304) return known;
    if (answer.status === 404) return undefined;
    if (answer.status !== 200) throw new Error(`/openapi/v2: ${answer.status}`);
    const etag = answer.header("etag") ?? new Bun.CryptoHasher("sha256").update(answer.body).digest("hex");
    if (etag === known?.etag) return known;
    const document = { paths: {}, definitions: {}, ...(jsonOf(answer.body) as object) };
    await encodeOpenApiV2(document as unknown as Swagger, breather(this.#deps.clock)); // throws for what cannot be told in each form: it would cost everybody the whole document
    return { etag, document };
  }
}

function jsonOf(body: Buffer): unknown { return parseJson(body.toString()).value; }
