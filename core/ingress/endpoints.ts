/** The endpoints behind a port of a Service: those that are ready, or, if there are none, those that still serve while they end. Pure. */
import type { Service } from "../api/gen/core.v1.ts";
import type { EndpointSlice } from "../api/gen/discovery.v1.ts";
import { formatIp, parseStoredIp } from "../net/cidr.ts";

const PORT_MAX = 65_535;

/** `isAlias`: the address is a name, which somebody wrote into a Service of type ExternalName. */
export interface Endpoint { readonly address: string; readonly port: number; readonly isAlias?: true }
export interface Resolved { readonly endpoints: readonly Endpoint[]; /** The port's name. */ readonly portName?: string | undefined; /** How the port says it is to be spoken to. */ readonly appProtocol: string | undefined }

/** A Service of type ExternalName: the name instead of endpoints. Its ports need not be listed; a name for one has to be. */
export function aliasOf({ spec }: Readonly<Service>, port: string | number): Resolved | undefined {
  const listed = (spec.ports ?? []).find((one) => (typeof port === "number" ? one.port === port : one.name === port));
  const number = typeof port === "number" ? port : listed?.port;
  const address = (spec.externalName ?? "").replace(/\.$/, "");
  return number === undefined || address === "" ? undefined : { endpoints: [{ address, port: number, isAlias: true }], appProtocol: listed?.appProtocol, portName: listed?.name };
}

/** Undefined: the Service has no such port. */
export function endpointsOf({ spec }: Readonly<Service>, port: string | number, slices: readonly Readonly<EndpointSlice>[]): Resolved | undefined {
  const servicePort = (spec?.ports ?? []).find((one) => (typeof port === "number" ? one.port === port : one.name === port) && (one.protocol ?? "TCP") === "TCP");
  if (!servicePort) return undefined;
  const ready = new Map<string, Endpoint>(), ending = new Map<string, Endpoint>();
  for (const slice of slices) {
    if (slice.addressType === "FQDN") continue;
    const number = slice.ports?.find((one) => (one.name ?? "") === (servicePort.name ?? "") && (one.protocol ?? "TCP") === "TCP")?.port;
    if (number == null || number < 1 || number > PORT_MAX) continue; // the API takes any
    for (const { addresses: [text = ""], conditions } of slice.endpoints ?? []) {
      const ip = parseStoredIp(text);
      if (!ip) continue;
      const address = formatIp(ip); // of 010.0.0.1 the machine's resolver makes 8.0.0.1
      const isReady = conditions?.ready ?? true;
      if (isReady) ready.set(`${address} ${number}`, { address, port: number });
      else if (conditions?.serving && conditions.terminating) ending.set(`${address} ${number}`, { address, port: number });
    }
  }
  return { endpoints: [...(ready.size > 0 ? ready : ending).values()], appProtocol: servicePort.appProtocol, portName: servicePort.name };
}
