import { expect, test } from "vitest";
import type { Namespace, Service } from "../api/gen/core.v1.ts";
import type { Endpoint, EndpointSlice } from "../api/gen/discovery.v1.ts";
import { formatIp, ipFromBytes, parseCidr } from "../net/cidr.ts";
import { staticInformer, stored } from "../../test/static-informer.ts";
import { type ResourceRecord, TYPE } from "./wire.ts";
import { Zone } from "./zone.ts";

function service(name: string, spec: Service["spec"]): Service {
  return stored<Service>("v1", "Service", `default/${name}`, { spec: { ports: [{ name: "http", port: 80, protocol: "TCP" }], ...(spec!.clusterIP && { clusterIPs: [spec!.clusterIP] }), ...spec } });
}
function slice(of: string, endpoints: Endpoint[], addressType = "IPv4"): EndpointSlice {
  return stored<EndpointSlice>("discovery.k8s.io/v1", "EndpointSlice", `default/${of}-${addressType}`, { metadata: { labels: { "kubernetes.io/service-name": of } }, addressType, ports: [{ name: "http", port: 8080, protocol: "TCP" }], endpoints });
}

const zone = new Zone({
  domain: "cluster.local", cidrs: [parseCidr("10.42.0.0/16")!, parseCidr("10.43.0.0/16")!, parseCidr("fd42::/48")!],
  namespaces: staticInformer(stored<Namespace>("v1", "Namespace", "default")),
  services: staticInformer(
    stored<Service>("v1", "Service", "kube-system/kube-dns", { spec: { clusterIP: "10.43.0.10", clusterIPs: ["10.43.0.10"] } }),
    service("web", { clusterIP: "10.43.0.5", clusterIPs: ["10.43.0.5", "fd43::5"] }), service("db", { clusterIP: "None" }), service("empty", { clusterIP: "None" }), service("portless", { clusterIP: "None", ports: [] }),
    service("ext", { type: "ExternalName", externalName: "Example.test." }), service("extlong", { type: "ExternalName", externalName: `${"a".repeat(64)}.test` }), service("extip", { type: "ExternalName", externalName: "1.2.3.4" }),
  ),
  slices: staticInformer(
    slice("web", [{ addresses: ["10.42.0.9"] }]), slice("portless", [{ addresses: ["10.42.1.9"], hostname: "one" }]),
    slice("db", [{ addresses: ["10.42.0.2"], hostname: "db-0" }, { addresses: ["10.42.0.3"] }, { addresses: ["10.42.0.4"], conditions: { ready: false } }]),
    slice("db", [{ addresses: ["fd42::2"], hostname: "db-0" }], "IPv6"), slice("web", [{ addresses: ["fd42::"] }], "IPv6"),
  ),
});

function text(record: ResourceRecord): string {
  const { type } = record;
  if (type === "A" || type === "AAAA") return `${type} ${formatIp(ipFromBytes(record.address)!)}`;
  if (type === "SRV") return `SRV ${record.weight} ${record.port} ${record.target}`;
  if (type === "TXT") return `TXT ${record.texts.join()}`;
  return "primary" in record ? `SOA ${record.primary}` : "target" in record ? `${type} ${record.target}` : type;
}

/** "?": not ours; else the answers, or the code where there are none. */
function ask(question: string): string {
  const [name = "", type = "A"] = question.split(" ");
  const answer = zone.answer(name, TYPE[type as keyof typeof TYPE]);
  if (!answer) return "?";
  if (answer.answers.length === 0) expect(answer.authorities.map(({ type: of }) => of)).toEqual(["SOA"]);
  for (const { type: of, ttl } of [...answer.answers, ...answer.authorities, ...answer.additionals]) expect(ttl).toBe(of === "TXT" ? 28_800 : 30);
  if (answer.answers.length === 0) return answer.rcode === 3 ? "NXDOMAIN" : "NODATA";
  return [...answer.answers.map(text), ...answer.additionals.map((record) => `+ ${text(record)}`)].join(", ");
}

test.each([
  ["web.default.svc.cluster.local", "A 10.43.0.5"],
  ["web.default.svc.cluster.local AAAA", "AAAA fd43::5"],
  ["web.default.svc.cluster.local TXT", "NODATA"],
  ["web.default.svc.cluster.local SRV", "SRV 50 80 web.default.svc.cluster.local, + A 10.43.0.5, + AAAA fd43::5"],
  ["_http._tcp.web.default.svc.cluster.local SRV", "SRV 50 80 web.default.svc.cluster.local, + A 10.43.0.5, + AAAA fd43::5"],
  ["_http._tcp.web.default.svc.cluster.local A", "A 10.43.0.5"],
  ["http.tcp.web.default.svc.cluster.local AAAA", "AAAA fd43::5"],
  ["_http._tcp.web.default.svc.cluster.local TXT", "NODATA"],
  ["_http._tcp.db.default.svc.cluster.local A", "A 10.42.0.2, A 10.42.0.3"],
  ["_http._tcp.empty.default.svc.cluster.local A", "NXDOMAIN"],
  ["web.default.svc.cluster.local ANY", "NODATA"],
  ["_http._tcp.web.default.svc.cluster.local ANY", "NODATA"],
  ["_tcp.web.default.svc.cluster.local ANY", "NXDOMAIN"],
  ["ext.default.svc.cluster.local ANY", "NODATA"],
  ["nope.default.svc.cluster.local ANY", "NXDOMAIN"],
  ["cluster.local ANY", "NODATA"],
  ["_http._udp.web.default.svc.cluster.local SRV", "NXDOMAIN"],
  ["_tcp.web.default.svc.cluster.local", "NXDOMAIN"],
  ["10-42-0-9.web.default.svc.cluster.local", "A 10.42.0.9"],
  ["fd42--0.web.default.svc.cluster.local AAAA", "AAAA fd42::"],
  ["db.default.svc.cluster.local", "A 10.42.0.2, A 10.42.0.3"],
  ["db-0.db.default.svc.cluster.local", "A 10.42.0.2"],
  ["db-0.db.default.svc.cluster.local AAAA", "AAAA fd42::2"],
  ["10-42-0-3.db.default.svc.cluster.local AAAA", "NODATA"],
  ["10-42-0-4.db.default.svc.cluster.local", "NXDOMAIN"],
  ["_http._tcp.db.default.svc.cluster.local SRV", "SRV 33 8080 db-0.db.default.svc.cluster.local, SRV 33 8080 10-42-0-3.db.default.svc.cluster.local, + A 10.42.0.2, + A 10.42.0.3, + AAAA fd42::2"],
  ["empty.default.svc.cluster.local", "NXDOMAIN"],
  ["ext.default.svc.cluster.local", "CNAME example.test"],
  ["ext.default.svc.cluster.local CNAME", "CNAME example.test"],
  ["portless.default.svc.cluster.local", "A 10.42.1.9"],
  ["portless.default.svc.cluster.local SRV", "NODATA"],
  ["one.portless.default.svc.cluster.local SRV", "NODATA"],
  ["empty.default.svc.cluster.local SRV", "NXDOMAIN"],
  ["_http._tcp.empty.default.svc.cluster.local SRV", "NXDOMAIN"],
  ["ext.default.svc.cluster.local SRV", "NODATA"],
  ["extip.default.svc.cluster.local", "NXDOMAIN"],
  ["extlong.default.svc.cluster.local", "NXDOMAIN"],
  ["nope.default.svc.cluster.local", "NXDOMAIN"],
  ["a.b.web.default.svc.cluster.local", "NXDOMAIN"],
  ["web.nowhere.svc.cluster.local", "NXDOMAIN"],
  ["default.svc.cluster.local", "NODATA"],
  ["nowhere.svc.cluster.local", "NXDOMAIN"],
  ["svc.cluster.local", "NODATA"],
  ["cluster.local SOA", "SOA ns.dns.cluster.local"],
  ["cluster.local NS", "NS kube-dns.kube-system.svc.cluster.local, + A 10.43.0.10"],
  ["ns.dns.cluster.local", "A 10.43.0.10"],
  ["dns.cluster.local", "NXDOMAIN"],
  ["other.cluster.local", "NXDOMAIN"],
  ["dns-version.cluster.local TXT", "TXT 1.1.0"],
  ["10-42-0-77.default.pod.cluster.local", "A 10.42.0.77"],
  ["fd42--7.default.pod.cluster.local AAAA", "AAAA fd42::7"],
  ["any.thing.10-42-0-77.default.pod.cluster.local", "A 10.42.0.77"],
  ["one.too.many.10-42-0-77.default.pod.cluster.local", "NXDOMAIN"],
  ["10-42-0-77.nowhere.pod.cluster.local", "NXDOMAIN"],
  ["nonsense.default.pod.cluster.local", "NXDOMAIN"],
  ["5.0.43.10.in-addr.arpa PTR", "PTR web.default.svc.cluster.local"],
  ["2.0.42.10.in-addr.arpa PTR", "PTR db-0.db.default.svc.cluster.local"],
  ["2.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.2.4.d.f.ip6.arpa PTR", "PTR db-0.db.default.svc.cluster.local"],
  ["77.0.42.10.in-addr.arpa PTR", "NXDOMAIN"],
  ["8.8.8.8.in-addr.arpa PTR", "?"],
  ["example.test", "?"],
  ["notcluster.local", "?"],
])("%s → %s", (question, answer) => {
  expect(ask(question)).toBe(answer);
});

test("that there is none is said in the name of a zone that the name is in, or resolvers would not keep it in mind", () => {
  const apexes = (name: string): string[] => zone.answer(name, TYPE.PTR)!.authorities.map((record) => record.name);
  expect(apexes("nope.default.svc.cluster.local")).toEqual(["cluster.local"]);
  expect(apexes("77.0.42.10.in-addr.arpa")).toEqual(["in-addr.arpa"]);
  expect(apexes("7.7.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.2.4.d.f.ip6.arpa")).toEqual(["ip6.arpa"]);
  expect(zone.answer("5.0.43.10.in-addr.arpa", TYPE.TXT)!.authorities.map((record) => record.name)).toEqual(["in-addr.arpa"]);
});
