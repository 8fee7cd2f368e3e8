import { expect, test } from "vitest";
import { created, type Given, updated } from "../../../test/rehearse.ts";
import type { Resource } from "../generic/resource.ts";
import { ipAddresses, serviceRanges } from "./addresses.ts";
import { ingressClasses } from "./ingress-class.ts";
import { ingresses } from "./ingress.ts";
import { networkPolicies } from "./network-policy.ts";

const service = { service: { name: "web", port: { number: 80 } } };
const route = (path: Given): Given => ({ spec: { rules: [{ http: { paths: [{ pathType: "Prefix", path: "/", backend: service, ...path }] } }] } });
const policy = (spec: Given): Given => ({ spec: { podSelector: {}, ...spec } });

test("what the API fills in", () => {
  expect(created(networkPolicies, policy({ ingress: [{ ports: [{ port: 80 }] }] })).object.spec).toMatchObject({ policyTypes: ["Ingress"], ingress: [{ ports: [{ port: 80, protocol: "TCP" }] }] });
  expect(created(networkPolicies, policy({ egress: [{}] })).object.spec.policyTypes).toEqual(["Ingress", "Egress"]);
  const { object } = created(ingressClasses, { spec: { controller: "a.io/b", parameters: { kind: "K", name: "n" } } });
  expect(object.spec.parameters?.scope).toBe("Cluster");
  expect(updated(ingressClasses, object, { spec: {} }).errors).toEqual(['spec.controller: Invalid value: "": field is immutable', "spec.controller: Required value"]);
  expect(created(ingresses, route({})).object.status).toEqual({ loadBalancer: {} });
});

test.each<[Resource<never>, Given, string[]]>([
  [ingresses as never, route({}), []],
  [ingresses as never, { spec: {} }, ["spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"]],
  [ingresses as never, route({ path: "a//b/.." }), [
    'spec.rules[0].http.paths[0].path: Invalid value: "a//b/..": must be an absolute path', `spec.rules[0].http.paths[0].path: Invalid value: "a//b/..": must not contain '//'`,
    `spec.rules[0].http.paths[0].path: Invalid value: "a//b/..": cannot end with '/..'`,
  ]],
  [ingresses as never, route({ pathType: "Regex" }), ['spec.rules[0].http.paths[0].pathType: Unsupported value: "Regex": supported values: "Exact", "ImplementationSpecific", "Prefix"']],
  [ingresses as never, route({ pathType: "" }), ['spec.rules[0].http.paths[0].pathType: Unsupported value: "": supported values: "Exact", "ImplementationSpecific", "Prefix"']],
  [ingresses as never, route({ pathType: undefined }), ["spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified"]],
  [ingresses as never, route({ backend: { service: { name: "web" } } }), ["spec.rules[0].http.paths[0].backend: Required value: port name or number is required"]],
  [ingresses as never, { spec: { defaultBackend: { service: { name: "1web", port: { name: "http", number: 1 } } } } }, ['spec.defaultBackend: Invalid value: "": cannot set both port name & port number']],
  [ingresses as never, { spec: { defaultBackend: { resource: { apiGroup: "k8s.example.com", kind: "StorageBucket", name: "static" } }, rules: [{ host: "*.foo.com", http: { paths: [{ pathType: "ImplementationSpecific", backend: service }] } }], tls: [{ hosts: ["*.foo.com"], secretName: "t" }] } }, []],
  [ingresses as never, { spec: { defaultBackend: { ...service, resource: { kind: "StorageBucket", name: "static" } } } }, ['spec.defaultBackend: Invalid value: "": cannot set both resource and service backends']],
  [ingresses as never, { spec: { defaultBackend: service, rules: [{ host: "*.*.foo.com" }] } }, ["spec.rules[0].host: Invalid value: \"*.*.foo.com\": a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"]],
  [ingresses as never, { spec: { defaultBackend: service, rules: [{ host: "10.0.0.1" }] } }, ['spec.rules[0].host: Invalid value: "10.0.0.1": must be a DNS name, not an IP address']],
  [ingresses as never, { metadata: { annotations: { "kubernetes.io/ingress.class": "a" } }, spec: { ingressClassName: "b", defaultBackend: service } },
    ['annotations.kubernetes.io/ingress.class: Invalid value: "a": must match `ingressClassName` when both are specified']],
  [ingressClasses as never, { spec: { controller: "nginx" } }, ['spec.controller: Invalid value: "nginx": must be a domain-prefixed path (such as "acme.io/foo")']],
  [ingressClasses as never, { spec: { controller: "a.io/b", parameters: { kind: "K", name: "n", scope: "Namespace" } } }, ["spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'"]],
  [ingressClasses as never, { spec: { controller: "a.io/b", parameters: { kind: "K", name: "n", namespace: "x" } } }, ["spec.parameters.namespace: Forbidden: `parameters.scope` is set to 'Cluster'"]],
  [networkPolicies as never, policy({ ingress: [{ from: [{}] }] }), ["spec.ingress[0].from[0]: Required value: must specify a peer"]],
  [networkPolicies as never, policy({ ingress: [{ from: [{ podSelector: {}, ipBlock: { cidr: "10.0.0.0/8" } }] }] }), ["spec.ingress[0].from[0]: Forbidden: may not specify both ipBlock and another peer"]],
  [networkPolicies as never, policy({ egress: [{ to: [{ ipBlock: { cidr: "10.0.0.0/8", except: ["11.0.0.0/9", "10.1.0.0/16"] } }] }] }),
    ['spec.egress[0].to[0].ipBlock.except[0]: Invalid value: "11.0.0.0/9": must be a strict subset of `cidr`']],
  [networkPolicies as never, policy({ egress: [{ to: [{ ipBlock: { cidr: "::ffff:10.0.0.0/104", except: ["10.0.0.0/16", "::ffff:10.1.0.0/112"] } }] }] }), [
    'spec.egress[0].to[0].ipBlock.cidr: Invalid value: "::ffff:10.0.0.0/104": must not have an IPv4-mapped IPv6 address',
    'spec.egress[0].to[0].ipBlock.except[0]: Invalid value: "10.0.0.0/16": must be a strict subset of `cidr`',
    'spec.egress[0].to[0].ipBlock.except[1]: Invalid value: "::ffff:10.1.0.0/112": must not have an IPv4-mapped IPv6 address',
  ]],
  [networkPolicies as never, policy({ ingress: [{ ports: [{ port: 90, endPort: 80 }, { port: "http", endPort: 80 }] }] }), [
    "spec.ingress[0].ports[0].endPort: Invalid value: 90: must be greater than or equal to `port`", "spec.ingress[0].ports[1].endPort: Invalid value: 80: may not be specified when `port` is non-numeric",
  ]],
  [serviceRanges as never, { spec: { cidrs: ["10.0.0.0/16", "10.1.0.0/16"] } },
    ['spec.cidrs: Invalid value: ["10.0.0.0/16","10.1.0.0/16"]: may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64']],
  [ipAddresses as never, { spec: { parentRef: { resource: "services" } } }, ["spec.parentRef.name: Required value"]],
])("create %#", (kind, given, errors) => expect(created(kind, given).errors).toEqual(errors));

test("a range may get a second family, nothing else", () => {
  const { object } = created(serviceRanges, { spec: { cidrs: ["10.0.0.0/16"] } });
  expect(updated(serviceRanges, object, { spec: { cidrs: ["10.0.0.0/16", "fd00::/112"] } }).errors).toEqual([]);
  expect(updated(serviceRanges, object, { spec: { cidrs: ["10.1.0.0/16"] } }).errors).toEqual(['spec.cidrs[0]: Invalid value: "10.1.0.0/16": field is immutable']);
  expect([...ipAddresses.validateName!("010.0.0.1")]).toEqual(["must not have leading 0s"]);
});

test("addresses of load balancers are warned of as others are", () => {
  const { object } = created(ingresses, route({}));
  expect(updated(ingresses, object, { status: { loadBalancer: { ingress: [{ hostname: "a" }, { ip: "2001:DB8::1" }] } } }, { subresource: "status" }).warnings)
    .toEqual(['status.loadBalancer.ingress[1]: IPv6 address "2001:DB8::1" should be in RFC 5952 canonical format ("2001:db8::1")']);
});
