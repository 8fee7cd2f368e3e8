/** Windows' file rights, by way of icacls.exe: the modes that Node takes say nothing there. */
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";

/** By number, for their names are translated: the system, and administrators. */
const SYSTEM = "*S-1-5-18", ADMINISTRATORS = "*S-1-5-32-544";
const ALL_BELOW = "(OI)(CI)F";

/** Makes the directory if there is none. Nobody else may look into it or into what is below, where nothing else is said. */
export function restrictToAdministrators(path: string): void {
  mkdirSync(path, { recursive: true });
  execFileSync("icacls.exe", [path, "/inheritance:r", "/grant:r", `${SYSTEM}:${ALL_BELOW}`, `${ADMINISTRATORS}:${ALL_BELOW}`], { windowsHide: true, stdio: "ignore" });
}
