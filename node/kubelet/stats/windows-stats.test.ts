import { expect, test } from "vitest";
import { fromWindows } from "./windows-stats.ts";

test("what Windows counts is told as if it were Linux", () => {
  const value = (of: number) => ({ value: of });
  const stats = fromWindows({
    cpu: { timestamp: 1, usage_nano_cores: value(7) }, memory: { working_set_bytes: value(10), commit_memory_bytes: value(20), page_faults: value(3) },
    network: { default_interface: { name: "eth0", rx_bytes: value(1), rx_packets_dropped: value(2) } }, process: { process_count: value(5) },
    containers: [{ attributes: { id: "c" }, memory: { commit_memory_bytes: value(30) }, writable_layer: { used_bytes: value(40) } }],
  });
  expect(JSON.parse(JSON.stringify(stats))).toEqual({
    cpu: { timestamp: 1, usage_nano_cores: value(7) }, memory: { working_set_bytes: value(10), usage_bytes: value(20), page_faults: value(3) }, process: { process_count: value(5) },
    network: { default_interface: { name: "eth0", rx_bytes: value(1), rx_errors: value(2) }, interfaces: [] },
    containers: [{ attributes: { id: "c" }, memory: { usage_bytes: value(30) }, writable_layer: { used_bytes: value(40) } }],
  });
});
