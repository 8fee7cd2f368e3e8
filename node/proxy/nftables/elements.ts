/**
 * Elements of our frame's sets and maps as the kernel has them: each part of a key or value in four bytes, or in sixteen. Pure.
 *
 *   10.43.0.5 . 80 . 0 : 10.42.0.1 . 8080  ─▶ 0a2b0005 00500000 00000000 : 0a2a0001 1f900000
 */
import { ipBytes, parseIp } from "../../../core/net/cidr.ts";
import type { SetElement } from "../../os/nft-batch.ts";
import type { ContainerName, Element } from "./ruleset.ts";

type Part = "address" | "protocol" | "port" | "number";

const ENDPOINTS = { key: ["address", "port", "number"], value: ["address", "port"] } as const, SERVICE = { key: ["address", "protocol", "port"], value: "verdict" } as const, NODE_PORT = { key: ["protocol", "port"], value: "verdict" } as const;
const SHAPES: Readonly<Record<ContainerName, { readonly key: readonly Part[]; readonly value?: readonly Part[] | "verdict" }>> = {
  "cluster-ips": { key: ["address"] }, "hairpin-connections": { key: ["address", "address", "protocol", "port"] },
  "tcp-endpoints": ENDPOINTS, "udp-endpoints": ENDPOINTS, "sctp-endpoints": ENDPOINTS,
  "service-ips": SERVICE, "no-endpoint-services": SERVICE, "firewall-ips": SERVICE, "service-nodeports": NODE_PORT, "no-endpoint-nodeports": NODE_PORT,
};
const PROTOCOLS: Readonly<Record<string, number>> = { tcp: 6, udp: 17, sctp: 132 };

/** Undefined: a map that is not the frame's, or something we cannot say. */
export function elementBytes({ container, key, value }: Element): SetElement | undefined {
  const shape = (SHAPES as Readonly<Record<string, (typeof SHAPES)[ContainerName]>>)[container];
  const keyBytes = shape && bytesOf(key, shape.key);
  if (!shape || !keyBytes) return undefined;
  if (shape.value === undefined) return { set: container, key: keyBytes };
  const [, comment, to] = /^(?:comment "([^"]*)" )?: (.+)$/.exec(value) ?? [];
  if (to === undefined) return { set: container, key: keyBytes }; // one that is to be deleted
  if (shape.value !== "verdict") {
    const data = bytesOf(to, shape.value);
    return data && { set: container, key: keyBytes, value: data, comment };
  }
  const [verdict, chain] = to.split(" ");
  if (verdict !== "goto" && verdict !== "drop") return undefined;
  return { set: container, key: keyBytes, value: { verdict, chain }, comment };
}

function bytesOf(text: string, parts: readonly Part[]): Uint8Array | undefined {
  const words = text.split(" . ");
  const bytes = words.map((word, i) => partBytes(word, parts[i]));
  if (words.length !== parts.length || bytes.includes(undefined)) return undefined;
  return Uint8Array.from(Buffer.concat(bytes as Uint8Array[]));
}

function partBytes(word: string, part: Part | undefined): Uint8Array | undefined {
  const number = Number(word);
  switch (part) {
    case "address": { const ip = parseIp(word); return ip && ipBytes(ip); }
    case "protocol": { const protocol = PROTOCOLS[word]; return protocol === undefined ? undefined : Uint8Array.of(protocol, 0, 0, 0); }
    case "port": return Number.isInteger(number) ? Uint8Array.of(number >> 8, number & 0xff, 0, 0) : undefined;
    case "number": return Number.isInteger(number) ? new Uint8Array(Uint32Array.of(number).buffer) : undefined; // in the machine's order, as numgen gives it
    default: return undefined;
  }
}
