/** A pod cannot have what it asks for: it is failed with this reason, not retried. Source: kubernetes v1.36 pkg/kubelet/cm/admission/errors.go */
export type RefusalReason = "UnexpectedAdmissionError" | "SMTAlignmentError" | "TopologyAffinityError";

export class AllocationRefused extends Error {
  readonly reason: RefusalReason;
  constructor(cause: Error, reason: RefusalReason = "UnexpectedAdmissionError") {
    super(reason === "UnexpectedAdmissionError" ? `Allocate failed due to ${cause.message}, which is unexpected` : cause.message, { cause });
    this.name = "AllocationRefused";
    this.reason = reason;
  }
}
