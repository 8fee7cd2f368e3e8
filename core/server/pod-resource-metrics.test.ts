import { expect, test } from "vitest";
import type { Pod } from "../api/gen/core.v1.ts";
import { ANONYMOUS } from "../api/request/user.ts";
import type { RawAnswer, Slowly } from "./answer.ts";
import { podResourceMetrics } from "./pod-resource-metrics.ts";
import type { ServerRequest } from "./request.ts";

const pod = (name: string, spec: object, phase = "Running"): Pod => ({ apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "a" }, spec: { schedulerName: "default-scheduler", ...spec }, status: { phase } }) as unknown as Pod;
const container = (requests: object, limits: object = {}, more: object = {}) => ({ name: "c", image: "i", resources: { requests, limits }, ...more });

test("what pods ask for and may use, until they are over: upstream's series", async () => {
  const handler = podResourceMetrics(() => [
    pod("web", { nodeName: "n1", priority: 0, containers: [container({ cpu: "250m", memory: "64Mi", "hugepages-2Mi": "4Mi", "example.com/gpu": "2", storage: "0" }, { cpu: "1" })], overhead: { cpu: "50m", memory: "1Mi" } }),
    pod("waits", { containers: [container({ cpu: "100m" })], initContainers: [container({ cpu: "2" })] }, "Failed"),
    pod("over", { nodeName: "n1", containers: [container({ cpu: "1" })] }, "Succeeded"),
  ]);
  const answer = (await handler({ path: "/metrics/resources", header: () => undefined } as unknown as ServerRequest, ANONYMOUS)) as RawAnswer;
  expect([...(answer.body as Slowly).pieces].join("").split("\n").filter((line) => !line.startsWith("# HELP"))).toEqual([
    "# TYPE kube_pod_resource_limit gauge",
    'kube_pod_resource_limit{namespace="a",node="n1",pod="web",priority="0",resource="cpu",scheduler="default-scheduler",unit="cores"} 1.05',
    "# TYPE kube_pod_resource_request gauge",
    'kube_pod_resource_request{namespace="a",node="n1",pod="web",priority="0",resource="cpu",scheduler="default-scheduler",unit="cores"} 0.3',
    'kube_pod_resource_request{namespace="a",node="n1",pod="web",priority="0",resource="memory",scheduler="default-scheduler",unit="bytes"} 68157440',
    'kube_pod_resource_request{namespace="a",node="n1",pod="web",priority="0",resource="hugepages-2Mi",scheduler="default-scheduler",unit="bytes"} 4194304',
    'kube_pod_resource_request{namespace="a",node="n1",pod="web",priority="0",resource="example.com/gpu",scheduler="default-scheduler",unit=""} 2',
    'kube_pod_resource_request{namespace="a",node="",pod="waits",priority="",resource="cpu",scheduler="default-scheduler",unit="cores"} 2',
    "",
  ]);
  expect(await handler({ path: "/metrics" } as ServerRequest, ANONYMOUS)).toBeUndefined();
});
