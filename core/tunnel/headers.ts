/**
 * What agent and server tell each other before the first packet: gRPC metadata, upstream's names, lower-case as HTTP/2 has them.
 *
 *   agent → server   agentID, agentIdentifiers, coracle-window
 *   server → agent   serverID, serverCount, coracle-window
 *
 * Source: sigs.k8s.io/apiserver-network-proxy proto/header/header.go
 */
export const CONNECT_PATH = "/AgentService/Connect";
export const GRPC_CONTENT_TYPE = "application/grpc";
export const AGENT_ID = "agentid";
export const AGENT_IDENTIFIERS = "agentidentifiers";
export const SERVER_ID = "serverid";
export const SERVER_COUNT = "servercount";
/** Ours: "I know FLOW, and of each connection I take so many bytes until I send more credit." Counts only when both say it. */
export const WINDOW = "coracle-window";

/** What an agent says of itself; stock servers choose agents by it. */
export interface AgentIdentifiers {
  readonly ipv4: readonly string[];
  readonly ipv6: readonly string[];
  readonly host: readonly string[];
}

export function encodeIdentifiers({ ipv4, ipv6, host }: AgentIdentifiers): string {
  return new URLSearchParams([["host", host], ["ipv4", ipv4], ["ipv6", ipv6]].flatMap(([type, ids]) => (ids as readonly string[]).map((id): [string, string] => [type as string, id]))).toString();
}

/** A positive whole number, or undefined. */
export function countOf(value: string | readonly string[] | undefined): number | undefined {
  const count = typeof value === "string" && /^\d{1,15}$/.test(value) ? Number(value) : 0;
  return count > 0 ? count : undefined;
}
