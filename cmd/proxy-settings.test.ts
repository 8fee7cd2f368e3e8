import { expect, test } from "vitest";
import { proxySettings } from "./proxy-settings.ts";

test("kube-proxy's defaults", () => {
  expect(proxySettings([], { ipv6: false })).toEqual({
    healthz: { address: "0.0.0.0", port: 10_256 }, status: { address: "127.0.0.1", port: 10_249 }, conntrack: { perCpu: 32_768, min: 131_072, establishedSeconds: 86_400, closeWaitSeconds: 3_600 },
  });
  expect(proxySettings([], { ipv6: true }).healthz?.address).toBe("::");
});

test("what is asked for instead", () => {
  const given = ["metrics-bind-address=0.0.0.0", "--healthz-bind-address=[::1]:1256", "conntrack-max-per-core=0", "conntrack-tcp-timeout-close-wait=1m30s", "proxy-mode=nftables", "conntrack-min=5", "conntrack-min=7"];
  expect(proxySettings(given, { ipv6: false })).toEqual({
    healthz: { address: "::1", port: 1256 }, status: { address: "0.0.0.0", port: 10_249 }, conntrack: { perCpu: 0, min: 7, establishedSeconds: 86_400, closeWaitSeconds: 90 },
  });
  expect(proxySettings(["healthz-bind-address="], { ipv6: false }).healthz).toBeUndefined();
});

test.each([
  ["proxy-mode=ipvs", "services are rules of nftables"], ["nodeport-addresses=10.0.0.0/8", "give --nodeport-addresses instead"], ["conntrack-min=many", 'must be a whole number, not "many"'],
  ["metrics-bind-address=here:1", "must be an address"], ["conntrack-tcp-timeout-established=1", "must be a duration such as 24h"], ["make-coffee=1", "not a setting we have; there are healthz-bind-address"],
])("--kube-proxy-arg %s is refused", (text, why) => expect(() => proxySettings([text], { ipv6: false })).toThrow(why));
