/**
 * Event (v1, and events.k8s.io/v1, which is the same thing under other names: see conversions.ts). Stored in the form of the core group.
 *
 * Source: kubernetes v1.36 pkg/registry/core/event/strategy.go, pkg/apis/core/validation/events.go
 */
import { type FieldError, invalid, required } from "../../api/meta/field-error.ts";
import type { Event } from "../../api/gen/core.v1.ts";
import { dns1123Subdomain } from "../../api/meta/names.ts";
import { defineResource } from "../generic/resource.ts";
import { isQualifiedName, problems } from "./checks/values.ts";

const LENGTHS_MAX = { reportingInstance: 128, action: 128, reason: 128, message: 1024 } as const;
const INVOLVED_NAMESPACE = "involvedObject.namespace";
const OTHER_NAMESPACE = "does not match event.namespace";

export const events = defineResource<Event>({
  group: "", version: "v1", kind: "Event", plural: "events",
  generation: false,
  createOnUpdate: true,

  *validate(event) {
    const { metadata, involvedObject } = event;
    const own = metadata.namespace ?? "";
    const involved = involvedObject?.namespace ?? "";
    if (!event.eventTime) {
      if (involved === "" ? own !== "" && own !== "default" : own !== involved) yield invalid(INVOLVED_NAMESPACE, involved, OTHER_NAMESPACE);
    } else {
      if (involved === "" && own !== "default" && own !== "kube-system") yield invalid(INVOLVED_NAMESPACE, involved, OTHER_NAMESPACE);
      yield* validateReported(event);
    }
    yield* problems("namespace", own, dns1123Subdomain(own));
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
function* validateReported(event: Readonly<Event>): Iterable<FieldError> {
  if (!event.reportingComponent) yield required("reportingComponent");
  yield* isQualifiedName("reportingComponent", event.reportingComponent ?? "");
  for (const field of ["reportingInstance", "action", "reason"] as const) {
    if (!event[field]) yield required(field);
    else if (event[field].length > LENGTHS_MAX[field]) yield invalid(field, "", `can have at most ${LENGTHS_MAX[field]} characters`);
  }
  if ((event.message ?? "").length > LENGTHS_MAX.message) yield invalid("message", "", `can have at most ${LENGTHS_MAX.message} characters`);
}
