/** Carries out a SlicePlan, and waits until the informer has seen it. */
import type { EndpointSlice } from "../../api/gen/discovery.v1.ts";
import { ifFound } from "../../api/meta/if-found.ts";
import { isNamespaceTerminating } from "../../api/meta/status-error.ts";
import type { ResourceClient } from "../../client/client.ts";
import type { Informer } from "../../client/informer.ts";
import { messageOf } from "../pod-control.ts";
import type { SlicePlan } from "./plan.ts";

interface Options {
  readonly client: ResourceClient<EndpointSlice>;
  readonly slices: Informer<EndpointSlice>;
  /** "Service default/web": named in errors. */
  readonly owner: string;
  /** An owner that is being deleted gets no new slices. */
  readonly mayCreate: boolean;
  readonly signal: AbortSignal;
}

export async function writeSlices({ create, update, remove }: SlicePlan, { client, slices, owner, mayCreate, signal }: Options): Promise<void> {
  const written: Readonly<EndpointSlice>[] = [];
  const removed: Readonly<EndpointSlice>[] = [];
  const attempt = async <R>(what: string, work: Promise<R>): Promise<R> => {
    try {
      return await work;
    } catch (cause) {
      if (signal.aborted || isNamespaceTerminating(cause)) throw cause;
      throw new Error(`failed to ${what} EndpointSlice for ${owner}: ${messageOf(cause)}`, { cause });
    }
  };
  try {
    if (mayCreate) for (const slice of create) written.push(await attempt("create", client.create(slice, { signal })));
    for (const slice of update) written.push(await attempt(`update ${slice.metadata.name}`, client.update(slice, { signal })));
    for (const slice of remove) {
      await attempt(`delete ${slice.metadata.name}`, ifFound(client.delete(slice, {}, { signal })));
      removed.push(slice);
    }
  } catch (error) {
    if (!isNamespaceTerminating(error)) throw error;
  } finally {
    await Promise.all([slices.caughtUp(written, signal), slices.sawDeleted(removed, signal)]);
  }
}
