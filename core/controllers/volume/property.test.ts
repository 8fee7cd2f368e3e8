/** Whatever volumes there are: a claim gets one that will do, and none that would do as well is smaller. */
import { expect, test } from "vitest";
import { seededRandom } from "../../../test/simulator/seeded.ts";
import { stored } from "../../../test/static-informer.ts";
import type { PersistentVolume, PersistentVolumeClaim } from "../../api/gen/core.v1.ts";
import { bestMatch, whyUnfit } from "./match.ts";

const MODES = ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"];

test("the volume that is found fits; of those with as few access modes none that fits is smaller; the order does not matter", () => {
  for (let seed = 1; seed <= 300; seed++) {
    const random = seededRandom(seed);
    const some = <T>(from: readonly T[]): T[] => from.filter(() => random.chance(0.5));
    const size = (): string => `${random.integer(1, 8)}Gi`;
    const volumes = Array.from({ length: random.integer(0, 12) }, (_, i) => stored<PersistentVolume>("v1", "PersistentVolume", `v${i}`, {
      metadata: { labels: { tier: random.pick(["a", "b"]) }, ...(random.chance(0.1) ? { deletionTimestamp: "2026-01-01T00:00:00Z" } : {}) },
      spec: { capacity: { storage: size() }, accessModes: [random.pick(MODES), ...some(MODES)], storageClassName: random.pick(["", "fast"]), ...(random.chance(0.2) ? { volumeMode: "Block" } : {}), ...(random.chance(0.2) ? { claimRef: { namespace: "default", name: random.pick(["c", "other"]) } } : {}) },
      status: { phase: random.pick(["Available", "Available", "Available", "Bound", "Released"]) },
    }));
    const claim = stored<PersistentVolumeClaim>("v1", "PersistentVolumeClaim", "default/c", {
      spec: { accessModes: [random.pick(MODES)], storageClassName: random.pick(["", "fast"]), resources: { requests: { storage: size() } }, ...(random.chance(0.3) ? { selector: { matchLabels: { tier: "a" } } } : {}), ...(random.chance(0.2) ? { volumeMode: "Block" } : {}) },
    });
    const found = bestMatch(claim, volumes, { delayed: false });
    expect(bestMatch(claim, volumes.toReversed(), { delayed: false })?.metadata.name, `seed ${seed}`).toBe(found?.metadata.name);
    const mine = (volume: Readonly<PersistentVolume>): boolean => volume.spec.claimRef?.name === "c";
    const fits = volumes.filter((volume) => {
      if (volume.spec.claimRef && !mine(volume)) return false;
      if (mine(volume)) return whyUnfit({ ...volume, spec: { ...volume.spec, storageClassName: claim.spec.storageClassName! } }, claim) === undefined;
      return whyUnfit(volume, claim) === undefined && volume.status?.phase === "Available" && (!claim.spec.selector || volume.metadata.labels!["tier"] === "a");
    });
    if (!found) { expect(fits.map(({ metadata }) => metadata.name), `seed ${seed}`).toEqual([]); continue; }
    expect(fits, `seed ${seed}: ${found.metadata.name} does not fit`).toContain(found);
    const rank = (volume: Readonly<PersistentVolume>): number => (mine(volume) ? 0 : 1000) + volume.spec.accessModes!.length * 100 + Number.parseInt(String(volume.spec.capacity!["storage"]), 10);
    expect(rank(found), `seed ${seed}`).toBe(Math.min(...fits.map(rank)));
  }
});
