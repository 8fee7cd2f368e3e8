/**
 * Interfaces of a network namespace with what went through them, as /proc/<pid>/net/dev tells it. The loopback does not count, nor do those that only hand on to pods.
 *
 * Source: kubernetes v1.36 google/cadvisor container/libcontainer/handler.go (isIgnoredDevice)
 */
import { readFileSync } from "node:fs";

export interface InterfaceFigures {
  readonly name: string;
  readonly rxBytes: number; readonly rxPackets: number; readonly rxErrors: number; readonly rxDropped: number;
  readonly txBytes: number; readonly txPackets: number; readonly txErrors: number; readonly txDropped: number;
}

const IGNORED = /^(lo|veth|docker|nerdctl)/i;

/** Of the namespace `pid` lives in; none if it has ended. */
export function interfacesOf(pid: number): InterfaceFigures[] {
  try {
    return parseNetDev(readFileSync(`/proc/${pid}/net/dev`, "utf8"));
  } catch (error) {
    if (["ENOENT", "ESRCH", "EINVAL"].includes((error as NodeJS.ErrnoException).code ?? "")) return [];
    throw error;
  }
}

export function parseNetDev(text: string): InterfaceFigures[] {
  return text.split("\n").slice(2).flatMap((line) => {
    const [name = "", numbers = ""] = line.split(/:(.*)/s);
    const [rxBytes = 0, rxPackets = 0, rxErrors = 0, rxDropped = 0, , , , , txBytes = 0, txPackets = 0, txErrors = 0, txDropped = 0] = numbers.trim().split(/\s+/).map(Number);
    return name.trim() === "" || IGNORED.test(name.trim()) ? [] : [{ name: name.trim(), rxBytes, rxPackets, rxErrors, rxDropped, txBytes, txPackets, txErrors, txDropped }];
  });
}
