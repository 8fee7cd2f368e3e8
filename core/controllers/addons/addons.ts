/**
 * Applies manifests that lie in a directory of the server's, so that a machine comes up with what it is there for, without anybody at it.
 *
 *   file, at the start and when it changes ─▶ its objects, server-side apply ─▶ what it asked for before and asks for no longer is deleted
 *
 * What a file asked for last stands in the ConfigMap kube-system/coracle-manifests, under the file's path. A file that is gone, or empty (as a power cut leaves files), says nothing: its
 * objects stay, and while one is empty or cannot be read no other file's are deleted, for it may be what asks for them now. To delete all of a
 * file's, leave a comment in it. Between its changes nobody is corrected who edits the objects.
 *
 * As with k3s' server/manifests, whose files work here.
 */
import { parseApiVersion } from "../../api/meta/gvk.ts";
import { ifFound } from "../../api/meta/if-found.ts";
import type { ConfigMap } from "../../api/gen/core.v1.ts";
import { objectKey } from "../../api/meta/object-meta.ts";
import { isNotFound, isObjectNotFound } from "../../api/meta/status-error.ts";
import type { ResourceRef } from "../../client/client.ts";
import { discover } from "../../client/discovery.ts";
import { CONFIG_MAPS } from "../../client/resources.ts";
import type { Clock } from "../../lifecycle/clock.ts";
import type { Call, Controller, Watch } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { FailureBackoff } from "../failure-backoff.ts";
import { ResourceMap } from "../garbagecollector/resource-map.ts";
import { messageOf } from "../pod-control.ts";
import type { ManifestFiles } from "./manifest-directory.ts";
import { type Asked, formatAsked, inventoryKey, type Manifest, manifestsIn, noLongerAsked, parseAsked, united } from "./plan.ts";

const INVENTORY = { metadata: { namespace: "kube-system", name: "coracle-manifests" } };
const FIELD_MANAGER = "coracle-manifests";
/** A file that is being written is left alone until it has been the same twice. */
const SETTLE_MS = 1_000;
const SCAN_MS = 5_000;
/** Of what cannot be applied (yet: its CustomResourceDefinition may stand in another file). */
const RETRY = { minMs: 1_000, maxMs: 60_000 };
/** An event's message has room for this. */
const MESSAGE_MAX = 1_000;

/** Without a resource: the server has no such kind. */
interface Placed { readonly manifest: Manifest; readonly resource: ResourceRef | undefined }

interface Kind { readonly apiVersion: string; readonly kind: string }

type Deps = Pick<ControllerDeps, "client" | "events" | "clock"> & { readonly files: ManifestFiles };

export function addonsController({ client, events, clock, files }: Deps): Controller {
  const configMaps = client.resource(CONFIG_MAPS);
  const recorder = events.from({ component: "coracle-manifests" });
  const resources = new ResourceMap();
  let silent: ReadonlySet<string> = new Set(); // groups that did not answer when it was asked last what is served
  const backoff = new FailureBackoff(clock, RETRY);
  /** What was said last of files that failed: it is said once, however often it is tried. */
  const said = new Map<string, string>();

  return {
    name: "addons",
    workers: 1, // what one file asks for may be what another gives up
    watches: [settledFiles(files, clock)],
    async reconcile(key, call) {
      const file: string = key; // its path
      const text = await files.read(file);
      if (text === undefined) return;
      const failures = await bring(file, text, call).catch((error: unknown) => (call.signal.aborted ? [] : [messageOf(error)]));
      if (failures.length === 0) return void said.delete(file);
      const message = failures.join("; ");
      if (said.get(file) !== message) {
        call.log.warn("manifests are not applied, tried again until they are", { file, failures });
        await tell("Warning", "ApplyManifestFailed", `${file}: ${message.slice(0, MESSAGE_MAX)}`, call);
        said.set(file, message);
      }
      backoff.failed(file);
      return { againInMs: backoff.leftMs(file) };
    },
  };

  /** Makes the cluster what the file says. Returns what failed. */
  async function bring(file: string, text: string, call: Call): Promise<readonly string[]> {
    if (isEmpty(text)) return ["the file is empty: its objects stay as they are"];
    const manifests = manifestsIn(text);
    const before = parseAsked((await inventory(call))?.data?.[inventoryKey(file)] ?? "");
    const failures: string[] = [];
    const placed = await placedBy(manifests, call);
    const asked = askedOf(placed);
    await remember(file, united(before, asked), call); // before anything is made, so that nothing is forgotten should this process end
    for (const { manifest, resource } of placed) await attempt({ kind: manifest.kind, name: manifest.metadata.name }, failures, () => apply(manifest, resource, call), call);
    if (failures.length > 0) return failures;
    const others = await askedByOthers(file, call), doomed = noLongerAsked(before, [...asked, ...others.asked]);
    if (doomed.length > 0 && others.unknown !== undefined) return [`nothing is deleted as long as ${others.unknown}`];
    for (const one of doomed) await attempt(one, failures, () => remove(one, call), call);
    if (failures.length > 0) return failures;
    await remember(file, asked, call);
    call.log.info("manifests applied", { file, objects: asked.length, deleted: doomed.length });
    await tell("Normal", "AppliedManifest", `${file}: ${asked.length} applied${doomed.length > 0 ? `, ${doomed.length} deleted` : ""}`, call);
    return [];
  }

  /** What fails is noted, and keeps nothing else from being done. */
  async function attempt({ kind, name }: Pick<Asked, "kind" | "name">, failures: string[], work: () => Promise<void>, { signal }: Call): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (signal.aborted) throw error;
      failures.push(`${kind} ${name}: ${messageOf(error)}`);
    }
  }

  async function placedBy(manifests: readonly Manifest[], call: Call): Promise<readonly Placed[]> {
    await learn(manifests, call);
    return manifests.map((manifest) => ({ manifest, resource: resourceOf(manifest) }));
  }

  /** Asks once what is served, if one of these kinds is not known. */
  async function learn(kinds: readonly Kind[], call: Call): Promise<void> {
    if (kinds.some((kind) => resources.resourceOf(kind) === undefined)) await ask(call);
  }

  async function ask({ signal }: Call): Promise<void> {
    const found = await discover(client, signal);
    silent = new Set([...found.failed.keys()].map((groupVersion) => parseApiVersion(groupVersion).group));
    resources.update(found);
  }

  function resourceOf(of: Kind): ResourceRef | undefined {
    const found = resources.resourceOf(of);
    return found && { ...found, version: parseApiVersion(of.apiVersion).version };
  }

  async function apply(manifest: Manifest, resource: ResourceRef | undefined, { signal }: Call): Promise<void> {
    if (!resource) throw new Error(`no matches for kind "${manifest.kind}" in version "${manifest.apiVersion}"`);
    const { namespace } = askedBy(manifest, resource);
    const metadata = { ...manifest.metadata, ...(namespace !== "" && { namespace }) };
    await client.resource(resource).apply({ ...manifest, metadata }, { fieldManager: FIELD_MANAGER, force: true, signal });
  }

  /** In whichever version it is served: the one it was asked for in may be no more. `isFresh`: what is served has just been asked. */
  async function remove(one: Asked, call: Call, isFresh = false): Promise<void> {
    await learn([one], call);
    const resource = resources.resourceOf(one), isSilent = silent.has(parseApiVersion(one.apiVersion).group);
    if (!resource && isSilent) throw new Error(`who serves ${one.apiVersion} does not answer`);
    if (!resource) return; // and with its kind all its objects
    const { namespace, name } = one;
    try {
      await client.resource(resource).delete({ metadata: { name, ...(namespace !== "" && { namespace }) } }, { propagationPolicy: "Background" }, call);
    } catch (error) {
      if (isObjectNotFound(error, name)) return;
      if (!isNotFound(error) || (isFresh && isSilent)) throw error;
      if (isFresh) return; // its resource is there: it is the object that is not, in whatever words
      await ask(call);
      await remove(one, call, true);
    }
  }

  /** What the other files ask for as they are now: an object may move from one to another. `unknown`: of one that does not say, as what is mistyped, or a power cut has left empty. */
  async function askedByOthers(file: string, call: Call): Promise<{ readonly asked: readonly Asked[]; readonly unknown: string | undefined }> {
    const names = [...(await files.stamps()).keys()].filter((name) => name !== file);
    const manifests: Manifest[] = [];
    let unknown: string | undefined;
    for (const name of names) {
      const text = await files.read(name);
      if (text === undefined) continue;
      const found = isEmpty(text) ? "is empty" : manifestsUnlessBroken(text);
      if (typeof found === "string") unknown ??= `${name} ${found}`;
      else manifests.push(...found);
    }
    return { asked: askedOf(await placedBy(manifests, call)), unknown };
  }

  function inventory({ signal }: Call): Promise<Readonly<ConfigMap> | undefined> {
    return ifFound(configMaps.get(INVENTORY, { signal }));
  }

  async function remember(file: string, asked: readonly Asked[], call: Call): Promise<void> {
    const text = formatAsked(asked), key = inventoryKey(file);
    const held = await inventory(call);
    if (!held) await configMaps.create({ apiVersion: "v1", kind: "ConfigMap", ...INVENTORY, data: { [key]: text } }, call);
    else if (held.data?.[key] !== text) await configMaps.patch(INVENTORY, "application/merge-patch+json", { data: { [key]: text } }, call);
  }

  async function tell(type: "Normal" | "Warning", reason: string, message: string, call: Call): Promise<void> {
    recorder.event((await inventory(call)) ?? { apiVersion: "v1", kind: "ConfigMap", ...INVENTORY.metadata }, type, reason, message);
  }
}

/** What the server has no kind for is asked for in vain. */
function askedOf(placed: readonly Placed[]): readonly Asked[] { return placed.flatMap(({ manifest, resource }) => (resource ? [askedBy(manifest, resource)] : [])); }

function askedBy({ apiVersion, kind, metadata }: Manifest, { namespaced }: ResourceRef): Asked {
  return { apiVersion, kind, namespace: namespaced ? metadata.namespace ?? "default" : "", name: metadata.name };
}

/** As a power cut leaves files. */
function isEmpty(text: string): boolean { return text.replaceAll("\0", "").trim() === ""; }

function manifestsUnlessBroken(text: string): readonly Manifest[] | "cannot be read" {
  try {
    return manifestsIn(text);
  } catch {
    return "cannot be read"; // why is told when its own turn comes
  }
}

/** The files that there are, and later each that has changed, once it has come to rest. */
function settledFiles(files: ManifestFiles, clock: Clock): Watch {
  return {
    whenSynced: () => Promise.resolve(),
    subscribe(add) {
      const told = new Map<string, string>();
      let before: ReadonlyMap<string, string> = new Map();
      let ended = false;
      let alarm = clock.after(0, () => void scan());
      async function scan(): Promise<void> {
        const now = await files.stamps().catch(() => before); // a directory that cannot be read says nothing
        const moving = [...now].filter(([name, stamp]) => before.get(name) !== stamp);
        for (const [name, stamp] of now) {
          if (before.get(name) !== stamp || told.get(name) === stamp) continue;
          told.set(name, stamp);
          add(objectKey("", name));
        }
        before = now;
        if (!ended) alarm = clock.after(moving.length > 0 ? SETTLE_MS : SCAN_MS, () => void scan());
      }
      return () => {
        ended = true;
        alarm.cancel();
      };
    },
  };
}
