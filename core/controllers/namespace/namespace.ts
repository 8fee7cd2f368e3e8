/**
 * Empties a Namespace that is being deleted, then lets it go: pods first, then everything else that the server's discovery lists.
 *
 * It looks again when half the time is over that the content may take, and when the last pod of the namespace is gone: after each it would look at all that are left.
 *
 * API:    https://kubernetes.io/docs/concepts/overview/working-with-objects/namespaces/
 * Source: kubernetes v1.36 pkg/controller/namespace
 */
import type { Namespace, Pod } from "../../api/gen/core.v1.ts";
import { asDouble } from "../../api/meta/go-integer.ts";
import { formatGroupResource, formatGvr, parseApiVersion } from "../../api/meta/gvk.ts";
import { type ApiObject, isDeleting, namespaceOf, objectKey } from "../../api/meta/object-meta.ts";
import { isConflict, isNotFound, reasonOf } from "../../api/meta/status-error.ts";
import { parseTime } from "../../api/meta/time.ts";
import type { ResourceRef } from "../../client/client.ts";
import { discover, type ServedResource } from "../../client/discovery.ts";
import { NAMESPACES, PODS } from "../../client/resources.ts";
import { type Controller, itself, mapped, type Next } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { messageOf } from "../pod-control.ts";
import { isTerminal } from "../pod-state.ts";
import { deletionConditions, type Progress } from "./conditions.ts";

const FINALIZER = "kubernetes";

/** How long the content is left alone: who deletes a manifest that begins with its Namespace finds the rest of it still there. */
const GRACE_MS = 5000; // namespace_controller.go namespaceDeletionGracePeriod

/** How long an object with a finalizer is given before we look again. */
const FINALIZER_SECONDS = 15;

/** What is left of one resource, and how many seconds it may take. */
interface Left {
  readonly count: number;
  readonly finalizers: readonly string[];
  readonly seconds: number;
  /** Nothing says why it is still there. */
  readonly unexpected?: Error;
}

export function namespaceController({ client, informers, clock }: Pick<ControllerDeps, "client" | "informers" | "clock">): Controller {
  const namespaces = informers.of(NAMESPACES);
  const pods = informers.of(PODS);
  const namespaceClient = client.resource(NAMESPACES);

  return {
    name: "namespace",
    workers: 10,
    retry: { minMs: 5, maxMs: 60_000 }, // namespace_controller.go nsControllerRateLimiter
    watches: [
      itself(namespaces),
      mapped(pods, ({ object, deleted }) => {
        const key = objectKey("", namespaceOf(object));
        const namespace = deleted ? namespaces.get(key) : undefined;
        return namespace !== undefined && isDeleting(namespace) && pods.inNamespace(namespaceOf(object))[Symbol.iterator]().next().done ? [key] : [];
      }),
    ],

    async reconcile(key, { signal, log }): Promise<Next> {
      const known = namespaces.get(key);
      if (known === undefined || !isDeleting(known)) return;
      try {
        let namespace = await namespaceClient.get(known, { signal });
        if (!isDeleting(namespace)) return;
        if (namespace.status?.phase !== "Terminating") {
          namespace = await namespaceClient.updateStatus({ ...namespace, status: { ...namespace.status, phase: "Terminating" } }, { signal });
        }
        if ((namespace.spec?.finalizers ?? []).length === 0) return;
        const earlyMs = (parseTime(namespace.metadata.deletionTimestamp ?? "") ?? 0) + GRACE_MS - clock.nowMs();
        if (earlyMs > 0 && earlyMs <= GRACE_MS) return { againInMs: earlyMs }; // a clock that was put back since says nothing
        const { seconds, errors } = await empty(namespace, signal);
        if (errors.length > 0) throw errors.length === 1 ? errors[0] : new AggregateError(errors, messageOf(errors[0]));
        if (seconds > 0) {
          log.debug("content remains", { seconds });
          return { againInMs: (Math.floor(seconds / 2) + 1) * 1000 };
        }
        await finalize(namespace, signal);
      } catch (error) {
        if (!isNotFound(error)) throw error; // the namespace is gone
      }
    },
  };

  /** Deletes all there is, tells in the status what is left. */
  async function empty(namespace: Readonly<Namespace>, signal: AbortSignal): Promise<{ readonly seconds: number; readonly errors: readonly unknown[] }> {
    const { resources, failed } = await discover(client, signal);
    const deletable = resources.filter(({ namespaced, verbs }) => namespaced && verbs.includes("delete"));
    const errors: unknown[] = failed.size === 0 ? [] : [new Error(`discovery failed for ${[...failed.keys()].join(", ")}`)];
    const contentErrors: string[] = [];
    const remaining = new Map<string, number>();
    const finalizers = new Map<string, number>();
    const unserved: ServedResource[] = [];
    let seconds = 0;
    const fail = (error: unknown): void => {
      errors.push(error);
      contentErrors.push(messageOf(error));
    };
    const take = async (resource: ServedResource): Promise<void> => {
      try {
        const left = await deleteAll(resource, namespace, signal);
        seconds = Math.max(seconds, left.seconds);
        if (left.count > 0) remaining.set(`${resource.plural}.${resource.group}`, left.count);
        for (const finalizer of left.finalizers) finalizers.set(finalizer, (finalizers.get(finalizer) ?? 0) + 1);
        if (left.unexpected) fail(left.unexpected);
      } catch (error) {
        if (signal.aborted) throw error;
        if (isNotFound(error)) unserved.push(resource);
        else fail(error);
      }
    };
    const isPods = ({ group, plural }: ResourceRef): boolean => group === "" && plural === "pods";
    for (const resource of deletable.filter(isPods)) await take(resource);
    // While pods run they may need their configuration, volumes and policies: those wait.
    const podsRemain = remaining.size > 0;
    if (!podsRemain) for (const resource of deletable.filter((one) => !isPods(one))) await take(resource);
    errors.push(...(await servedOtherwise(unserved, signal)));
    await tell(namespace, { discoveryFailed: failed, contentErrors, remaining: podsRemain ? undefined : remaining, finalizers }, signal);
    return { seconds, errors };
  }

  /** What is served no more holds nothing, unless it is in another version now, or nobody knows: then there is to be another look. */
  async function servedOtherwise(unserved: readonly ServedResource[], signal: AbortSignal): Promise<readonly Error[]> {
    if (unserved.length === 0) return [];
    const { resources, failed } = await discover(client, signal);
    const failedGroups = new Set([...failed.keys()].map((groupVersion) => parseApiVersion(groupVersion).group));
    return unserved.filter(({ group, version, plural }) => failedGroups.has(group) || resources.some((one) => one.group === group && one.plural === plural && one.version !== version))
      .map(({ group, plural }) => new Error(`${formatGroupResource({ group, resource: plural })} changed while it was looked for`));
  }

  /** Throws 404 for a resource that is not served, or not in this version any more. */
  async function deleteAll(resource: ServedResource, namespace: Readonly<Namespace>, signal: AbortSignal): Promise<Left> {
    const name = namespace.metadata.name;
    const objects = client.resource<ApiObject>(resource);
    const canList = resource.verbs.includes("list");
    const list = async (): Promise<readonly Readonly<ApiObject>[]> => (canList ? (await objects.list({ namespace: name }, { signal }).catch(unlessNotAllowed))?.items ?? [] : []);
    const before = await list();
    if (canList && before.length === 0) return { count: 0, finalizers: [], seconds: 0 };
    const seconds = resource.group === "" && resource.plural === "pods" ? gracefulSeconds(before as readonly Readonly<Pod>[], namespace) : 0;
    const options = { propagationPolicy: "Background" } as const;
    let done: unknown;
    if (resource.verbs.includes("deletecollection")) done = await objects.deleteCollection({ namespace: name }, options, { signal }).then(() => true, unlessUnsupported);
    if (done === undefined) for (const object of before) await objects.delete(object, options, { signal }).catch(unlessUnsupported);
    const after = await list();
    const finalizers = after.flatMap(({ metadata }) => metadata.finalizers ?? []);
    if (after.length === 0) return { count: 0, finalizers: [], seconds: 0 };
    if (seconds > 0) return { count: after.length, finalizers, seconds };
    if (finalizers.length > 0) return { count: after.length, finalizers, seconds: FINALIZER_SECONDS };
    const unexpected = new Error(`unexpected items still remain in namespace: ${name} for gvr: ${formatGvr({ ...resource, resource: resource.plural })}`);
    return { count: after.length, finalizers, seconds, unexpected };
  }

  /** The longest grace period among the pods that run, as long as it is not over. */
  function gracefulSeconds(held: readonly Readonly<Pod>[], { metadata }: Readonly<Namespace>): number {
    const seconds = Math.max(0, ...held.filter((pod) => !isTerminal(pod)).map(({ spec }) => asDouble(spec.terminationGracePeriodSeconds ?? 0)));
    return clock.nowMs() - (parseTime(metadata.deletionTimestamp ?? "") ?? 0) >= seconds * 1000 ? 0 : seconds;
  }

  async function tell(namespace: Readonly<Namespace>, progress: Progress, signal: AbortSignal): Promise<void> {
    const before = namespace.status?.conditions ?? [];
    const conditions = deletionConditions(before, progress, clock.nowMs());
    if (conditions === before) return;
    const status = { ...namespace.status, phase: "Terminating" as const, conditions: [...conditions] };
    await namespaceClient.updateStatus({ ...namespace, status }, { signal }).catch((error: unknown) => { if (signal.aborted) throw error; }); // told next time: whoever refuses it, or was quicker, does not keep the namespace
  }

  async function finalize(namespace: Readonly<Namespace>, signal: AbortSignal): Promise<void> {
    for (let latest = namespace; ;) {
      const finalizers = (latest.spec?.finalizers ?? []).filter((finalizer) => finalizer !== FINALIZER);
      try {
        await namespaceClient.updateSubresource(latest, "finalize", { ...latest, spec: { ...latest.spec, finalizers } }, { signal });
        return;
      } catch (error) {
        if (!isConflict(error)) throw error;
        latest = await namespaceClient.get(latest, { signal });
        if (latest.metadata.uid !== namespace.metadata.uid) return;
      }
    }
  }
}

/** No such verb. */
function unlessNotAllowed(error: unknown): undefined {
  if (reasonOf(error) !== "MethodNotAllowed") throw error;
  return undefined;
}

/** No such verb, or no such object any more: nothing to delete there. */
function unlessUnsupported(error: unknown): undefined { return isNotFound(error) ? undefined : unlessNotAllowed(error); }
