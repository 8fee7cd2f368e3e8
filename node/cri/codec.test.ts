import { expect, test } from "vitest";
import { ProtobufError } from "../../core/protobuf/wire.ts";
import { decode, encode, withDefaults } from "./codec.ts";
import { criMethods } from "./facts.ts";
import type { Methods } from "./gen/runtime.v1.ts";

const methods = criMethods();
const message = (method: keyof Methods, side: "request" | "response") => methods.get(method)![side];

test.each<[string, keyof Methods, "request" | "response", object]>([
  ["an empty message", "RuntimeService/Version", "request", {}],
  ["strings, nested messages, lists, maps, enums", "RuntimeService/RunPodSandbox", "request", {
    config: {
      metadata: { name: "wéb", uid: "u", namespace: "default", attempt: 3 }, labels: { a: "b", __proto: "" },
      port_mappings: [{ container_port: 80, host_port: 8080 }, {}], dns_config: { servers: ["10.0.0.1", ""] },
      linux: { security_context: { namespace_options: { network: "NODE" }, supplemental_groups: [0, 1000, 2 ** 40], run_as_user: {} } },
    },
  }],
  ["negative and large numbers, bytes", "RuntimeService/CreateContainer", "request", {
    config: { envs: [{ key: "K", value: new Uint8Array([0, 255]) }], linux: { resources: { cpu_quota: -1, oom_score_adj: -997, memory_limit_in_bytes: 2 ** 52, cpu_shares: 2 } } },
  }],
  ["fractions", "RuntimeService/ContainerStats", "response", { stats: { cpu: { psi: { Full: { Total: 7, Avg10: 1.5 } } } } }],
])("%s survives the round trip", (_, method, side, value) => {
  const type = message(method, side);
  expect(decode(type, encode(type, value))).toEqual(value);
});

test("the bytes are protobuf's", () => {
  const bytes = encode(message("RuntimeService/StopContainer", "request"), { container_id: "ab", timeout: -1 });
  expect(bytes.toString("hex")).toBe("0a026162" + "10ffffffffffffffffff01");
});

test("what has the default is not sent, unknown fields are skipped, a cut message is refused", () => {
  const type = message("RuntimeService/StopContainer", "request");
  expect(encode(type, { container_id: "", timeout: 0 }).length).toBe(0);
  const unknown = Buffer.from("0a0161" + "f87f05" + "fa7f0161" + "fd7f00000000" + "f97f0000000000000000", "hex");
  expect(decode(type, unknown)).toEqual({ container_id: "a" });
  expect(() => decode(type, Buffer.from("0a0561", "hex"))).toThrow(ProtobufError);
});

test("people are told what has the default, too: a sandbox that is ready, a network that is not, a container that ended well", () => {
  const shown = (method: keyof Methods, value: object) => withDefaults(message(method, "response"), value);
  expect(shown("RuntimeService/PodSandboxStatus", { status: { id: "a", metadata: { name: "web" } }, info: { a: "b" } })).toMatchObject({ status: { id: "a", state: "SANDBOX_READY", metadata: { name: "web", attempt: 0 } }, info: { a: "b" } });
  expect(shown("RuntimeService/Status", { status: { conditions: [{ type: "NetworkReady", reason: "NoCni" }] } })).toMatchObject({ status: { conditions: [{ type: "NetworkReady", status: false, reason: "NoCni" }] } });
  expect(shown("RuntimeService/ContainerStatus", { status: { state: "CONTAINER_EXITED" } })).toMatchObject({ status: { state: "CONTAINER_EXITED", exit_code: 0 } });
});

test("every method of the table has a path, and none is missing", () => {
  expect(methods.size).toBe(41);
  expect(methods.get("ImageService/PullImage")).toMatchObject({ path: "/runtime.v1.ImageService/PullImage", stream: false });
  expect(methods.get("RuntimeService/GetContainerEvents")?.stream).toBe(true);
});
