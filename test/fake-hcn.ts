/** Windows' network service in memory, for tests: keeps what it is given, refuses what the real one refuses. */
import { type Hcn, type HcnEndpoint, HcnError, type HcnLoadBalancer, type HcnNetwork } from "../node/os/hcn.ts";

export interface FakeHcn extends Hcn {
  /** Every call that changed something: "createLoadBalancer 10.43.0.10:53". */
  readonly calls: string[];
  /** What a network has besides what it was made with. */
  settle: (network: HcnNetwork) => HcnNetwork;
  /** A pod's endpoint, as a CNI plugin makes it. */
  addPod(networkId: string, ip: string): string;
}

export function fakeHcn(): FakeHcn {
  const networks = new Map<string, HcnNetwork>(), endpoints = new Map<string, HcnEndpoint>(), loadBalancers = new Map<string, HcnLoadBalancer>();
  const calls: string[] = [];
  let ids = 0;
  const id = (): string => `00000000-0000-0000-0000-${String(++ids).padStart(12, "0")}`;
  const frontOf = ({ FrontendVIPs = [], PortMappings = [] }: Partial<HcnLoadBalancer>): string => `${FrontendVIPs[0] ?? "node"}:${PortMappings[0]?.ExternalPort ?? 0}/${PortMappings[0]?.Protocol ?? 0}`;
  const found = (networkId: string): HcnNetwork => {
    const network = networks.get(networkId);
    if (!network) throw new HcnError("HcnOpenNetwork", 0x803b0001, "");
    return network;
  };

  const fake: FakeHcn = {
    calls,
    settle: (network) => network,
    addPod(networkId, ip) {
      const ID = id();
      endpoints.set(ID, { ID, HostComputeNetwork: networkId, IpConfigurations: [{ IpAddress: ip, PrefixLength: 24 }] });
      return ID;
    },
    features: () => ({ directServerReturn: true, sessionAffinity: true }),
    networks: () => [...networks.values()],
    createNetwork(settings) {
      const network = fake.settle({ ...settings, ID: id() });
      calls.push(`createNetwork ${settings.Name}`);
      networks.set(network.ID, network);
      return network;
    },
    addPolicies(networkId, policies) {
      const network = found(networkId);
      for (const { Type, Settings } of policies) calls.push(`addPolicy ${Type} ${String(Settings?.["DestinationPrefix"] ?? "")}`.trim());
      networks.set(networkId, { ...network, Policies: [...(network.Policies ?? []), ...policies] });
    },
    removePolicies(networkId, policies) {
      const network = found(networkId);
      for (const { Type, Settings } of policies) calls.push(`removePolicy ${Type} ${String(Settings?.["DestinationPrefix"] ?? "")}`.trim());
      networks.set(networkId, { ...network, Policies: (network.Policies ?? []).filter((one) => !policies.some((other) => JSON.stringify(one) === JSON.stringify(other))) });
    },
    deleteNetwork(networkId) {
      if (networks.delete(networkId)) calls.push("deleteNetwork");
      for (const [key, { HostComputeNetwork }] of endpoints) if (HostComputeNetwork === networkId) endpoints.delete(key);
    },
    endpoints: () => [...endpoints.values()],
    createEndpoint(networkId, settings) {
      found(networkId);
      const endpoint = { ...settings, ID: id(), HostComputeNetwork: networkId };
      calls.push(`createEndpoint ${settings.IpConfigurations[0]?.IpAddress ?? ""}`);
      endpoints.set(endpoint.ID, endpoint);
      return endpoint;
    },
    attachToHost: (endpointId) => void calls.push(`attachToHost ${endpoints.get(endpointId)?.Name ?? ""}`),
    deleteEndpoint(endpointId) {
      if ([...loadBalancers.values()].some(({ HostComputeEndpoints }) => HostComputeEndpoints?.includes(endpointId))) throw new HcnError("HcnDeleteEndpoint", 0, "the endpoint is in use");
      calls.push(`deleteEndpoint ${endpoints.get(endpointId)?.IpConfigurations?.[0]?.IpAddress ?? ""}`);
      endpoints.delete(endpointId);
    },
    loadBalancers: () => [...loadBalancers.values()],
    createLoadBalancer(settings) {
      const missing = settings.HostComputeEndpoints.find((one) => !endpoints.has(one));
      if (missing !== undefined) throw new HcnError("HcnCreateLoadBalancer", 0x803b0002, `no endpoint ${missing}`);
      if ([...loadBalancers.values()].some((other) => frontOf(other) === frontOf(settings))) throw new HcnError("HcnCreateLoadBalancer", 0x803b0013, "the specified port already exists");
      const made = { ...settings, ID: id() };
      calls.push(`createLoadBalancer ${frontOf(settings)} → ${settings.HostComputeEndpoints.map((one) => endpoints.get(one)?.IpConfigurations?.[0]?.IpAddress).join(" ")}`);
      loadBalancers.set(made.ID, made);
      return made;
    },
    deleteLoadBalancer(loadBalancerId) {
      const gone = loadBalancers.get(loadBalancerId);
      if (gone) calls.push(`deleteLoadBalancer ${frontOf(gone)}`);
      loadBalancers.delete(loadBalancerId);
    },
  };
  return fake;
}
