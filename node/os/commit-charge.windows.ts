/**
 * Memory as Windows counts it: what is promised to processes together, and how much may be, which is the memory and the page files. Once that is used up, nobody gets any more,
 * however much of the memory itself is free.
 *
 * API:    https://learn.microsoft.com/en-us/windows/win32/api/psapi/ns-psapi-performance_information
 * Source: kubernetes v1.36 pkg/kubelet/eviction/memory_threshold_notifier_windows.go
 */
import { dlopen, ptr } from "bun:ffi";

export interface CommitCharge {
  readonly totalBytes: number;
  readonly limitBytes: number;
}

/** PERFORMANCE_INFORMATION of a 64-bit Windows. */
const BYTES = 104;

/** Undefined where Windows does not say. */
export function commitCharge(): CommitCharge | undefined {
  const bytes = new Uint8Array(BYTES);
  new DataView(bytes.buffer).setUint32(0, BYTES, true);
  const { symbols } = dlopen("psapi.dll", { GetPerformanceInfo: { args: ["ptr", "u32"], returns: "i32" } });
  return symbols.GetPerformanceInfo(ptr(bytes), BYTES) === 0 ? undefined : readCommitCharge(bytes);
}

/** The size of it, then counts of pages: committed, their limit, their peak, physical ones, …, and the bytes of a page. Pure. */
export function readCommitCharge(bytes: Uint8Array): CommitCharge {
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const at = (index: number): number => Number(view.getBigUint64(8 + 8 * index, true));
  const pageBytes = at(9);
  return { totalBytes: at(0) * pageBytes, limitBytes: at(1) * pageBytes };
}
