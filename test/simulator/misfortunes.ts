/** What can go wrong around a cluster, each mended by itself after a while. */
import type { SeededRandom } from "./seeded.ts";
import type { SimulatedCluster } from "./cluster.ts";
import type { Weather } from "./faults.ts";

/** Fewer than one request in thirty is refused. */
export const SHOWERS: Weather = { refused: 0.03, answerLost: 0.01, late: 0.1, watchEnds: 0.02, watchExpired: 0.1 };
export const STORM: Weather = { refused: 0.25, answerLost: 0.05, late: 0.3, watchEnds: 0.1, watchExpired: 0.3 };

/** A second or two, longer than a node may be silent, an hour, a day, half a lifetime. */
const OFF_MS = [1_500, 40_000, 90_000, 3_600_000, 86_400_000, 850_000_000_000] as const;
/** Of so many nodes the clocks are set: it is the server's and the controllers' that matter most. */
const NODES_SET = 4;

export interface Misfortune {
  /** How often it happens, beside the others. */
  readonly weight: number;
  happen(): void;
}

export function misfortunes(cluster: SimulatedCluster, random: SeededRandom, tell: (text: string) => void): readonly Misfortune[] {
  const { clock } = cluster;
  const nodesUp = (): readonly string[] => cluster.nodeNames.filter((node) => cluster.isNodeUp(node));
  const planesUp = (): readonly string[] => cluster.planeNames.filter((plane) => cluster.isPlaneUp(plane));

  function nodeLosesPower(): void {
    if (nodesUp().length === 0) return;
    const name = random.pick(nodesUp());
    tell(`${name} loses its power`);
    cluster.killNode(name);
    clock.after(random.integer(5_000, 120_000), () => { if (!cluster.isNodeUp(name)) cluster.startNode(name); });
  }

  function nodeLosesWay(): void {
    if (nodesUp().length === 0) return;
    const name = random.pick(nodesUp());
    tell(`${name} loses its way to the server`);
    const line = cluster.lineOf(name)!;
    line.cut();
    clock.after(random.integer(5_000, 120_000), () => line.heal());
  }

  function planeDies(): void {
    const up = planesUp();
    if (up.length < 2) return;
    const name = random.pick(up);
    tell(`${name} dies`);
    cluster.killPlane(name);
    clock.after(random.integer(1_000, 60_000), () => { if (!cluster.isPlaneUp(name)) cluster.startPlane(name); });
  }

  /** Long enough that another leads meanwhile, or not: it must find out by itself. */
  function planeLosesWay(): void {
    const up = planesUp();
    if (up.length === 0) return;
    const name = random.pick(up);
    tell(`${name} loses its way to the server`);
    const line = cluster.lineOfPlane(name)!;
    line.cut();
    clock.after(random.integer(1_000, 60_000), () => line.heal());
  }

  function serverCrashes(): void {
    if (!cluster.isServerUp) return;
    tell("the API server crashes");
    cluster.crashServer();
    clock.after(random.integer(100, 15_000), startServer);
  }

  /** Its disk may fail just then: whoever watches over it tries again. */
  function startServer(): void {
    cluster.startServer().catch((error: unknown) => {
      if (String(error).includes("bad weather")) clock.after(1_000, startServer);
      else cluster.failures.push(error);
    });
  }

  function diskFails(): void {
    tell("the disk fails");
    cluster.failDisk(random.integer(500, 8_000));
  }

  function storm(): void {
    tell("storm");
    cluster.weather = STORM;
    clock.after(random.integer(2_000, 20_000), () => { if (cluster.weather === STORM) cluster.weather = SHOWERS; }); // or it is quiet by now
  }

  /** By seconds, by hours, or to a time that its hardware makes up. Somebody sets it right. */
  function clockIsSet(): void {
    const machine = random.pick(["server", ...planesUp(), ...nodesUp().slice(0, NODES_SET)]);
    const offMs = random.pick([-1, 1]) * random.pick(OFF_MS);
    tell(`the clock of ${machine} is off by ${offMs / 1000} s`);
    cluster.setClock(machine, offMs);
    clock.after(random.integer(5_000, 120_000), () => cluster.setClock(machine, 0));
  }

  return [
    { weight: 3, happen: clockIsSet },
    { weight: 2, happen: nodeLosesPower },
    { weight: 2, happen: nodeLosesWay },
    { weight: 2, happen: planeDies },
    { weight: 2, happen: planeLosesWay },
    { weight: 1, happen: serverCrashes },
    { weight: 1, happen: diskFails },
    { weight: 2, happen: storm },
  ];
}
