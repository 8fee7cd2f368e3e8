/** Ranges of ports as flags write them: `30000-32767`, `30000+100`, `30000`. Source: kubernetes v1.36 apimachinery/pkg/util/net/port_range.go */
import type { NodePortRange } from "./allocator.ts";

const PORT_MAX = 65535;

/** Throws for what is none. */
export function parsePortRange(text: string): NodePortRange {
  const [, first = "", sign = "", last = ""] = /^(\d+)(?:([-+])(\d+))?$/.exec(text.trim()) ?? [];
  if (first === "") throw new Error(`unable to parse port range: ${text}`);
  const from = Number(first);
  const to = sign === "-" ? Number(last) : sign === "+" ? Math.min(PORT_MAX, from + Number(last)) : from;
  if (from > PORT_MAX || to > PORT_MAX) throw new Error(`the port range cannot be greater than ${PORT_MAX}: ${text}`);
  if (from > to) throw new Error(`end port cannot be less than start port: ${text}`);
  return { first: from, last: to };
}
