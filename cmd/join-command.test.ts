import { expect, test } from "vitest";
import { encodeYaml } from "../core/api/codec/yaml.ts";
import type { Client } from "../core/client/client.ts";
import { joinCommand } from "./join-command.ts";

test("a server at the port that URLs need not name is asked there", async () => {
  const kubeconfig = encodeYaml({ clusters: [{ name: "", cluster: { server: "https://127.77.0.1:443" } }] });
  const client = { resource: () => ({ get: async () => ({ data: { kubeconfig } }) }) } as unknown as Client;
  await expect(joinCommand(client, "token", "", AbortSignal.timeout(60_000))).rejects.toThrow("https://127.77.0.1:443, where machines are to find the server, does not answer: connect ECONNREFUSED 127.77.0.1:443");
});
