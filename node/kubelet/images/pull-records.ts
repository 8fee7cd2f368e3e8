/**
 * Who has shown the right to an image: a pod gets an image that is on the node only if it could have pulled it. Recorded are the credentials each image was pulled
 * with, as hashes and as the Secrets they came from; what the node had before anything was recorded (preloaded) is everybody's.
 *
 *   image_manager/pulling/<hash of the name>     a pull has begun: whoever finds it after a crash knows that the image is not preloaded
 *   image_manager/pulled/<hash of the image>     it was pulled, by name with these credentials
 *
 * Source: kubernetes v1.36 pkg/kubelet/images/pullmanager
 */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { compareText } from "../../../core/api/meta/compare-text.ts";
import { keyedTurns } from "../../../core/lifecycle/keyed-turns.ts";
import { repositoryOf, withoutTag } from "../../cri/image-name.ts";
import { mustVerify, type PullPolicy } from "./pull-verification.ts";
import type { AuthConfig } from "../../cri/gen/runtime.v1.ts";
import { CorruptStateError, parseStateFile, writeStateFile } from "../../os/state-file.ts";

/** A ServiceAccount or a Secret. */
export interface AccountReference { readonly namespace: string; readonly name: string; readonly uid: string }

/** One that was tried, and the Secret that it came from or the ServiceAccount that a provider gave it for; neither: every pod of this node has it. */
export interface PullCredential { readonly auth: AuthConfig; readonly secret?: AccountReference | undefined; readonly serviceAccount?: AccountReference | undefined }

interface Mapping {
  readonly kubernetesSecrets?: readonly (AccountReference & { readonly credentialHash: string })[] | undefined;
  readonly kubernetesServiceAccounts?: readonly AccountReference[] | undefined;
  readonly nodePodsAccessible?: boolean | undefined;
}
interface Pulled { readonly kind: "ImagePulledRecord"; readonly apiVersion: string; readonly lastUpdatedTime: string; readonly imageRef: string; readonly credentialMapping: Readonly<Record<string, Mapping>> }

/** The records' own directory, below the kubelet's. */
export const PULL_RECORDS = "image_manager";

/** Below the records' own directory. */
export const PULLING = "pulling", PULLED = "pulled";

/** Why an image may be had, or not, without asking its registry. */
export type PullCheck = "credentialPolicyAllowed" | "credentialRecordFound" | "mustAuthenticate" | "error";

/** Of one image: what is learned beyond these by looking is not written down. Source: kubernetes v1.36 pkg/kubelet/images/pullmanager writeRecordWhileMatchingLimit */
const SECRETS_LEARNED_MAX = 100;

const API_VERSION = "kubelet.config.k8s.io/v1beta1";

export interface PullRecords {
  /** Before the pull. */
  begin(image: string): Promise<void>;
  /** After it: with what it succeeded; undefined: nothing was needed. */
  pulled(image: string, imageRef: string, credential: PullCredential | undefined): Promise<void>;
  failed(image: string): Promise<void>;
  /** It was pulled, and its id could not be asked for: `tidy` finds it. */
  unsettled(image: string): void;
  /** Whether a pod with these credentials may have the image without pulling it again. */
  mayUse(image: string, here: ImageHere, credentials: () => Promise<readonly PullCredential[]>): Promise<boolean>;
  /** The image was removed. */
  forget(imageRef: string): Promise<void>;
  /** What is noted of images that are no more here goes. One whose pull was cut off, and that is here, was pulled, nobody knows with what. */
  tidy(runtime: ImagesHere): Promise<void>;
}

export interface ImagesHere {
  /** Ids of all. */
  all(): Promise<readonly string[]>;
  /** Undefined: it is not here. */
  find(image: string): Promise<ImageHere | undefined>;
}

/** `pinned`: it came from this node's own archives, whatever pull of it has begun. */
export interface ImageHere { readonly id: string; readonly pinned?: boolean | undefined }

export interface PullRecordOptions {
  /** The records' own directory. */
  readonly root: string;
  readonly nowMs: () => number;
  readonly verification: { readonly policy: PullPolicy; readonly allowlist: readonly string[] };
  readonly onChecked?: ((result: PullCheck) => void) | undefined;
}

export function pullRecords({ root, nowMs, verification, onChecked }: PullRecordOptions): PullRecords {
  const pulling = (image: string): string => join(root, PULLING, fileOf(image));
  const pulledPath = (imageRef: string): string => join(root, PULLED, fileOf(imageRef));
  const underWay = new Map<string, number>(); // pulls that have begun, by image
  const inTurn = keyedTurns();
  const noted = new Set<string>(); // names of records that were written since the images were listed last

  /** One pull fewer; whether it was the last. */
  function leave(image: string): boolean {
    const left = (underWay.get(image) ?? 1) - 1;
    if (left > 0) underWay.set(image, left);
    else underWay.delete(image);
    return left <= 0;
  }

  /** What the last pull of an image leaves is no sign of one that was cut off. */
  async function ended(image: string): Promise<void> {
    if (leave(image)) await rm(pulling(image), { force: true });
  }

  /** One that is corrupted is that of an image which somebody has pulled, nobody knows with what. */
  function read(imageRef: string): Pick<Pulled, "credentialMapping"> | undefined {
    try {
      const record = parseStateFile<Pulled>(pulledPath(imageRef));
      return record && { credentialMapping: record.credentialMapping ?? {} };
    } catch (error) {
      if (error instanceof CorruptStateError) return { credentialMapping: {} };
      throw error;
    }
  }

  /** Of one that is as it was nothing is written. One after the other, or what of two names came last would be all that is known of the image. */
  const note = (image: string, imageRef: string, credential: PullCredential | undefined): Promise<void> => inTurn(imageRef, async () => {
    const record = read(imageRef);
    const before = record?.credentialMapping ?? {};
    const name = withoutTag(image);
    const old = before[name] ?? {};
    const mapping = old.nodePodsAccessible ? old : withCredential(old, credential);
    noted.add(fileOf(imageRef));
    if (isDeepStrictEqual(mapping, before[name])) return;
    await write(imageRef, { ...before, [name]: mapping });
  });

  /** A former life of the kubelet has begun to pull these, or their pods went before they were noted. */
  async function settle(find: ImagesHere["find"]): Promise<void> {
    for (const file of filesIn(join(root, PULLING))) {
      const image = intended(join(root, PULLING, file));
      if (image === undefined || underWay.has(image)) continue;
      const here = await find(image);
      if (here === undefined || underWay.has(image)) continue;
      noted.add(fileOf(here.id));
      if (!here.pinned && !existsSync(pulledPath(here.id))) await write(here.id, {});
      if (!underWay.has(image)) rmSync(pulling(image), { force: true });
    }
  }

  async function prune(all: ImagesHere["all"]): Promise<void> {
    noted.clear();
    const here = new Set((await all()).map(fileOf));
    for (const file of filesIn(join(root, PULLED))) if (!here.has(file) && !noted.has(file)) rmSync(join(root, PULLED, file), { force: true });
  }

  async function write(imageRef: string, credentialMapping: Pulled["credentialMapping"]): Promise<void> {
    await writeStateFile(pulledPath(imageRef), { kind: "ImagePulledRecord", apiVersion: API_VERSION, lastUpdatedTime: new Date(nowMs()).toISOString(), imageRef, credentialMapping } satisfies Pulled);
  }

  async function check(image: string, { id: imageRef, pinned = false }: ImageHere, credentials: () => Promise<readonly PullCredential[]>): Promise<PullCheck> {
    const record = read(imageRef);
    if (!mustVerify(verification, image, record !== undefined || (!pinned && existsSync(pulling(image))))) return "credentialPolicyAllowed"; // preloaded, unless a pull was cut off
    const mapping = record?.credentialMapping[withoutTag(image)];
    if (!mapping) return "mustAuthenticate";
    if (mapping.nodePodsAccessible) return "credentialRecordFound";
    const known = (await credentials()).find((credential) => isKnown(mapping, credential));
    if (!known) return "mustAuthenticate";
    if (isNewSecret(mapping, known)) await note(image, imageRef, known).catch(() => undefined); // so that it is known when its content changes, or its name; who may have it now may without
    return "credentialRecordFound";
  }

  return {
    async begin(image) {
      underWay.set(image, (underWay.get(image) ?? 0) + 1);
      await writeStateFile(pulling(image), { kind: "ImagePullIntent", apiVersion: API_VERSION, image }).catch(async (error: unknown) => {
        await ended(image);
        throw error;
      });
    },
    failed: ended,
    unsettled: (image) => void leave(image),
    forget: (imageRef) => rm(pulledPath(imageRef), { force: true }),
    async tidy({ all, find }) {
      await settle(find);
      await prune(all);
    },

    async pulled(image, imageRef, credential) {
      await note(image, imageRef, credential).catch((error: unknown) => {
        leave(image); // `tidy` finds it
        throw error;
      });
      await ended(image);
    },

    async mayUse(image, here, credentials) {
      let result: PullCheck = "error";
      try {
        result = await check(image, here, credentials);
        return result !== "mustAuthenticate";
      } finally {
        onChecked?.(result);
      }
    },
  };
}

/**
 * These names were imported: whatever pull of them has begun, or was cut off, they are the node's own now. Without this they would have to be pulled after all, which is what
 * somebody who imports them cannot. `root` as in PullRecordOptions.
 */
export function forgetPulls(root: string, names: readonly string[]): void {
  const imported = new Set(names);
  for (const file of filesIn(join(root, PULLING))) {
    const image = intended(join(root, PULLING, file));
    if (image !== undefined && imported.has(canonical(image))) rmSync(join(root, PULLING, file), { force: true });
  }
}

/** As containerd names it. */
function canonical(image: string): string {
  return `${repositoryOf(image)}${image.slice(withoutTag(image).length)}`;
}

function fileOf(name: string): string {
  return `sha256-${hash(name)}`;
}

function filesIn(directory: string): string[] {
  return existsSync(directory) ? readdirSync(directory).filter((name) => name.startsWith("sha256-") && !name.endsWith(".tmp")) : [];
}

/** Which image was to be pulled; undefined: nobody can tell. */
function intended(path: string): string | undefined {
  try {
    return parseStateFile<{ readonly image?: string }>(path)?.image;
  } catch (error) {
    if (error instanceof CorruptStateError) return undefined;
    throw error;
  }
}

function hash(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function withCredential(old: Mapping, credential: PullCredential | undefined): Mapping {
  const { kubernetesSecrets = [], kubernetesServiceAccounts = [] } = old;
  const { auth, secret, serviceAccount } = credential ?? {};
  if (auth && secret) return { ...old, kubernetesSecrets: [...kubernetesSecrets.filter((known) => !isSame(known, secret)), { ...secret, credentialHash: hash(JSON.stringify(auth)) }].toSorted(byName) };
  if (serviceAccount) return { ...old, kubernetesServiceAccounts: [...kubernetesServiceAccounts.filter((known) => !isSame(known, serviceAccount)), serviceAccount].toSorted(byName) };
  return { nodePodsAccessible: true }; // nothing was needed, or what every pod of this node has
}

function isKnown({ kubernetesSecrets = [], kubernetesServiceAccounts = [] }: Mapping, { auth, secret, serviceAccount }: PullCredential): boolean {
  if (serviceAccount) return kubernetesServiceAccounts.some((known) => isSame(known, serviceAccount));
  const learns = kubernetesSecrets.length < SECRETS_LEARNED_MAX;
  return kubernetesSecrets.some((known) => (learns && secret && isSame(known, secret)) || known.credentialHash === hash(JSON.stringify(auth)));
}

/** It is known by its name or by its content alone. */
function isNewSecret({ kubernetesSecrets = [] }: Mapping, { auth, secret }: PullCredential): boolean {
  if (!auth || !secret || kubernetesSecrets.length >= SECRETS_LEARNED_MAX) return false;
  return !kubernetesSecrets.some((known) => isSame(known, secret) && known.credentialHash === hash(JSON.stringify(auth)));
}

function byName(a: AccountReference, b: AccountReference): number {
  const order = ({ namespace, name, uid }: AccountReference): string => [namespace, name, uid].join("\0");
  return compareText(order(a), order(b));
}

function isSame(a: AccountReference, b: AccountReference): boolean {
  return a.uid === b.uid && a.namespace === b.namespace && a.name === b.name;
}
