/** AlwaysPullImages (off unless asked for): who has no pull secret cannot use an image because another pod left it on the node. Source: kubernetes v1.36 plugin/pkg/admission/alwayspullimages */
import type { Container, EphemeralContainer, Pod } from "../api/gen/core.v1.ts";
import { aggregate } from "../api/meta/aggregate.ts";
import { formatFieldError, notSupported } from "../api/meta/field-error.ts";
import { statusError } from "../api/meta/status-error.ts";
import type { AdmissionPlugin, AdmissionRequest } from "./plugin.ts";
import { isResource, refusal } from "./refuse.ts";

export const alwaysPullImages: AdmissionPlugin = {
  name: "AlwaysPullImages",
  handles: (request) => (request.operation === "CREATE" || request.operation === "UPDATE") && isResource(request, "pods") && hasNewImages(request),
  admit({ object }) {
    const { spec } = object as Pod;
    for (const [container] of containersOf(spec)) container.imagePullPolicy = "Always";
    for (const { image } of spec.volumes ?? []) if (image) image.pullPolicy = "Always";
  },
  validate(request) {
    const { spec } = request.object as Pod;
    const wrong = containersOf(spec).filter(([{ imagePullPolicy }]) => imagePullPolicy !== "Always").map(([{ imagePullPolicy }, path]) => notSupported(`${path}.imagePullPolicy`, imagePullPolicy ?? "", ["Always"]));
    const wrongVolumes = (spec.volumes ?? []).flatMap(({ image }, i) => (image && image.pullPolicy !== "Always" ? [notSupported(`spec.volumes[${i}].image.pullPolicy`, image.pullPolicy ?? "", ["Always"])] : []));
    const errors = [...wrong, ...wrongVolumes].map((error) => refusal(request, formatFieldError(error)).message);
    if (errors.length > 0) throw statusError({ code: 500, reason: "", message: aggregate(errors) }); // several refusals are none to upstream, and neither is one of several
  },
};

function containersOf({ initContainers = [], containers = [], ephemeralContainers = [] }: Pod["spec"]): readonly (readonly [Container | EphemeralContainer, string])[] {
  const listed = <T extends Container | EphemeralContainer>(list: readonly T[], name: string) => list.map((one, i) => [one, `spec.${name}[${i}]`] as const);
  return [...listed(initContainers, "initContainers"), ...listed(containers, "containers"), ...listed(ephemeralContainers, "ephemeralContainers")];
}

/** An update that brings no new image is left alone: the containers cannot be changed there. */
function hasNewImages({ operation, object, oldObject }: AdmissionRequest): boolean {
  if (operation !== "UPDATE" || !oldObject) return true;
  const known = new Set(containersOf((oldObject as Pod).spec).map(([{ image }]) => image));
  return containersOf((object as Pod).spec).some(([{ image }]) => !known.has(image));
}
