/**
 * Gets the image of a container, by the container's policy, and says so in events.
 *
 * After a failed pull the pod waits: 10 s, doubling to 5 minutes. Pulls of one image are shared; all pulls come one after the other unless
 * the settings say otherwise.
 *
 * Source: kubernetes v1.36 pkg/kubelet/images/{image_manager,puller,types}.go
 */
import type { ObjectReference, Pod } from "../../../core/api/gen/core.v1.ts";
import { aggregate } from "../../../core/api/meta/aggregate.ts";
import { formatDurationMs } from "../../../core/api/meta/duration.ts";
import { backoffMs } from "../../../core/lifecycle/backoff.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import { Places } from "../../../core/lifecycle/places.ts";
import { type Cri, CriError } from "../../cri/client.ts";
import type { PullCredential, PullRecords } from "./pull-records.ts";
import type { Image, PodSandboxConfig } from "../../cri/gen/runtime.v1.ts";
import type { EventRecorder } from "../../../core/client/events.ts";
import { withDefaultTag } from "../../cri/image-name.ts";

export type PullFailure = "InvalidImageName" | "ImageInspectError" | "ErrImageNeverPull" | "ErrImagePull" | "ImagePullBackOff" | "RegistryUnavailable" | "SignatureValidationFailed";

/** `reason` is what the container waits with. */
export class ImageError extends Error {
  readonly reason: PullFailure;
  constructor(reason: PullFailure, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "ImageError";
    this.reason = reason;
  }
}

export interface ImageRequest {
  readonly pod: Pod;
  readonly image: string;
  readonly policy: string | undefined;
  readonly about: ObjectReference;
  readonly sandbox: PodSandboxConfig;
  readonly runtimeHandler: string;
  readonly credentials: (image: string) => Promise<readonly PullCredential[]>;
}

const BACKOFF = { minMs: 10_000, maxMs: 300_000 };
/** After so long without a failure the wait is short again, however often it was pulled meanwhile. Source: client-go util/flowcontrol/backoff.go hasExpired */
const STABLE_MS = 2 * BACKOFF.maxMs;
/** More is no name of an image. */
const IMAGE_LENGTH_SHOWN = 1_024;
/** Entries of pods that are gone are dropped when this many have piled up. */
const BACKOFF_ENTRIES_MAX = 1_000;

export interface ImagePuller {
  /** The image, once it is there. Throws ImageError. */
  ensure(request: ImageRequest, signal: AbortSignal): Promise<Image>;
  /** When this pod may try again; undefined: now. */
  waitsUntilMs(podUid: string, image: string): number | undefined;
}

/** Whether an image was on the node, and whether it had to be pulled even so. */
export interface Ensured { readonly isPresent?: boolean; readonly mustPull?: boolean }

interface Deps {
  readonly cri: Pick<Cri, "call">;
  readonly clock: Clock;
  readonly events: EventRecorder;
  readonly serialize: boolean;
  /** Where they are not serialized. */
  readonly parallelMax?: number | undefined;
  /** Absent: whatever is on the node is everybody's. */
  readonly records?: PullRecords | undefined;
  /** In uptime, without the wait for its turn. */
  readonly onPulled?: ((podUid: string, pull: { readonly beganMs: number; readonly endedMs: number; readonly sizeBytes: number }) => void) | undefined;
  /** What was found out on the way; absent: it did not get so far. */
  readonly onEnsured?: ((policy: string, found: Ensured) => void) | undefined;
}

export function imagePuller({ cri, clock, events, serialize, parallelMax = Number.POSITIVE_INFINITY, records, onPulled, onEnsured }: Deps): ImagePuller {
  const failures = new Map<string, { readonly count: number; readonly atMs: number; readonly message: string }>();
  const places = new Places(serialize ? 1 : parallelMax);

  async function inspect(image: string, signal: AbortSignal): Promise<Image | undefined> {
    const answer = await cri.call("ImageService/ImageStatus", { image: { image } }, { signal });
    return answer.image?.id ? answer.image : undefined;
  }

  async function pullWithAny(image: string, { sandbox, runtimeHandler, pod, credentials }: ImageRequest, signal: AbortSignal): Promise<PullCredential | undefined> {
    const spec = { image, annotations: { ...pod.metadata.annotations }, runtime_handler: runtimeHandler };
    const auths = await credentials(image);
    const errors: Error[] = [];
    for (const credential of auths.length > 0 ? auths : [undefined]) {
      const auth = credential?.auth;
      try {
        await cri.call("ImageService/PullImage", { image: spec, sandbox_config: sandbox, ...(auth ? { auth } : {}) }, { signal, timeoutMs: 0 });
        return credential;
      } catch (error) {
        errors.push(error as Error);
        if (signal.aborted) break;
      }
    }
    throw new Error(aggregate(errors.map(refusalText)), { cause: errors.at(-1) });
  }

  async function pull(image: string, request: ImageRequest, signal: AbortSignal): Promise<Image> {
    const { image: asked, about } = request;
    const key = `${request.pod.metadata.uid}_${asked}`;
    const untilMs = waitsUntilMs(request.pod.metadata.uid, asked);
    if (untilMs !== undefined) {
      const message = `Back-off pulling image "${asked}"`;
      events.event(about, "Normal", "BackOff", message);
      throw new ImageError("ImagePullBackOff", `${message}: ${failures.get(key)?.message ?? ""}`);
    }
    events.event(about, "Normal", "Pulling", `Pulling image "${asked}"`);
    const askedMs = clock.uptimeMs();
    let startedMs = askedMs;
    let used: PullCredential | undefined;
    await records?.begin(image);
    try {
      await places.take(signal);
      startedMs = clock.uptimeMs();
      used = await pullWithAny(image, request, signal).finally(() => places.give());
    } catch (cause) {
      await records?.failed(image); // also of a pod that went meanwhile: what is imported later is not taken for what it pulled
      signal.throwIfAborted();
      const detail = (cause as Error).message;
      events.event(about, "Warning", "Failed", `Failed to pull image "${asked}": ${detail}`);
      const failure = failureOf(asked, detail, cause);
      const before = failures.get(key);
      if (failures.size >= BACKOFF_ENTRIES_MAX) for (const [old, { atMs }] of failures) if (clock.nowMs() - atMs > STABLE_MS) failures.delete(old);
      failures.set(key, { count: before && clock.nowMs() - before.atMs <= STABLE_MS ? before.count + 1 : 1, atMs: clock.nowMs(), message: `${failure.reason}: ${failure.message}` });
      throw failure;
    }
    const endedMs = clock.uptimeMs();
    let pulled: Image | undefined;
    try {
      pulled = await inspect(image, signal);
    } catch (error) {
      records?.unsettled(image);
      throw error;
    }
    if (!pulled) {
      await records?.failed(image);
      throw new ImageError("ErrImagePull", `image "${asked}" is not there after it was pulled`);
    }
    await records?.pulled(image, pulled.id ?? "", used);
    onPulled?.(request.pod.metadata.uid, { beganMs: startedMs, endedMs, sizeBytes: Number(pulled.size ?? 0) });
    events.event(about, "Normal", "Pulled", `Successfully pulled image "${asked}" in ${wholeMs(endedMs - startedMs)} (${wholeMs(endedMs - askedMs)} including waiting). Image size: ${pulled.size ?? 0} bytes.`);
    return pulled;
  }

  function waitsUntilMs(podUid: string, image: string): number | undefined {
    const failure = failures.get(`${podUid}_${image}`);
    if (!failure || failure.atMs > clock.nowMs()) return undefined; // the clock was set back since: nobody waits until it is there again
    const untilMs = failure.atMs + backoffMs(failure.count, BACKOFF);
    return untilMs > clock.nowMs() ? untilMs : undefined;
  }

  async function ensure(request: ImageRequest, told: { isPresent?: boolean; mustPull?: boolean }, signal: AbortSignal): Promise<Image> {
    const { image: asked, about, policy = "IfNotPresent" } = request;
    const image = parsed(request, events);
    const pullIt = async (): Promise<Image> => {
      told.mustPull = true;
      return await pull(image, request, signal);
    };
    if (policy === "Always") return await pullIt();
    let found: Image | undefined;
    try {
      found = await inspect(image, signal);
    } catch (cause) {
      signal.throwIfAborted();
      const message = `Failed to inspect image "": ${(cause as Error).message}`;
      events.event(about, "Warning", "InspectFailed", message);
      throw new ImageError("ImageInspectError", message, { cause });
    }
    told.isPresent = found !== undefined;
    if (found && records && !(await records.mayUse(image, { id: found.id ?? "", pinned: found.pinned }, () => request.credentials(image)))) {
      if (policy === "Never") throw notPresent(request, events); // nor is it said that it is here
      return await pullIt(); // only the registry can tell
    }
    if (found) {
      told.mustPull = false;
      events.event(about, "Normal", "Pulled", `Container image "${asked}" already present on machine and can be accessed by the pod`);
      return found;
    }
    if (policy !== "Never") return await pullIt();
    throw notPresent(request, events);
  }

  return {
    waitsUntilMs,
    async ensure(request, signal) {
      const told: { isPresent?: boolean; mustPull?: boolean } = {};
      try {
        return await ensure(request, told, signal);
      } finally {
        onEnsured?.(request.policy ?? "IfNotPresent", told);
      }
    },
  };
}

function notPresent({ image, about }: ImageRequest, events: EventRecorder): ImageError {
  const message = `Container image "${image}" is not present with pull policy of Never`;
  events.event(about, "Warning", "ErrImageNeverPull", message);
  return new ImageError("ErrImageNeverPull", message);
}

function parsed({ image, about }: ImageRequest, events: EventRecorder): string {
  try {
    return withDefaultTag(image);
  } catch (cause) {
    const message = `Failed to apply default image tag "${image.slice(0, IMAGE_LENGTH_SHOWN)}": ${(cause as Error).message}`;
    events.event(about, "Warning", "InspectFailed", message);
    throw new ImageError("InvalidImageName", message, { cause });
  }
}

/** Without the code where that says nothing: what the runtime knows by a name of its own begins with that name. Source: kubernetes v1.36 staging/src/k8s.io/cri-client/pkg/remote_image.go (pullImageV1) */
function refusalText(error: Error): string { return error instanceof CriError && error.code === "Unknown" ? error.detail : error.message; }

function failureOf(image: string, detail: string, cause: unknown): ImageError {
  for (const [reason, why] of [["RegistryUnavailable", "the registry is unavailable"], ["SignatureValidationFailed", "the signature validation failed"]] as const) {
    const prefix = detail.startsWith(reason) ? reason : undefined;
    if (prefix) return new ImageError(reason, `image pull failed for ${image} because ${why}${detail.slice(prefix.length)}`, { cause });
  }
  return new ImageError("ErrImagePull", detail, { cause });
}

function wholeMs(ms: number): string { return formatDurationMs(Math.floor(ms)); }
