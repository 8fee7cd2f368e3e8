/** A program: the store contract over LevelDB on the machine it runs on. The last line counts: N passed, N failed. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../core/lifecycle/clock.ts";
import { openStore } from "../../storage/open.ts";
import type { Store } from "../../storage/store.ts";
import { reopenable, storeContract, type StoreKnobs, type StoreUnderTest } from "../contract/store.ts";
import { runTests } from "./contract-runner.ts";

async function openLevel({ backlogMax }: StoreKnobs): Promise<StoreUnderTest> {
  const path = mkdtempSync(join(tmpdir(), "store-"));
  const open = (): Promise<Store> => openStore({ path, clock: systemClock, ...(backlogMax === undefined ? {} : { historyRevisionsMax: backlogMax }) });
  return reopenable(await open(), open, () => rmSync(path, { recursive: true }));
}

storeContract("LevelDB", (knobs = {}) => openLevel(knobs));
const { passed, failed } = await runTests();
console.log(`${process.platform} ${process.arch}: ${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
