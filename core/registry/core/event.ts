/**
 * Event (v1, and events.k8s.io/v1, which is the same thing under other names: see conversions.ts). Stored in the form of the core group.
 *
 * Source: kubernetes v1.36 pkg/registry/core/event/strategy.go, pkg/apis/core/validation/events.go
 */
import { byteLength } from "../../api/meta/byte-length.ts";
import { FIELD_IMMUTABLE, type FieldError, invalid, required } from "../../api/meta/field-error.ts";
import type { Event } from "../../api/gen/core.v1.ts";
import { dns1123Subdomain } from "../../api/meta/names.ts";
import { internalForm } from "../../api/schema/internal-form.ts";
import { defineResource, type WriteContext } from "../generic/resource.ts";
import { isQualifiedName, problems } from "./checks/values.ts";

/** Upstream says characters and counts bytes. */
const BYTES_MAX = { reportingInstance: 128, action: 128, reason: 128, message: 1024 } as const;
const INVOLVED_NAMESPACE = "involvedObject.namespace";
const OTHER_NAMESPACE = "does not match event.namespace";

/** The core group stays as lax as it has always been. */
function isAskedAsCore({ group = "" }: WriteContext): boolean { return group === ""; }

/** What nobody changes through events.k8s.io once an event is sent, by the names errors give it and in their order: upstream tells of the reason twice. */
const FIXED = ["involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "reason", "type", "eventTime", "action", "related", "reportingComponent", "reportingInstance"] as const satisfies readonly (keyof Event)[];
const STRUCTS: Readonly<Partial<Record<keyof Event, string>>> = { involvedObject: "core.v1.ObjectReference", source: "core.v1.EventSource", related: "core.v1.ObjectReference" };
/** What is shown where nothing is said. */
const NOTHING: Readonly<Partial<Record<keyof Event, unknown>>> = { involvedObject: {}, source: {}, count: 0, firstTimestamp: null, lastTimestamp: null, eventTime: null, related: undefined };
const UNSET = "needs to be unset";
const SERIES_COUNT_MIN = 2;

export const events = defineResource<Event>({
  group: "", version: "v1", kind: "Event", plural: "events",
  generation: false,
  createOnUpdate: true,
  defaultPropagation: "Unsupported",
  anyMeta: isAskedAsCore,

  *validate(event, old, context) {
    const isCore = context === undefined || isAskedAsCore(context);
    const { metadata, involvedObject } = event;
    const own = metadata.namespace ?? "";
    const involved = involvedObject?.namespace ?? "";
    if (!event.eventTime) {
      if (involved === "" ? own !== "" && own !== "default" : own !== involved) yield invalid(INVOLVED_NAMESPACE, involved, OTHER_NAMESPACE);
    } else {
      if (involved === "" && own !== "default" && own !== "kube-system") yield invalid(INVOLVED_NAMESPACE, involved, OTHER_NAMESPACE);
      yield* validateReported(event, isCore ? "reportingComponent" : "reportingController");
    }
    yield* problems("namespace", own, dns1123Subdomain(own));
    if (isCore) return;
    if (old) yield* validateChange(event, old);
    else yield* validateStrictly(event);
  },

  fields(event) {
    const { involvedObject: object, source } = event;
    return {
      "involvedObject.kind": object?.kind ?? "", "involvedObject.namespace": object?.namespace ?? "", "involvedObject.name": object?.name ?? "",
      "involvedObject.uid": object?.uid ?? "", "involvedObject.apiVersion": object?.apiVersion ?? "", "involvedObject.resourceVersion": object?.resourceVersion ?? "",
      "involvedObject.fieldPath": object?.fieldPath ?? "", reason: event.reason ?? "", reportingComponent: event.reportingComponent ?? "",
      source: source?.component || event.reportingComponent || "", type: event.type ?? "",
    };
  },
});

/** Of events with an eventTime: those who send them know of the newer fields. */
function* validateReported(event: Readonly<Event>, reporter: string): Iterable<FieldError> {
  if (!event.reportingComponent) yield required(reporter);
  yield* isQualifiedName(reporter, event.reportingComponent ?? "");
  for (const field of ["reportingInstance", "action", "reason"] as const) {
    if (!event[field]) yield required(field);
    else if (byteLength(event[field]) > BYTES_MAX[field]) yield invalid(field, "", `can have at most ${BYTES_MAX[field]} characters`);
  }
  if (byteLength(event.message ?? "") > BYTES_MAX.message) yield invalid("message", "", `can have at most ${BYTES_MAX.message} characters`);
}

function* validateStrictly(event: Readonly<Event>): Iterable<FieldError> {
  yield* validateSeries(event);
  if (!event.eventTime) yield required("eventTime");
  if (event.type !== "Normal" && event.type !== "Warning") yield invalid("type", "", `has invalid value: ${event.type ?? ""}`);
  for (const field of ["firstTimestamp", "lastTimestamp", "count"] as const) if (event[field]) yield invalid(field, "", UNSET);
  if (event.source?.component || event.source?.host) yield invalid("source", "", UNSET);
}

function* validateChange(next: Readonly<Event>, old: Readonly<Event>): Iterable<FieldError> {
  if (!Bun.deepEquals(next.series, old.series)) yield* validateSeries(next);
  for (const field of FIXED) {
    if (Bun.deepEquals(next[field], old[field])) continue;
    const type = STRUCTS[field];
    const shown = next[field] ?? (field in NOTHING ? NOTHING[field] : "");
    yield invalid(field === "reportingComponent" ? "reportingController" : field, type && shown ? internalForm(`io.k8s.api.${type}`, shown) : shown, FIELD_IMMUTABLE);
  }
}

function* validateSeries({ series }: Readonly<Event>): Iterable<FieldError> {
  if (!series) return;
  if ((series.count ?? 0) < SERIES_COUNT_MIN) yield invalid("series.count", "", "should be at least 2");
  if (!series.lastObservedTime) yield required("series.lastObservedTime");
}
