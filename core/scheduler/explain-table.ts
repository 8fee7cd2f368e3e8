/**
 * An explanation for people: a sentence, then what each filter did, then node by node. Every line and column comes in the same order for the same cluster.
 *
 *   Pod default/db-0 has no node.
 *   0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s). …
 *
 *   FILTER             PASSED   REJECTED   WHY
 *   …
 *   NODE   VERDICT   SCORE   WHY
 */
import type { FilterSummary, NodeExplanation, SchedulingExplanation } from "./explain.ts";

export function explanationTable(explanation: SchedulingExplanation): string {
  const { pod, schedulerName, filters, nodes } = explanation;
  const lines = [
    `Pod:        ${pod.namespace}/${pod.name}`, `Scheduler:  ${schedulerName}`, `State:      ${explanation.state}`, `Why:        ${explanation.message}`,
    ...queueLine(explanation), ...groupLine(explanation), ...preemptionLine(explanation),
  ];
  if (filters.length > 0) lines.push("", ...table([["FILTER", "PASSED", "REJECTED", "WHY"], ...filters.map(filterRow)]));
  if (nodes.length > 0) lines.push("", ...table([["NODE", "VERDICT", "SCORE", "WHY"], ...nodes.flatMap((node) => nodeRows(node, explanation))]));
  return `${lines.join("\n")}\n`;
}

function queueLine({ queue }: SchedulingExplanation): string[] {
  if (!queue) return [];
  const tries = `${queue.attempts} ${queue.attempts === 1 ? "attempt" : "attempts"} so far`;
  switch (queue.queue) {
    case "unschedulable": return [`Queue:      unschedulable, ${tries}; waits for a change that may satisfy ${queue.waitsFor?.join(", ") || "anything"}`];
    case "backoff": return [`Queue:      backoff, ${tries}; tried again in ${Math.ceil((queue.againInMs ?? 0) / 1000)}s`];
    default: return [`Queue:      ${queue.queue}, ${tries}`];
  }
}

/** Its own place is not all that it waits for. */
function groupLine({ group }: SchedulingExplanation): string[] {
  if (!group) return [];
  const { name, minCount, pods, placed, scheduled } = group;
  const what = minCount === undefined ? name : `${name}, a gang of at least ${minCount}`;
  return [`Group:      ${what}: ${placed} of ${pods} ${pods === 1 ? "pod has" : "pods have"} a node${scheduled ? `; ${scheduled.reason}${scheduled.message ? `: ${scheduled.message}` : ""}` : ""}`];
}

function preemptionLine({ preemption, nominatedNodeName }: SchedulingExplanation): string[] {
  const nominated = nominatedNodeName ? [`Nominated:  ${nominatedNodeName}: others are leaving that node for it`] : [];
  if (!preemption) return nominated;
  return [...nominated, "node" in preemption ? `Preemption: would remove ${preemption.victims.join(", ")} from ${preemption.node}` : `Preemption: ${preemption.message.replace(/^preemption: /, "")}`];
}

function filterRow({ name, result, passed, rejected, reasons }: FilterSummary): string[] {
  if (result === "idle") return [name, "-", "-", ""];
  const why = Object.entries(reasons).map(([reason, count]) => (result === "refused" ? reason : `${count} ${reason}`)).sort();
  return [name, String(passed), String(rejected), why.join(", ")];
}

function nodeRows({ name, fits, rejectedBy, scores, total }: NodeExplanation, { candidates, nodeName }: SchedulingExplanation): string[][] {
  const verdict = [fits ? (candidates.includes(name) ? "best" : "fits") : "no", ...(name === nodeName ? ["(is here)"] : [])].join(" ");
  if (fits) return [[name, verdict, String(total), scores.map(({ name: score, score: value, weight }) => `${score} ${value}${weight === 1 ? "" : `*${weight}`}`).join(", ")]];
  return rejectedBy.map(({ filter, reasons }, i) => [i === 0 ? name : "", i === 0 ? verdict : "", i === 0 ? "-" : "", `${filter}: ${reasons.join(", ")}`]);
}

function table(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column]!)).join("   ").trimEnd());
}
