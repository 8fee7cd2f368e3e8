/** What the cluster of a seed is asked to run. */
import type { SeededRandom } from "./seeded.ts";

export class Workloads {
  readonly #random: SeededRandom;
  #images = 1;
  #jobs = 0;

  constructor(random: SeededRandom) {
    this.#random = random;
  }

  /** Whoever asks for a template from now on gets another image. */
  release(): void {
    this.#images++;
  }

  template(app: string, restartPolicy?: string) {
    return {
      metadata: { labels: { app } },
      spec: { ...(restartPolicy ? { restartPolicy } : {}), terminationGracePeriodSeconds: 5, containers: [{ name: "app", image: `app:${this.#images}`, resources: { requests: { cpu: "100m" } } }] },
    };
  }

  deployment(name: string, replicas: number, namespace = "default") {
    return {
      apiVersion: "apps/v1", kind: "Deployment", metadata: { name, namespace },
      spec: { replicas, selector: { matchLabels: { app: name } }, strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: this.#bound(), maxUnavailable: this.#bound() } }, template: this.template(name) },
    };
  }

  stateful(name: string) {
    return { apiVersion: "apps/v1", kind: "StatefulSet", metadata: { name, namespace: "default" }, spec: { replicas: this.#random.integer(2, 5), serviceName: name, selector: { matchLabels: { app: name } }, template: this.template(name) } };
  }

  /** A pod on each node, whatever becomes of it. */
  daemon(name: string) {
    const { metadata, spec } = this.template(name);
    return { apiVersion: "apps/v1", kind: "DaemonSet", metadata: { name, namespace: "default" }, spec: { selector: { matchLabels: { app: name } }, template: { metadata, spec: { ...spec, tolerations: [{ operator: "Exists" }] } } } };
  }

  job() {
    const completions = this.#random.integer(3, 15);
    const name = `job-${++this.#jobs}`;
    return {
      apiVersion: "batch/v1", kind: "Job", metadata: { name, namespace: "default" },
      spec: { completions, parallelism: this.#random.integer(1, 6), backoffLimit: 100, ...(this.#random.chance(0.5) ? { completionMode: "Indexed" } : {}), template: this.template(name, "Never") },
    };
  }

  budget(name: string, minAvailable: number) {
    return { apiVersion: "policy/v1", kind: "PodDisruptionBudget", metadata: { name, namespace: "default" }, spec: { minAvailable, selector: { matchLabels: { app: name } } } };
  }

  #bound(): number | string {
    return this.#random.chance(0.5) ? this.#random.integer(1, 4) : `${this.#random.integer(10, 50)}%`;
  }
}
