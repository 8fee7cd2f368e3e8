import { expect, test } from "vitest";
import type { Service } from "../../core/api/gen/core.v1.ts";
import type { EndpointSlice } from "../../core/api/gen/discovery.v1.ts";
import type { Informer } from "../../core/client/informer.ts";
import { endpointResolver } from "./resolver.ts";

/** An informer of one object, which counts how often it is asked. */
function informerOf<T extends object>(object: T) {
  const handlers = new Set<(change: { readonly object: T; readonly old?: T }) => void>();
  const state = { object, asked: 0 };
  const ask = (): T => {
    state.asked++;
    return state.object;
  };
  const informer = { get: ask, by: () => [ask()], onChange: (handler: (change: { readonly object: T; readonly old?: T }) => void) => (handlers.add(handler), () => void handlers.delete(handler)) };
  return {
    state, handlers, informer: informer as unknown as Informer<never>,
    change(next: T): void {
      const old = state.object;
      state.object = next;
      for (const handler of handlers) handler({ object: next, old });
    },
  };
}
const slice = (address: string, service = "web"): EndpointSlice => ({ metadata: { namespace: "d", labels: { "kubernetes.io/service-name": service } }, addressType: "IPv4", endpoints: [{ addresses: [address] }], ports: [{ port: 8080 }] }) as unknown as EndpointSlice;

test("endpoints are computed once, and again after a change of the Service or its slices", () => {
  const services = informerOf({ metadata: { namespace: "d", name: "web" }, spec: { ports: [{ port: 80 }] } } as unknown as Service), slices = informerOf(slice("10.0.0.1"));
  const { resolve, close } = endpointResolver(services.informer, slices.informer);
  const found = (mayBeAlias?: true): (string | undefined)[] | undefined => resolve({ namespace: "d", service: "web", port: 80, ...(mayBeAlias && { mayBeAlias }) })?.endpoints.map(({ address }) => address);
  expect([found(), found(), resolve({ namespace: "d", service: "web", port: 81 }), slices.state.asked]).toEqual([["10.0.0.1"], ["10.0.0.1"], undefined, 2]);
  slices.change(slice("10.0.0.2"));
  expect(found()).toEqual(["10.0.0.2"]);
  slices.change(slice("10.0.0.3", "other")); // and so not this one's any more
  expect(slices.state.asked).toBe(3);
  expect(found()).toEqual(["10.0.0.3"]);
  services.change({ metadata: { namespace: "d", name: "web" }, spec: { type: "ExternalName", externalName: "x.test" } } as unknown as Service);
  expect([found(), found(true)]).toEqual([undefined, ["x.test"]]);
  close();
  expect(services.handlers.size + slices.handlers.size).toBe(0);
});
