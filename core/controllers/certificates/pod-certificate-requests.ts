/**
 * Removes PodCertificateRequests a quarter of an hour after they were made, whatever came of them: the kubelet that asked has its answer by then, or asks anew.
 *
 * Source: kubernetes v1.36 pkg/controller/certificates/cleaner/pcrcleaner.go, cmd/kube-controller-manager/app/certificates.go
 */
import type { ObjectKey } from "../../api/meta/object-meta.ts";
import { isConflict, isNotFound } from "../../api/meta/status-error.ts";
import { POD_CERTIFICATE_REQUESTS } from "../../client/resources.ts";
import { Elapsed } from "../../lifecycle/elapsed.ts";
import { type Controller, itself, type Next } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";

const AGE_MS_MAX = 15 * 60_000;

export function podCertificateRequestCleaner({ client, informers, clock }: Pick<ControllerDeps, "client" | "informers" | "clock">): Controller {
  const requests = informers.of(POD_CERTIFICATE_REQUESTS);
  const requestClient = client.resource(POD_CERTIFICATE_REQUESTS);
  const ages = new Map<ObjectKey, Elapsed>(); // of those there are
  return {
    name: "podcertificaterequestcleaner",
    workers: 1,
    watches: [itself(requests)],
    async reconcile(key, { signal }): Promise<Next> {
      const request = requests.get(key);
      if (!request) { ages.delete(key); return; }
      const age = ages.get(key) ?? new Elapsed(clock);
      ages.set(key, age);
      const leftMs = AGE_MS_MAX - age.sinceMs(request.metadata.creationTimestamp);
      if (leftMs > 0) return { againInMs: leftMs };
      await requestClient.delete(request, { preconditions: { uid: request.metadata.uid } }, { signal }).catch((error: unknown) => { if (!isNotFound(error) && !isConflict(error)) throw error; }); // gone, or another has its name
    },
  };
}
