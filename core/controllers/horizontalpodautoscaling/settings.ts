/** What an administrator may set for all autoscalers: kube-controller-manager's --horizontal-pod-autoscaler-*. */
export interface AutoscalingSettings {
  /** -sync-period */
  readonly periodMs: number;
  /** -downscale-stabilization */
  readonly downscaleSeconds: number;
  /** -tolerance */
  readonly tolerance: number;
  /** -cpu-initialization-period */
  readonly cpuInitializationMs: number;
  /** -initial-readiness-delay */
  readonly initialReadinessMs: number;
}

/** Source: kubernetes v1.36 pkg/controller/podautoscaler/config/v1alpha1/defaults.go */
export const AUTOSCALING: AutoscalingSettings = { periodMs: 15_000, downscaleSeconds: 300, tolerance: 0.1, cpuInitializationMs: 300_000, initialReadinessMs: 30_000 };
