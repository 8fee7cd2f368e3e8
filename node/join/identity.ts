/**
 * Who this node is, on disk: <data-dir>/agent/tls.
 *
 *   server-ca.crt             who signs servers' certificates
 *   client-kubelet.{key,crt}  how the node calls the API server
 *   serving-kubelet.{key,crt} how the kubelet's own server shows that it is this node
 *   machine.key               which machine this is: core/pki/machine-key.ts
 *   cluster.json              the cluster's settings, and where its servers are
 *
 * Without the first two and the last it is a node no more until somebody comes with a token: they, and the machine's key, are kept twice (core/pki/kept-twice.ts). So a certificate's renewal
 * that a power cut has torn leaves the node the one before.
 */
import { createPrivateKey, type KeyObject } from "node:crypto";
import { rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileText } from "../../core/lifecycle/file-text.ts";
import { keyedTurns } from "../../core/lifecycle/keyed-turns.ts";
import type { Log } from "../../core/observe/log.ts";
import { generateKey, keyPem } from "../../core/pki/authority.ts";
import { ensurePrivateDirectory, writeDurably } from "../../core/pki/durable-file.ts";
import { kubeletSubject } from "../../core/pki/identities.ts";
import { copiesIn, copyKept, type KeptFiles, mendKept } from "../../core/pki/kept-twice.ts";
import { type Leaf, parseLeaf, readLeaf } from "../../core/pki/leaf.ts";
import { isWholePem } from "../../core/pki/pem.ts";
import { encodeSubject } from "../../core/pki/subject.ts";
import { sameBytes } from "../../core/pki/x509.ts";

export interface Cluster {
  /** By flag name, and the client CA: core/client/cluster-objects.ts. */
  readonly settings: Readonly<Record<string, string>>;
  /** https://host:port of each API server that was seen. */
  readonly servers: readonly string[];
}

const CLIENT = "client-kubelet";
const SERVING = "serving-kubelet";

export class NodeIdentity {
  readonly #dir: string;
  readonly #turns = keyedTurns();
  readonly nodeName: string;
  readonly machineKey: KeyObject;
  #ca: string | undefined;
  #client: Leaf | undefined;
  #serving: Leaf | undefined;
  #cluster: Cluster | undefined;

  private constructor(dir: string, nodeName: string, machineKey: KeyObject) {
    this.#dir = dir;
    this.nodeName = nodeName;
    this.machineKey = machineKey;
  }

  /** Certificates of another node name are not ours any more. */
  static async open(dir: string, nodeName: string, log?: Pick<Log, "error">): Promise<NodeIdentity> {
    await ensurePrivateDirectory(dir);
    for (const files of keptIn(dir)) await mendKept(files, log);
    const identity = new NodeIdentity(dir, nodeName, await ensureMachineKey(join(dir, "machine.key"), log));
    const ours = (leaf: Leaf | undefined): Leaf | undefined => (leaf && sameBytes(leaf.certificate.subjectRaw, encodeSubject(kubeletSubject(nodeName))) ? leaf : undefined);
    identity.#ca = (await fileText(identity.#path("server-ca.crt"))) || undefined;
    identity.#client = ours(await readLeaf(dir, CLIENT));
    identity.#serving = ours(await readLeaf(dir, SERVING));
    identity.#cluster = readCluster(await fileText(identity.#path("cluster.json")));
    await identity.#copy();
    return identity;
  }

  get ca(): string | undefined { return this.#ca; }
  get client(): Leaf | undefined { return this.#client; }
  get serving(): Leaf | undefined { return this.#serving; }
  get cluster(): Cluster | undefined { return this.#cluster; }

  setCa(pem: string): Promise<void> {
    return this.#inTurn(async () => {
      if (pem !== this.#ca) await writeDurably(this.#path("server-ca.crt"), pem, { mode: 0o644 });
      this.#ca = pem;
      await this.#copy();
    });
  }

  setClient(leaf: Leaf): Promise<void> {
    return this.#inTurn(async () => {
      await this.#write(CLIENT, leaf);
      this.#client = leaf;
      await this.#copy();
    });
  }

  setServing(leaf: Leaf): Promise<void> {
    return this.#inTurn(async () => {
      await this.#write(SERVING, leaf);
      this.#serving = leaf;
    });
  }

  /** `change` makes of what is known when its turn has come what is to be: others may have learnt something meanwhile. */
  setCluster(change: (before: Cluster | undefined) => Cluster): Promise<void> {
    return this.#inTurn(async () => {
      const cluster = change(this.#cluster);
      const text = `${JSON.stringify(cluster, undefined, 2)}\n`;
      if (text !== (await fileText(this.#path("cluster.json")))) await writeDurably(this.#path("cluster.json"), text);
      this.#cluster = cluster;
      await this.#copy();
    });
  }

  /** Leaves the cluster; the machine stays who it is. */
  forget(): Promise<void> {
    return this.#inTurn(async () => {
      await rm(copiesIn(this.#dir), { recursive: true, force: true });
      for (const file of ["server-ca.crt", `${CLIENT}.crt`, `${CLIENT}.key`, `${SERVING}.crt`, `${SERVING}.key`, "cluster.json"]) await rm(this.#path(file), { force: true });
      this.#ca = this.#client = this.#serving = this.#cluster = undefined;
      await this.#copy();
    });
  }

  /** Who keeps the certificates, the authorities and the servers write the same files, and copies of all of them. */
  #inTurn(work: () => Promise<void>): Promise<void> { return this.#turns("", work); }

  /** Of what is good now. */
  async #copy(): Promise<void> {
    const good = [this.#ca, this.#client, this.#cluster, this.machineKey];
    for (const [i, files] of keptIn(this.#dir).entries()) if (good[i] !== undefined) await copyKept(files);
  }

  /** The key first: a pair torn by a power cut does not match, and is got anew. */
  async #write(name: string, { certificatePem, keyPem: key }: Leaf): Promise<void> {
    await writeDurably(this.#path(`${name}.key`), key);
    await writeDurably(this.#path(`${name}.crt`), certificatePem, { mode: 0o644 });
  }

  #path(file: string): string { return join(this.#dir, file); }
}

/** In the order CA, client certificate, settings, machine. */
function keptIn(dir: string): KeptFiles[] {
  const isPem = (_: string, text: string): boolean => isWholePem(text);
  return [
    { dir, names: ["server-ca.crt"], isWhole: isPem },
    { dir, names: [`${CLIENT}.crt`, `${CLIENT}.key`], isWhole: isPem, belong: ([certificatePem = "", key = ""]) => parseLeaf(certificatePem, key) !== undefined },
    { dir, names: ["cluster.json"], isWhole: (_, text) => readCluster(text) !== undefined },
    { dir, names: ["machine.key"], isWhole: (_, text) => isPrivateKey(text) },
  ];
}

function isPrivateKey(text: string): boolean {
  try {
    return createPrivateKey(text).type === "private";
  } catch {
    return false;
  }
}

/** One that the disk has damaged, with its copy, is put aside: a node that still has its certificate says in its Node that it is another machine now, and pods must not wait for that key. */
async function ensureMachineKey(path: string, log: Pick<Log, "error"> | undefined): Promise<KeyObject> {
  const found = await fileText(path);
  if (found !== undefined) {
    try {
      return createPrivateKey(found);
    } catch (error) {
      log?.error("the key by which this machine is known is damaged, it has another one from now on", { path, keptIn: `${path}.damaged`, error });
      await rename(path, `${path}.damaged`);
    }
  }
  const key = await generateKey();
  await writeDurably(path, keyPem(key));
  return key;
}

function readCluster(text: string | undefined): Cluster | undefined {
  if (text === undefined) return undefined;
  try {
    const found = JSON.parse(text) as Partial<Cluster> | null;
    return typeof found?.settings === "object" && found.settings !== null && Array.isArray(found.servers) ? (found as Cluster) : undefined;
  } catch {
    return undefined; // damaged: asked for again
  }
}
