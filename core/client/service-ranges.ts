/**
 * The ranges Services have addresses out of: those of all ServiceCIDR objects, which may come and go while the cluster runs. Of a family without any, and until they
 * have been heard of, what this machine was started with.
 *
 * One that is being deleted counts until it is gone: it stays as long as a Service has an address of it.
 *
 * Source: kubernetes v1.36 pkg/proxy/config ServiceCIDRConfig (all of them, ready or not)
 */
import type { ServiceCIDR } from "../api/gen/networking.v1.ts";
import { type Family, parseCidr, withoutOverlaps } from "../net/cidr.ts";
import type { Informers } from "./informer-factory.ts";
import { SERVICE_CIDRS } from "./resources.ts";

export interface ServiceRanges {
  /** None inside another, in a fixed order. */
  list(): readonly string[];
  of(family: Family): readonly string[];
  /** Called when `list` has changed. Returns what removes the handler. */
  onChange(handler: () => void): () => void;
}

export function serviceRanges(informers: Pick<Informers, "of">, configured: readonly string[]): ServiceRanges {
  const objects = informers.of(SERVICE_CIDRS);
  function of(family: Family): readonly string[] {
    const isOurs = (cidr: string): boolean => parseCidr(cidr)?.family === family;
    const found = [...objects.list()].flatMap(({ spec }: Readonly<ServiceCIDR>) => spec.cidrs ?? []).filter(isOurs);
    return withoutOverlaps(found.length > 0 ? found : configured.filter(isOurs));
  }
  const list = (): readonly string[] => [...of(4), ...of(6)];
  return {
    list, of,
    onChange(handler) {
      let before = list().join();
      return objects.onChange(() => {
        const after = list().join();
        if (after === before) return;
        before = after;
        handler();
      });
    },
  };
}
