import { expect, test } from "vitest";
import { reliedOn } from "./relied-on.ts";

test("a server relies on its datastore, an agent on the servers it was told of, by address or name", () => {
  expect(reliedOn({ datastoreEndpoint: "https://10.0.0.1:2379, http://etcd.example,https://[fd00::3]:12379/,unix:///run/etcd.sock", server: undefined }))
    .toEqual([{ host: "10.0.0.1", port: 2379 }, { host: "etcd.example", port: 2379 }, { host: "fd00::3", port: 12_379 }]);
  expect(reliedOn({ datastoreEndpoint: undefined, server: "https://192.0.2.7:6443/, https://lb.example" })).toEqual([{ host: "192.0.2.7", port: 6443 }, { host: "lb.example", port: 443 }]);
});
