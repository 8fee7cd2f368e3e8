import { expect, test } from "vitest";
import { checkSettings } from "./check-settings.ts";

test.each([
  [["--datastore-endpoint", "https://etcd:2379", "--datastore-cafile", "/nowhere/ca.crt"], "--datastore-cafile /nowhere/ca.crt: no such file"],
  [["--datastore-endpoint", "https://etcd:2379", "--datastore-certfile", "/nowhere/tls.crt"], "--datastore-certfile and --datastore-keyfile must be given together"],
  [["--datastore-cafile", "/nowhere/ca.crt"], "--datastore-cafile is of no use without --datastore-endpoint"],
])("what would keep the server from its etcd is told before the one that runs is stopped: %j", async (argv, why) => {
  await expect(checkSettings(["server", "--disable-agent", ...argv])).rejects.toThrow(why);
});
