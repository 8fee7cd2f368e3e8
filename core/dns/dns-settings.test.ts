import { expect, test } from "vitest";
import { dnsSettings, serversFor, splitServer } from "./dns-settings.ts";

const settings = dnsSettings({ data: { stubDomains: '{"acme.example": ["10.0.0.53:5353", "FD00:0::53"], "eu.acme.example.": ["[fd00::54]:53"], "bad": ["nobody"]}', upstreamNameservers: '["192.0.2.53"]' } });

test.each([
  ["acme.example", ["10.0.0.53:5353", "fd00::53"]], ["www.Acme.example.", ["10.0.0.53:5353", "fd00::53"]], ["x.eu.acme.example", ["fd00::54"]],
  ["notacme.example", ["192.0.2.53"]], ["bad", ["192.0.2.53"]],
])("%s is asked of %j", (name, servers) => expect(serversFor(settings, name)).toEqual(servers));

test("what cannot be read is named and left out", () => {
  expect(settings.problems).toEqual(['stubDomains[bad]: "nobody" is no address of a server', "stubDomains[bad]: must be a list of servers"]);
  expect(dnsSettings({ data: { stubDomains: "[]", upstreamNameservers: "x" } })).toMatchObject({ upstreams: undefined, problems: [expect.stringMatching(/^upstreamNameservers: /), "stubDomains: must be a map of domains to lists of servers"] });
  expect(dnsSettings({})).toEqual({ upstreams: undefined, stubs: new Map(), problems: [] });
  expect(["10.0.0.1", "10.0.0.1:54", "[fd00::1]:54", "fe80::1%eth0"].map((server) => splitServer(server, 53))).toEqual([{ address: "10.0.0.1", port: 53 }, { address: "10.0.0.1", port: 54 }, { address: "fd00::1", port: 54 }, { address: "fe80::1%eth0", port: 53 }]);
});
