/** hcn.ts over computenetwork.dll, by FFI. Where it is missing (no Containers feature) opening it throws. */
import { dlopen, type FFIFunction, type Pointer, ptr, toArrayBuffer } from "bun:ffi";
import { featuresOf, type Hcn, type HcnEndpoint, HcnError, type HcnLoadBalancer, type HcnNetwork } from "./hcn.ts";

const QUERY = JSON.stringify({ SchemaVersion: { Major: 2, Minor: 0 }, Flags: 0 });
const SCHEMA = { SchemaVersion: { Major: 2, Minor: 0 } };
/** HRESULTs of what is not there: ERROR_NOT_FOUND, HCN_E_NETWORK_NOT_FOUND, HCN_E_ENDPOINT_NOT_FOUND, HCN_E_POLICY_NOT_FOUND, HCN_E_LOADBALANCER_NOT_FOUND. */
const NOT_FOUND: ReadonlySet<number> = new Set([0x80070490, 0x803b0001, 0x803b0002, 0x803b0008, 0x803b0014]);

type Kind = "Network" | "Endpoint" | "LoadBalancer";

export function openHcn(libraries: { readonly network: string; readonly compute: string } = { network: "computenetwork.dll", compute: "vmcompute.dll" }): Hcn {
  const hcn = library(libraries.network, {
    HcnEnumerateNetworks: { args: ["ptr", "ptr", "ptr"], returns: "u32" }, HcnEnumerateEndpoints: { args: ["ptr", "ptr", "ptr"], returns: "u32" }, HcnEnumerateLoadBalancers: { args: ["ptr", "ptr", "ptr"], returns: "u32" },
    HcnOpenNetwork: { args: ["ptr", "ptr", "ptr"], returns: "u32" }, HcnOpenEndpoint: { args: ["ptr", "ptr", "ptr"], returns: "u32" }, HcnOpenLoadBalancer: { args: ["ptr", "ptr", "ptr"], returns: "u32" },
    HcnQueryNetworkProperties: { args: ["ptr", "ptr", "ptr", "ptr"], returns: "u32" },
    HcnQueryEndpointProperties: { args: ["ptr", "ptr", "ptr", "ptr"], returns: "u32" },
    HcnQueryLoadBalancerProperties: { args: ["ptr", "ptr", "ptr", "ptr"], returns: "u32" },
    HcnCloseNetwork: { args: ["ptr"], returns: "u32" }, HcnCloseEndpoint: { args: ["ptr"], returns: "u32" }, HcnCloseLoadBalancer: { args: ["ptr"], returns: "u32" },
    HcnDeleteNetwork: { args: ["ptr", "ptr"], returns: "u32" }, HcnDeleteEndpoint: { args: ["ptr", "ptr"], returns: "u32" }, HcnDeleteLoadBalancer: { args: ["ptr", "ptr"], returns: "u32" },
    HcnCreateNetwork: { args: ["ptr", "ptr", "ptr", "ptr"], returns: "u32" }, HcnCreateEndpoint: { args: ["ptr", "ptr", "ptr", "ptr", "ptr"], returns: "u32" }, HcnCreateLoadBalancer: { args: ["ptr", "ptr", "ptr", "ptr"], returns: "u32" },
    HcnModifyNetwork: { args: ["ptr", "ptr", "ptr"], returns: "u32" },
  });
  const compute = library(libraries.compute, { HNSCall: { args: ["ptr", "ptr", "ptr", "ptr"], returns: "u32" } });
  const ole = dlopen("ole32.dll", { CoTaskMemFree: { args: ["ptr"], returns: "void" } }).symbols;
  const kernel = dlopen("kernel32.dll", { lstrlenW: { args: ["ptr"], returns: "int" } }).symbols;

  /** A string the service has made, which is ours to free; "" for none. */
  function take(at: BigUint64Array): string {
    const pointer = Number(at[0]) as Pointer;
    if (pointer === (0 as Pointer)) return "";
    const length = kernel.lstrlenW(pointer);
    const value = length === 0 ? "" : Buffer.from(toArrayBuffer(pointer, 0, length * 2)).toString("utf16le");
    ole.CoTaskMemFree(pointer);
    return value;
  }

  /** `work` is given where the service puts its complaint. */
  function call(name: string, work: (complaint: Pointer) => number): void {
    const complaint = new BigUint64Array(1);
    const code = work(ptr(complaint)) >>> 0;
    const answer = take(complaint);
    if (code !== 0 || answer !== "") throw new HcnError(name, code, answer);
  }

  /** Does `work` with a handle of what has this ID, and closes it. */
  function opened<T>(kind: Kind, id: string, work: (handle: Pointer) => T): T {
    const handle = new BigUint64Array(1), guid = guidBytes(id);
    call(`HcnOpen${kind}`, (complaint) => hcn[`HcnOpen${kind}`](ptr(guid), ptr(handle), complaint));
    return closing(kind, handle, work);
  }

  function closing<T>(kind: Kind, handle: BigUint64Array, work: (handle: Pointer) => T): T {
    const pointer = Number(handle[0]) as Pointer;
    try {
      return work(pointer);
    } finally {
      hcn[`HcnClose${kind}`](pointer);
    }
  }

  function properties<T>(kind: Kind, handle: Pointer): T {
    const found = new BigUint64Array(1), query = wide(QUERY);
    call(`HcnQuery${kind}Properties`, (complaint) => hcn[`HcnQuery${kind}Properties`](handle, ptr(query), ptr(found), complaint));
    return JSON.parse(take(found)) as T;
  }

  function all<T>(kind: Kind): T[] {
    const found = new BigUint64Array(1), query = wide(QUERY);
    call(`HcnEnumerate${kind}s`, (complaint) => hcn[`HcnEnumerate${kind}s`](ptr(query), ptr(found), complaint));
    const ids = JSON.parse(take(found) || "[]") as string[];
    return ids.flatMap((id) => unlessGone(() => opened(kind, id, (handle) => properties<T>(kind, handle))) ?? []);
  }

  function remove(kind: Kind, id: string): void {
    const guid = guidBytes(id);
    unlessGone(() => call(`HcnDelete${kind}`, (complaint) => hcn[`HcnDelete${kind}`](ptr(guid), complaint)));
  }

  function create<T>(kind: "Network" | "LoadBalancer", settings: object): T {
    const handle = new BigUint64Array(1), guid = new Uint8Array(16), text = wide(JSON.stringify({ ...settings, ...SCHEMA }));
    call(`HcnCreate${kind}`, (complaint) => hcn[`HcnCreate${kind}`](ptr(guid), ptr(text), ptr(handle), complaint));
    return closing(kind, handle, (pointer) => properties<T>(kind, pointer));
  }

  function modifyNetwork(id: string, RequestType: "Add" | "Remove", Policies: readonly object[]): void {
    const text = wide(JSON.stringify({ ResourceType: "Policy", RequestType, Settings: { Policies } }));
    opened("Network", id, (handle) => call("HcnModifyNetwork", (complaint) => hcn.HcnModifyNetwork(handle, ptr(text), complaint)));
  }

  /** The first version of the service's API, which alone can say its version and attach endpoints to the host. */
  function hnsCall(method: "GET" | "POST", path: string, body: string): unknown {
    const found = new BigUint64Array(1), [m, p, b] = [wide(method), wide(path), wide(body)];
    const code = compute.HNSCall(ptr(m), ptr(p), ptr(b), ptr(found)) >>> 0;
    const { Success, Error: message = "", Output } = JSON.parse(take(found) || '{"Success":false}') as { Success: boolean; Error?: string; Output?: unknown };
    if (code !== 0 || !Success) throw new HcnError(`HNSCall ${method} ${path}`, code, message);
    return Output;
  }

  return {
    features: () => featuresOf(hnsCall("GET", "/globals/version", "") as { Major: number; Minor: number }),
    networks: () => all<HcnNetwork>("Network"),
    createNetwork: (settings) => create<HcnNetwork>("Network", settings),
    addPolicies: (id, policies) => modifyNetwork(id, "Add", policies),
    removePolicies: (id, policies) => modifyNetwork(id, "Remove", policies),
    deleteNetwork: (id) => remove("Network", id),
    endpoints: () => all<HcnEndpoint>("Endpoint"),
    createEndpoint(networkId, settings) {
      const handle = new BigUint64Array(1), guid = new Uint8Array(16), text = wide(JSON.stringify({ ...settings, HostComputeNetwork: networkId, ...SCHEMA }));
      opened("Network", networkId, (network) => call("HcnCreateEndpoint", (complaint) => hcn.HcnCreateEndpoint(network, ptr(guid), ptr(text), ptr(handle), complaint)));
      return closing("Endpoint", handle, (pointer) => properties<HcnEndpoint>("Endpoint", pointer));
    },
    attachToHost: (id) => void hnsCall("POST", `/endpoints/${id}/attach`, JSON.stringify({ SystemType: "Host", CompartmentId: 1, VirtualNICName: ":" })),
    deleteEndpoint: (id) => remove("Endpoint", id),
    loadBalancers: () => all<HcnLoadBalancer>("LoadBalancer"),
    createLoadBalancer: (settings) => create<HcnLoadBalancer>("LoadBalancer", settings),
    deleteLoadBalancer: (id) => remove("LoadBalancer", id),
  };
}

function library<const S extends Record<string, FFIFunction>>(name: string, symbols: S) {
  try {
    return dlopen(name, symbols).symbols;
  } catch (cause) {
    throw new Error(`this Windows cannot run containers: ${name} is missing. Install the Containers feature (installers/windows/install.ps1 does)`, { cause });
  }
}

/** Undefined if it is not there (any more). */
function unlessGone<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (error instanceof HcnError && NOT_FOUND.has(error.code)) return undefined;
    throw error;
  }
}

function wide(text: string): Buffer { return Buffer.from(`${text}\0`, "utf16le"); }

/** "6b29fc40-ca47-1067-b31d-00dd010662da" as Windows keeps it: the first three parts are numbers, little end first. Pure. */
function guidBytes(text: string): Uint8Array {
  const hex = text.replace(/[{}-]/g, "");
  if (!/^[0-9a-fA-F]{32}$/.test(hex)) throw new TypeError(`no GUID: ${text}`);
  const bytes = Uint8Array.from(hex.match(/../g)!, (pair) => Number.parseInt(pair, 16));
  for (const [start, end] of [[0, 4], [4, 6], [6, 8]] as const) bytes.subarray(start, end).reverse();
  return bytes;
}
