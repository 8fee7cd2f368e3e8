/** A server and an agent on one cable, both installed by install.sh: pods of one reach those of the other, and Services do. */
import { rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { webOnEachNode } from "../web-on-each-node.ts";
import { eventually, type Kind, Machine, makePayload, obstacle } from "./machine.ts";

const KIND = (process.env["VM_KINDS"] ?? "bookworm").split(",")[0] as Kind;
const why = obstacle();

describe.skipIf(why !== undefined).each(["vxlan", "host-gw"])("two machines, %s", (overlay) => {
  test("an agent joins, and pods talk across the cable", async () => {
    const payload = makePayload();
    const path = join(tmpdir(), `vm-cable-${process.pid}-${overlay}`);
    try {
      const booting = (["a", "b"] as const).map((end) => Machine.boot({ kind: KIND, name: `${overlay}-${end}`, memoryMiB: 1536, cable: { path, end } }, payload.path));
      await using machines = new AsyncDisposableStack();
      for (const boot of await Promise.allSettled(booting)) if (boot.status === "fulfilled") machines.use(boot.value);
      const [server, agent] = (await Promise.all(booting)) as [Machine, Machine];
      await server.sh("hostname one; ip address add 10.77.0.1/24 dev eth1; ip link set eth1 up");
      await agent.sh("hostname two; ip address add 10.77.0.2/24 dev eth1; ip link set eth1 up");
      const install = (settings: string, flags: string) => `cd /pay/checkout && ${settings} INSTALL_CORACLE_BINARY=/pay/coracle INSTALL_CORACLE_TIMEOUT=1500 sh installers/linux/install.sh ${flags}`;
      const long = { timeoutMs: 1_600_000 };
      await server.sh(install("", `--node-name one --node-ip 10.77.0.1 --overlay ${overlay}`), long);
      const token = (await server.sh("coracle token create")).trim();
      await agent.sh(install(`CORACLE_URL=https://10.77.0.1:6443 CORACLE_TOKEN=${token}`, "--node-name two --node-ip 10.77.0.2"), long);
      expect(await server.kubectl("get nodes -o name")).toBe("node/one\nnode/two\n");
      await server.kubectl("wait node/one node/two --for=condition=Ready --timeout=600s");
      await Promise.all([server, agent].map((machine) => machine.sh("coracle images import /pay/busybox.tar")));
      await server.apply(webOnEachNode());
      await eventually("a pod runs on both", () => server.kubectl("rollout status daemonset/web --timeout=60s"), 120_000);
      const pods = Object.fromEntries((await server.kubectl("get pods -l app=web -o jsonpath='{range .items[*]}{.spec.nodeName} {.metadata.name} {.status.podIP}{\"\\n\"}{end}'")).trim().split("\n").map((line) => line.split(" ") as [string, string, string]).map(([node, name, ip]) => [node, { name, ip }]));
      for (const [from, to] of [["one", "two"], ["two", "one"]] as const) {
        expect(await server.kubectl(`exec ${pods[from]!.name} -- wget -q -O- -T 20 http://${pods[to]!.ip}:8080/`)).toBe(`${to}\n`);
        expect(await server.kubectl(`exec ${pods[from]!.name} -- sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do wget -q -O- -T 20 http://web.default/; done'`)).toMatch(/one[\s\S]*two|two[\s\S]*one/);
      }
      expect(await agent.sh("ip route show table all | grep 10.42.0.0/24")).toMatch(overlay === "vxlan" ? /dev coracle/ : /via 10\.77\.0\.1 dev eth1/);
    } finally {
      for (const end of ["a", "b"]) rmSync(`${path}-${end}`, { force: true });
      payload.remove();
    }
  });
});
