/**
 * Records what is asked of the API server, as the policy says, and hands it to where records go.
 *
 *   const record = auditor.begin(request, attributes)      undefined: this request is not recorded
 *   record.annotate("authorization.k8s.io/decision", "allow")
 *   record.started(101); record.ended()                    of a request that lasts; record.complete(…) of any other
 *
 * Source: kubernetes v1.36 apiserver/pkg/{endpoints/filters/audit.go,audit/{context,request}.go}
 */
import { parseJson, stringify } from "../../api/codec/json.ts";
import { formatDurationNs } from "../../api/meta/duration.ts";
import { microTimestamp, type Clock } from "../../lifecycle/clock.ts";
import type { Runnable } from "../../lifecycle/run-all.ts";
import type { Counter, Metrics } from "../../observe/metrics.ts";
import type { Attributes } from "../../api/request/attributes.ts";
import { headerText } from "../../api/request/header-text.ts";
import type { UserInfo } from "../../api/request/user.ts";
import type { ServerRequest } from "../request.ts";
import { type AuditEvent, auditUser, type AuditUser, objectReference, type ObjectReference, type ResponseStatus, sourceIps, withoutManagedFields } from "./event.ts";
import { type AuditConfig, type AuditPolicy, type AuditStage, configFor } from "./policy.ts";

/** Parts of the way of a request that are timed. Upstream's others (etcd, what becomes of the answer) are not: here they are no steps of their own. */
export type Layer = "authentication" | "impersonation" | "apf-queue-wait" | "authorization" | "mutating-webhook" | "validating-webhook";

/** A request that takes longer says where its time went. Source: audit.go writeLatencyToAnnotation */
const SLOW_MS = 500;

/** Where events go. */
export interface AuditSink {
  readonly part: Runnable;
  /** A request goes on only once it is recorded that it has come, and not at all if that could not be. */
  readonly comesFirst?: boolean;
  /** Must not throw. Resolves once the event is where it is kept, or with false if it is lost; undefined: nobody is to wait for that. */
  write(event: AuditEvent): Promise<boolean> | undefined;
}

/** What is not recorded as it should be, by the plugin that failed. */
export function auditErrors(metrics: Pick<Metrics, "counter">): Counter { return metrics.counter("apiserver_audit_error_total", "[ALPHA] Counter of audit events that failed to be audited properly. Plugin identifies the plugin affected by the error."); }

/** Of a request that has come: by what it is known, and when that was. */
export interface Arrival { readonly auditId: string; readonly receivedMs: number }

export interface Auditor {
  begin(request: ServerRequest, attributes: Attributes, arrival: Arrival): AuditRecord | undefined;
  /** Of who is turned away at the door, by name or not: that it is answered is its one stage. Source: kubernetes v1.36 apiserver/pkg/endpoints/filters/{authn_audit,request_deadline}.go */
  turnedAway(request: ServerRequest, attributes: Attributes, arrival: Arrival): AuditRecord | undefined;
}

export function auditor({ policy, sinks, clock, metrics }: { readonly policy: AuditPolicy; readonly sinks: readonly AuditSink[]; readonly clock: Clock; readonly metrics: Metrics }): Auditor {
  const events = metrics.counter("apiserver_audit_event_total", "[ALPHA] Counter of audit events generated and sent to the audit backend.");
  const levels = metrics.counter("apiserver_audit_level_total", "[ALPHA] Counter of policy levels for audit events (1 per request).");
  const rejected = metrics.counter("apiserver_audit_requests_rejected_total", "[ALPHA] Counter of apiserver requests rejected due to an error in audit logging backend.");
  events.inc({}, 0);
  rejected.inc({}, 0);
  const comesFirst = sinks.some((sink) => sink.comesFirst);
  const perLevel = new Map(["None", "Metadata", "Request", "RequestResponse"].map((level) => [level, levels.with({ level })]));
  const write = async (event: AuditEvent): Promise<boolean> => {
    events.inc();
    const written = await Promise.all(sinks.map(async (sink) => (await sink.write(event)) ?? true));
    return written.every((is, i) => is || !sinks[i]!.comesFirst);
  };
  function recordOf(request: ServerRequest, attributes: Attributes, { arrival, isTurnedAway }: Pick<RecordDeps, "arrival" | "isTurnedAway">): AuditRecord | undefined {
    const config = configFor(policy, attributes);
    perLevel.get(config.level)?.inc();
    return config.level === "None" ? undefined : new AuditRecord({ request, attributes, arrival, isTurnedAway, config, clock, comesFirst, write, rejected: () => rejected.inc() });
  }

  return {
    begin(request, attributes, arrival) {
      const record = recordOf(request, attributes, { arrival, isTurnedAway: false });
      record?.stage("RequestReceived");
      return record;
    },
    turnedAway: (request, attributes, arrival) => recordOf(request, attributes, { arrival, isTurnedAway: true }),
  };
}

interface RecordDeps {
  readonly request: ServerRequest;
  readonly attributes: Attributes;
  readonly arrival: Arrival;
  readonly isTurnedAway: boolean;
  readonly config: AuditConfig;
  readonly clock: Clock;
  /** Events go one after the other, and the request after the first. */
  readonly comesFirst: boolean;
  /** Resolves with false if the request is not to go on. */
  readonly write: (event: AuditEvent) => Promise<boolean>;
  readonly rejected: () => void;
}

export class AuditRecord {
  readonly #deps: RecordDeps;
  readonly #uri: string;
  readonly #annotations: Record<string, string> = {};
  readonly #layersMs = new Map<Layer, number>();
  #objectRef: ObjectReference | undefined;
  #impersonated: AuditUser | undefined;
  #constraint = "";
  #status: ResponseStatus | undefined;
  #requestObject: unknown;
  #responseObject: unknown;
  #written: Promise<boolean> | undefined;

  constructor(deps: RecordDeps) {
    this.#deps = deps;
    const { path, wire, query } = deps.request;
    const search = wire?.rawQuery ?? query.toString();
    const asked = wire?.rawPath ?? path;
    this.#uri = search === "" ? asked : `${asked}?${search}`;
    this.#objectRef = objectReference(deps.attributes);
  }

  /** Whether the object that was sent is wanted. */
  get wantsRequest(): boolean {
    return this.#deps.config.level === "Request" || this.#deps.config.level === "RequestResponse";
  }

  get wantsResponse(): boolean {
    return this.#deps.config.level === "RequestResponse";
  }

  get isTurnedAway(): boolean {
    return this.#deps.isTurnedAway;
  }

  impersonated(user: UserInfo, constraint = ""): void {
    this.#impersonated = auditUser(user);
    this.#constraint = constraint;
  }

  /** The first to say something of a key is believed. */
  annotate(key: string, value: string): void {
    if (!Object.hasOwn(this.#annotations, key)) this.#annotations[key] = value;
  }

  /** Milliseconds of one layer: webhooks that validate are asked all at once: of them the slowest counts, of all else the sum. Source: kubernetes v1.36 apiserver/pkg/endpoints/request/webhook_duration.go */
  took(layer: Layer, ms: number): void {
    const before = this.#layersMs.get(layer) ?? 0;
    this.#layersMs.set(layer, layer === "validating-webhook" ? Math.max(before, ms) : before + ms);
  }

  /** Of a request that does not last, before its last stage. */
  tookAltogether(ms: number): void {
    if (ms <= SLOW_MS) return;
    for (const [layer, layerMs] of [...this.#layersMs, ["total", ms] as const]) if (layerMs > 0) this.annotate(`apiserver.latency.k8s.io/${layer}`, formatDurationNs(BigInt(Math.round(layerMs * 1e6))));
  }

  /** The object as it is now: it may change afterwards. */
  requestObject(value: unknown): void {
    const { name, namespace, uid, resourceVersion } = (value as { readonly metadata?: ObjectReference } | undefined)?.metadata ?? {};
    const told = { ...(name ? { name } : {}), ...(namespace ? { namespace } : {}), ...(uid ? { uid } : {}), ...(resourceVersion ? { resourceVersion } : {}) };
    if (this.#objectRef) this.#objectRef = { ...told, ...this.#objectRef };
    if (this.wantsRequest) this.#requestObject = this.#copy(value);
  }

  responseObject(value: unknown): void {
    if (this.wantsResponse) this.#responseObject = this.#copy(value);
  }

  respond(code: number, status?: ResponseStatus): void {
    this.#status = { ...status, metadata: {}, code };
  }

  stage(stage: AuditStage): void {
    const { config, arrival: { auditId, receivedMs }, attributes, request, clock, comesFirst, write } = this.#deps;
    if (config.omitStages.includes(stage)) return;
    const userAgent = shortened(headerText(request.header("user-agent") ?? ""));
    const event: AuditEvent = {
      kind: "Event", apiVersion: "audit.k8s.io/v1", level: config.level, auditID: auditId, stage, requestURI: this.#uri, verb: attributes.verb, user: auditUser(attributes.user),
      ...(this.#impersonated ? { impersonatedUser: this.#impersonated } : {}), ...(this.#constraint === "" ? {} : { authenticationMetadata: { impersonationConstraint: this.#constraint } }),
      sourceIPs: sourceIps(request.header("x-forwarded-for"), request.header("x-real-ip"), request.remoteAddress), ...(userAgent === "" ? {} : { userAgent }),
      ...(this.#objectRef ? { objectRef: this.#objectRef } : {}), ...(this.#status ? { responseStatus: this.#status } : {}),
      ...(this.#requestObject === undefined ? {} : { requestObject: this.#requestObject }), ...(this.#responseObject === undefined ? {} : { responseObject: this.#responseObject }),
      requestReceivedTimestamp: microTimestamp(receivedMs), stageTimestamp: microTimestamp(stage === "RequestReceived" ? receivedMs : clock.nowMs()),
      ...(Object.keys(this.#annotations).length > 0 ? { annotations: Object.fromEntries(Object.entries(this.#annotations).toSorted(([a], [b]) => (a < b ? -1 : 1))) } : {}),
    };
    const before = this.#written;
    this.#written = comesFirst && before ? before.then(() => write(event)) : write(event);
  }

  /** Resolves once the request may go on; with false if it may not, because it could not be recorded. Undefined: nobody waits for that. */
  get arrived(): Promise<boolean> | undefined {
    const { comesFirst, rejected } = this.#deps;
    return comesFirst ? this.#written?.then((may) => {
      if (!may) rejected();
      return may;
    }) : undefined;
  }

  /** Resolves once the last stage is recorded, and with it those before: whoever asked has no answer until then. */
  async recorded(): Promise<void> { await this.#written; }

  #copy(value: unknown): unknown {
    if (typeof value !== "object" || value === null) return value;
    return parseJson(stringify(this.#deps.config.omitManagedFields ? withoutManagedFields(value) : value)).value;
  }
}

/** Source: kubernetes v1.36 apiserver/pkg/audit/request.go maxUserAgentLength */
const USER_AGENT_MAX = 1024;

function shortened(userAgent: string): string { return userAgent.length > USER_AGENT_MAX ? `${userAgent.slice(0, USER_AGENT_MAX)}...TRUNCATED` : userAgent; }
