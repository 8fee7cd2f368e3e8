import { expect, test } from "vitest";
import { eventually } from "../../../test/fake-api.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import { DEPLOYMENTS, EVENTS, HORIZONTAL_POD_AUTOSCALERS, PODS } from "../../client/resources.ts";
import { type Clock, systemClock } from "../../lifecycle/clock.ts";
import { metricsRegistry } from "../../observe/metrics.ts";
import { horizontalPodAutoscalingController } from "./horizontalpodautoscaling.ts";
import type { MetricsSource } from "./metrics-source.ts";

/** Waits are cut short, so that every period is over soon; the time itself can be moved. */
function hurriedClock(): Clock & { aheadMs: number; wallMs: number } {
  return { ...systemClock, aheadMs: 0, wallMs: 0, nowMs() { return Date.now() + this.aheadMs + this.wallMs; }, uptimeMs() { return performance.now() + this.aheadMs; }, after: (ms, work) => systemClock.after(Math.min(ms, 5), work) };
}

test("a Deployment is scaled up with its pods' use, and down when the rush has been over for a while; what is missing is told", () => {
  const clock = hurriedClock();
  let usePerPod: number | undefined;
  const source: MetricsSource = {
    async resource({ resource }) {
      if (usePerPod === undefined) throw new Error(`no metrics returned from ${resource} metrics API`);
      return new Map(["a", "b"].map((name) => [name, { value: usePerPod!, timeMs: clock.nowMs(), windowMs: 10_000 }]));
    },
    pods: () => Promise.reject(new Error("none")), object: () => Promise.reject(new Error("none")), external: () => Promise.reject(new Error("none")),
  };
  const metrics = metricsRegistry();
  const counted = (name: string, labels: string): number => Number(new RegExp(`^horizontal_pod_autoscaler_controller_${name}{${labels}} (\\S+)$`, "m").exec(metrics.render())?.[1] ?? 0);
  return withControllers((deps) => [horizontalPodAutoscalingController({ ...deps, metrics, source })], async (api, call) => {
    const spec = { replicas: 2, selector: { matchLabels: { app: "web" } }, template: { metadata: { labels: { app: "web" } }, spec: { containers: [] } } };
    await api.client.resource(DEPLOYMENTS).create({ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "web", namespace: "ns" }, spec, status: { replicas: 2, selector: "app=web" } } as never, call); // as its scale shows it
    const since = new Date(Date.now() - 3_600_000).toISOString();
    for (const name of ["a", "b"]) await api.client.resource(PODS).create({
      apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "ns", labels: { app: "web" } }, spec: { containers: [{ name: "c", resources: { requests: { cpu: "1" } } }] },
      status: { phase: "Running", startTime: since, conditions: [{ type: "Ready", status: "True", lastTransitionTime: since }] },
    } as never, call);
    await api.client.resource(HORIZONTAL_POD_AUTOSCALERS).create({
      apiVersion: "autoscaling/v2", kind: "HorizontalPodAutoscaler", metadata: { name: "web", namespace: "ns" },
      spec: { scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "web" }, minReplicas: 1, maxReplicas: 3, metrics: [{ type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 50 } } }] },
    }, call);
    const status = () => api.all(HORIZONTAL_POD_AUTOSCALERS)[0]?.status;
    const condition = (type: string) => status()?.conditions?.find((one) => one.type === type);
    await eventually(() => condition("ScalingActive"), (one) => one?.reason === "FailedGetResourceMetric");
    expect(condition("ScalingActive")?.message).toBe("the HPA was unable to compute the replica count: failed to get cpu utilization: unable to get metrics for resource cpu: no metrics returned from cpu metrics API");
    await eventually(() => api.all(EVENTS).find(({ reason }) => reason === "FailedComputeMetricsReplicas")?.message, (message) => message === "invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value: failed to get cpu utilization: unable to get metrics for resource cpu: no metrics returned from cpu metrics API");

    usePerPod = 900;
    const replicas = () => api.all(DEPLOYMENTS)[0]?.spec.replicas;
    await eventually(replicas, (count) => count === 3);
    await eventually(() => api.all(EVENTS).find(({ reason }) => reason === "SuccessfulRescale")?.message, (message) => message === "New size: 3; reason: cpu resource utilization (percentage of request) above target");
    await eventually(() => condition("ScalingLimited"), (one) => one?.status === "True" && one.reason === "TooManyReplicas");
    await eventually(() => metrics.render(), (page) => /desired_replicas{hpa_name="web",namespace="ns"} 3\n[\s\S]*num_horizontal_pod_autoscalers 1\n/.test(page));
    expect(status()).toMatchObject({ currentMetrics: [{ type: "Resource", resource: { name: "cpu", current: { averageUtilization: 90, averageValue: "900m" } } }] });

    usePerPod = 100;
    await eventually(() => condition("AbleToScale"), (one) => one?.reason === "ScaleDownStabilized");
    clock.wallMs = 3_600_000; // set, not waited for
    await Bun.sleep(50);
    expect(replicas()).toBe(3);
    clock.wallMs = -1_800_000;
    clock.aheadMs += 301_000;
    await eventually(replicas, (count) => count === 1);
    await eventually(() => status()?.lastScaleTime, (time) => time !== undefined);
    for (const action of ["scale_up", "scale_down"]) for (const name of ["reconciliations_total", "reconciliation_duration_seconds_count"]) await eventually(() => counted(name, `action="${action}",error="none"`), (count) => count === 1);
    for (const name of ["metric_computation_total", "metric_computation_duration_seconds_count"]) {
      expect(counted(name, 'action="none",error="internal",metric_type="Resource"')).toBeGreaterThan(0);
      for (const action of ["scale_up", "scale_down"]) expect(counted(name, `action="${action}",error="none",metric_type="Resource"`)).toBeGreaterThan(0);
    }
    expect(counted("reconciliations_total", 'action="none",error="internal"')).toBeGreaterThan(0);

    await api.client.resource(HORIZONTAL_POD_AUTOSCALERS).create({
      apiVersion: "autoscaling/v2", kind: "HorizontalPodAutoscaler", metadata: { name: "other", namespace: "ns" },
      spec: { scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "web" }, maxReplicas: 3 },
    }, call);
    await eventually(() => condition("ScalingActive")?.message, (message) => message === "pods by selector app=web are controlled by multiple HPAs: [ns/other ns/web]");
  }, { clock });
});

test("what an autoscaler points to is found in whichever version its group has, and what no group has is told", () => {
  const none = (): Promise<never> => Promise.reject(new Error("none of those"));
  const source: MetricsSource = { resource: none, pods: none, object: none, external: none };
  return withControllers((deps) => [horizontalPodAutoscalingController({ ...deps, source })], async (api, call) => {
    const spec = { replicas: 2, selector: { matchLabels: { app: "web" } }, template: { metadata: { labels: { app: "web" } }, spec: { containers: [] } } };
    await api.client.resource(DEPLOYMENTS).create({ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "web", namespace: "ns" }, spec, status: { replicas: 2, selector: "app=web" } } as never, call);
    const describedObject = { apiVersion: "v1", kind: "Service", name: "s" };
    for (const [name, apiVersion, kind] of [["old", "apps/v1beta1", "Deployment"], ["unknown", "x.y/v1", "Foo"]] as const)
      await api.client.resource(HORIZONTAL_POD_AUTOSCALERS).create({
        apiVersion: "autoscaling/v2", kind: "HorizontalPodAutoscaler", metadata: { name, namespace: "ns" },
        spec: { scaleTargetRef: { apiVersion, kind, name: "web" }, minReplicas: 1, maxReplicas: 3, metrics: [{ type: "Object", object: { metric: { name: "m" }, describedObject, target: { type: "Value", value: "10" } } }] },
      }, call);
    const told = (name: string, type: string) => api.all(HORIZONTAL_POD_AUTOSCALERS).find(({ metadata }) => metadata.name === name)?.status?.conditions?.find((one) => one.type === type)?.message;
    expect(await eventually(() => told("unknown", "AbleToScale"), (message) => message !== undefined)).toBe('the HPA controller was unable to get the target\'s current scale: no matches for kind "Foo" in group "x.y"');
    expect(api.all(HORIZONTAL_POD_AUTOSCALERS).find(({ metadata }) => metadata.name === "unknown")?.status, "nobody's in managedFields").not.toHaveProperty("currentMetrics");
    expect(await eventually(() => told("old", "ScalingActive"), (message) => message !== undefined)).toBe("the HPA was unable to compute the replica count: unable to get metric m: Service on ns s/none of those");
  }, { clock: hurriedClock() });
});

test("a new autoscaler waits for its turn, one that is gone is forgotten at once", () => {
  const added: unknown[] = [];
  return withControllers((deps) => {
    const controller = horizontalPodAutoscalingController(deps);
    return [{ ...controller, watches: controller.watches.map((watch) => ({ ...watch, subscribe: () => watch.subscribe((key, afterMs = 0) => void added.push([key, afterMs])) })) }];
  }, async (api, call) => {
    const autoscalers = api.client.resource(HORIZONTAL_POD_AUTOSCALERS);
    const made = await autoscalers.create({ apiVersion: "autoscaling/v2", kind: "HorizontalPodAutoscaler", metadata: { name: "web", namespace: "ns" }, spec: { scaleTargetRef: { kind: "Deployment", name: "web" }, maxReplicas: 3 } }, call);
    await autoscalers.update({ ...made, spec: { ...made.spec, maxReplicas: 4 } }, call);
    await autoscalers.delete(made, {}, call);
    await eventually(() => added, (all) => all.length === 2);
    expect(added).toEqual([["ns/web", 15_000], ["ns/web", 0]]);
  });
});

test("where it is switched on, what has nothing to do has no pods, and some again with work; what somebody else has scaled to zero stays so", () => {
  const clock = hurriedClock();
  let queued = 0;
  const none = (): Promise<never> => Promise.reject(new Error("none of those"));
  const source: MetricsSource = { resource: none, pods: none, object: none, external: async () => queued };
  return withControllers((deps) => [horizontalPodAutoscalingController({ ...deps, source, gates: new Set(["HPAScaleToZero"]) })], async (api, call) => {
    const deployments = api.client.resource(DEPLOYMENTS), autoscalers = api.client.resource(HORIZONTAL_POD_AUTOSCALERS);
    const spec = { replicas: 1, selector: { matchLabels: { app: "web" } }, template: { metadata: { labels: { app: "web" } }, spec: { containers: [] } } };
    await deployments.create({ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "web", namespace: "ns" }, spec, status: { replicas: 1, selector: "app=web" } } as never, call);
    await api.client.resource(PODS).create({
      apiVersion: "v1", kind: "Pod", metadata: { name: "a", namespace: "ns", labels: { app: "web" } }, spec: { containers: [{ name: "c" }] },
      status: { phase: "Running", startTime: "2026-01-01T00:00:00Z", conditions: [{ type: "Ready", status: "True", lastTransitionTime: "2026-01-01T00:00:00Z" }] },
    } as never, call);
    await autoscalers.create({
      apiVersion: "autoscaling/v2", kind: "HorizontalPodAutoscaler", metadata: { name: "web", namespace: "ns" },
      spec: {
        scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "web" }, minReplicas: 0, maxReplicas: 9, metrics: [{ type: "External", external: { metric: { name: "queue" }, target: { type: "Value", value: "10" } } }],
        behavior: { scaleDown: { stabilizationWindowSeconds: 0, policies: [{ type: "Percent", value: 100, periodSeconds: 15 }] } },
      },
    }, call);
    const status = () => api.all(HORIZONTAL_POD_AUTOSCALERS)[0]?.status;
    const condition = (type: string) => { const one = status()?.conditions?.find((each) => each.type === type); return one && [one.status, one.reason, one.message]; };
    const replicas = () => api.all(DEPLOYMENTS)[0]?.spec.replicas;
    const scale = (change: object) => deployments.patch(api.all(DEPLOYMENTS)[0]!, "application/merge-patch+json", change, call);
    await eventually(replicas, (count) => count === 0);
    expect(await eventually(() => condition("ScaledToZero"), (one) => one !== undefined)).toEqual(["True", "ScaledToZero", "the HPA controller scaled the workload to zero"]);
    await scale({ status: { replicas: 0 } });
    await Bun.sleep(30);
    expect(condition("ScalingActive")?.[1]).toBe("ValidMetricFound");

    queued = 25_000; // thousandths
    await eventually(replicas, (count) => count === 3);
    expect(await eventually(() => condition("ScaledToZero"), (one) => one?.[0] === "False")).toEqual(["False", "NotScaledToZero", "the HPA controller did not scale the workload to zero"]);

    await scale({ spec: { replicas: 0 } }); // by hand
    expect(await eventually(() => condition("ScalingActive"), (one) => one?.[0] === "False")).toEqual(["False", "ScalingDisabled", "scaling is disabled since the replica count of the target is zero"]);
    expect(replicas()).toBe(0);

    await autoscalers.updateStatus({ ...api.all(HORIZONTAL_POD_AUTOSCALERS)[0]!, status: { ...status()!, conditions: [{ type: "ScaledToZero", status: "True", reason: "ScaledToZero", message: "", lastTransitionTime: "2026-01-01T00:00:00Z" }] } }, call);
    queued = 0;
    await autoscalers.patch(api.all(HORIZONTAL_POD_AUTOSCALERS)[0]!, "application/merge-patch+json", { spec: { minReplicas: 2 } }, call);
    await eventually(replicas, (count) => count === 2);
  }, { clock });
});

test("where it is not, none at all is nobody's business, and what was said of it goes", () => withControllers((deps) => [horizontalPodAutoscalingController(deps)], async (api, call) => {
  await api.client.resource(DEPLOYMENTS).create({ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "web", namespace: "ns" }, spec: { replicas: 0, selector: { matchLabels: { app: "web" } }, template: { metadata: { labels: { app: "web" } }, spec: { containers: [] } } }, status: { replicas: 0, selector: "app=web" } } as never, call);
  await api.client.resource(HORIZONTAL_POD_AUTOSCALERS).create({
    apiVersion: "autoscaling/v2", kind: "HorizontalPodAutoscaler", metadata: { name: "web", namespace: "ns" }, spec: { scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "web" }, minReplicas: 1, maxReplicas: 9, metrics: [{ type: "External", external: { metric: { name: "queue" }, target: { type: "Value", value: "10" } } }] },
    status: { desiredReplicas: 0, currentMetrics: [], conditions: [{ type: "ScaledToZero", status: "True", reason: "ScaledToZero", message: "", lastTransitionTime: "2026-01-01T00:00:00Z" }] },
  } as never, call);
  const said = () => api.all(HORIZONTAL_POD_AUTOSCALERS)[0]?.status?.conditions?.map(({ type, reason }) => `${type} ${reason}`);
  await eventually(said, (seen) => seen?.join() === "AbleToScale SucceededGetScale,ScalingActive ScalingDisabled");
  expect(api.all(DEPLOYMENTS)[0]?.spec.replicas).toBe(0);
}, { clock: hurriedClock() }));
