/** Against the answers of upstream's own code: upstream-*.txt, written by kubernetes v1.36's packages for random machines, requests and hints. */
import { expect, test } from "vitest";
import { cpuHints, cpuPolicy, takeOptions } from "./cpu-policy.ts";
import { cpuMachine, type CpuMachine } from "./cpu-machine.ts";
import { formatCpuSet, parseCpuSet } from "./cpu-set.ts";
import { type Hint, type Hints, maskOf, mergeHints, type MergeOptions, nodesIn } from "./hints.ts";
import { cpuOptions } from "./policy-options.ts";
import { takeCpus } from "./take-cpus.ts";
import cpus from "./upstream-cpus.txt" with { type: "text" };
import hints from "./upstream-hints.txt" with { type: "text" };

const lines = (text: string): string[] => text.trim().split("\n").filter((line) => !line.startsWith("#"));

function machineOf(line: string): CpuMachine {
  return cpuMachine(line.split(" ").slice(7).map((place) => {
    const [cpu = 0, core = 0, socket = 0, numaNode = 0, uncoreCache = 0] = place.split(":").map(Number);
    return { cpu, core, socket, numaNode, uncoreCache };
  }));
}

const write = ({ nodes, preferred }: Hint): string => `${nodes === undefined ? "nil" : nodesIn(nodes).join(",")}${preferred ? "+" : ""}`;
const attempt = (work: () => string): string => {
  try {
    return work();
  } catch (error) {
    return `! ${(error as Error).message}`;
  }
};

test("processors are chosen, and hinted at, as upstream does", () => {
  let machine = cpuMachine([]);
  const wrong: string[] = [];
  for (const line of lines(cpus)) {
    if (line.startsWith("machine ")) machine = machineOf(line);
    const take = /^take (\d+) of (\S*) with (\S+): (.*)$/.exec(line);
    if (take) {
      const [, count, from, options, answer] = take;
      const got = attempt(() => formatCpuSet(takeCpus(machine, parseCpuSet(from!), Number(count), takeOptions(cpuOptions(options === "-" ? {} : Object.fromEntries(options!.split(",").map((name) => [name, "true"])), () => true)))));
      const isSame = answer!.startsWith("!") || parseCpuSet(answer!).isSubsetOf(parseCpuSet(from!)) ? got === answer : parseCpuSet(got).size === Number(count) && parseCpuSet(got).isSubsetOf(parseCpuSet(from!)); // upstream gives away what another has where cores are not alike
      if (!isSame) wrong.push(`${line}\n  got ${got}`);
    }
    const hint = /^hints (\d+) of (\S*) reusing (\S*) socket (\S+): (.*)$/.exec(line);
    if (hint) {
      const [, count, available, reusable, socket, answer] = hint;
      const policy = cpuPolicy(machine, cpuOptions({ "align-by-socket": socket! }, () => true), { reserved: new Set(), count: 1 });
      const got = cpuHints(policy, { available: parseCpuSet(available!), reusable: parseCpuSet(reusable!), count: Number(count) }).map(write).join(" ");
      if (got !== answer) wrong.push(`${line}\n  got ${got}`);
    }
  }
  expect(wrong).toEqual([]);
  expect(lines(cpus).length).toBeGreaterThan(300);
});

test("on a machine whose cores are not alike nobody is given a processor that another has", () => {
  const cores = [[0, 8], [1, 9], [2], [3], [4], [5], [6], [7]]; // two that are hyper-threaded, six that are not
  const machine = cpuMachine(cores.flatMap((cpus, core) => cpus.map((cpu) => ({ cpu, core, socket: 0, numaNode: 0, uncoreCache: 0 }))));
  expect(machine.cpusPerCore).toBe(1);
  expect(formatCpuSet(takeCpus(machine, parseCpuSet("1,8-9"), 2, {}))).toBe("1,8"); // not 0 with 8
  expect(formatCpuSet(takeCpus(machine, parseCpuSet("2-7,9"), 7, {}))).toBe("2-7,9");
});

const DISTANCES = [[10, 12, 21, 32], [12, 10, 32, 21], [21, 32, 10, 12], [32, 21, 12, 10]];

test("hints are merged as upstream does", () => {
  const wrong = lines(hints).filter((line) => {
    const [, policy, count, closest, given, answer] = /^(\S+) (\d) nodes closest (\S+): (.*) => (.*)$/.exec(line)!;
    const nodes = [0, 1, 2, 3].slice(0, Number(count));
    const providers = given!.split(" | ").map((words): Hints => (words === "none" ? new Map() : new Map([["r", words === "empty" ? [] : words.split(" ").map((word) => ({ nodes: maskOf(word.replace("+", "").split(",").map(Number)), preferred: word.endsWith("+") }))]])));
    const { hint, admitted } = mergeHints({ policy: policy as MergeOptions["policy"], nodes, distances: closest === "true" ? new Map(nodes.map((node) => [node, DISTANCES[node]!])) : undefined }, providers);
    return `${write(hint)} ${admitted}` !== answer;
  });
  expect(wrong).toEqual([]);
});
