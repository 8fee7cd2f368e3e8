/** What a label must not give away, as upstream's metrics write it: "sha256:" and hex digits. Source: kubernetes v1.36 apiserver/pkg/server/options/authenticationconfig/metrics/metrics.go getHash */
import { createHash } from "node:crypto";

export function hashLabel(text: string): string { return text === "" ? "" : `sha256:${createHash("sha256").update(text).digest("hex")}`; }
