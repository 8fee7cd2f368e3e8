import { expect, test } from "vitest";
import { nftProgram } from "./exec-nft.ts";

const saying = (said: Readonly<Record<string, string>>) => nftProgram({ path: "nft", run: async (_, args) => ({ exitCode: 1, stdout: "", stderr: said[args[0]!] ?? "" }) });

test.each([
  ["netlink: Error: cache initialization failed: Operation not supported"], // no CONFIG_NF_TABLES
  ["mnl.c:60: Unable to initialize Netlink socket: Protocol not supported"], // no CONFIG_NETFILTER_NETLINK
])("a kernel without nf_tables is told as that, not with the transaction it refused: %s", async (stderr) => {
  const nft = saying({ "-f": `/dev/stdin:1:1-20: Error: ${stderr}\nadd table ip coracle`, list: stderr });
  await expect(nft.apply("add table ip coracle\n", {})).rejects.toThrow(/^this kernel has no nf_tables: without it there is no pod network, no Service, no host port and no network policy\. It needs CONFIG_NF_TABLES /);
});

test("what else is refused is told in nft's words", async () => {
  await expect(saying({ "-f": "Error: Could not process rule: Operation not supported" }).apply("x", {})).rejects.toThrow("nft refused the transaction: Error: Could not process rule: Operation not supported");
  await expect(saying({ "-a": "Error: syntax error" }).chain("ip", "t", "c", {})).rejects.toThrow("nft -a list chain ip t c: Error: syntax error");
  expect(await saying({ "-a": "Error: No such file or directory" }).chain("ip", "t", "c", {})).toBeUndefined();
});
