/**
 * A small operator as its users write them, with the public JavaScript client: every Lamp gets a ConfigMap of its own and a status; a lamp that goes is first switched
 * off (a finalizer). Of several copies the one that holds the Lease works.
 *
 *   node operator.mjs NAME        with $KUBECONFIG; prints what it does
 */
import { createRequire } from "node:module";

const k8s = createRequire(`${process.env.CLIENT_DIRECTORY}/package.json`)("@kubernetes/client-node");
const NAME = process.argv[2];
const GROUP = { group: "shed.example", version: "v1", plural: "lamps" };
const FINALIZER = "shed.example/switch-off";
const LEASE = { name: "lamps", namespace: "default" };
const LEASE_SECONDS = 3;

const config = new k8s.KubeConfig();
config.loadFromDefault();
const objects = config.makeApiClient(k8s.CustomObjectsApi);
const core = config.makeApiClient(k8s.CoreV1Api);
const leases = config.makeApiClient(k8s.CoordinationV1Api);
const asMerge = k8s.setHeaderOptions("Content-Type", k8s.PatchStrategy.MergePatch);
const at = ({ metadata }) => ({ ...GROUP, namespace: metadata.namespace, name: metadata.name });
const absent = (error) => { if (error.code !== 404) throw error; };

async function reconcile(lamp) {
  const { name, namespace, uid, finalizers = [], deletionTimestamp, generation } = lamp.metadata;
  if (deletionTimestamp) {
    if (!finalizers.includes(FINALIZER)) return;
    await core.deleteNamespacedConfigMap({ name: `lamp-${name}`, namespace }).catch(absent);
    await objects.patchNamespacedCustomObject({ ...at(lamp), body: { metadata: { finalizers: finalizers.filter((other) => other !== FINALIZER) } } }, asMerge);
    console.log(`${NAME} off ${name}`);
    return;
  }
  if (!finalizers.includes(FINALIZER)) {
    await objects.patchNamespacedCustomObject({ ...at(lamp), body: { metadata: { finalizers: [...finalizers, FINALIZER], resourceVersion: lamp.metadata.resourceVersion } } }, asMerge);
    return; // comes back as a change
  }
  if (lamp.status?.observedGeneration === generation) return;
  const body = { metadata: { name: `lamp-${name}`, namespace, ownerReferences: [{ apiVersion: "shed.example/v1", kind: "Lamp", name, uid, controller: true }] }, data: { brightness: String(lamp.spec.brightness) } };
  await core.createNamespacedConfigMap({ namespace, body }).catch((error) => {
    if (error.code !== 409) throw error;
    return core.replaceNamespacedConfigMap({ name: `lamp-${name}`, namespace, body });
  });
  await objects.patchNamespacedCustomObjectStatus({ ...at(lamp), body: { status: { observedGeneration: generation, lit: true, by: NAME } } }, asMerge);
  console.log(`${NAME} lit ${name} ${lamp.spec.brightness}`);
}

/** One reconcile of a lamp at a time; a failed one is tried again. */
function worker(cache) {
  const dirty = new Set(), busy = new Set();
  const run = async (key) => {
    if (busy.has(key)) return;
    busy.add(key);
    while (dirty.delete(key)) {
      const [namespace, name] = key.split("/");
      const lamp = cache.get(name, namespace);
      if (lamp) await reconcile(lamp).catch((error) => { if (error.code !== 409) console.log(`${NAME} failed ${key} ${error.code ?? error.message}`); setTimeout(() => { dirty.add(key); void run(key); }, 300); });
    }
    busy.delete(key);
  };
  return ({ metadata }) => { const key = `${metadata.namespace}/${metadata.name}`; dirty.add(key); void run(key); };
}

async function lead() {
  for (;; await new Promise((resolve) => setTimeout(resolve, 500))) {
    try {
      const lease = await leases.readNamespacedLease(LEASE).catch(absent);
      const now = new k8s.V1MicroTime();
      if (!lease) {
        await leases.createNamespacedLease({ namespace: LEASE.namespace, body: { metadata: { name: LEASE.name }, spec: { holderIdentity: NAME, leaseDurationSeconds: LEASE_SECONDS, acquireTime: now, renewTime: now } } });
        return lease;
      }
      const expired = Date.now() - new Date(lease.spec.renewTime).getTime() > LEASE_SECONDS * 1000;
      if (lease.spec.holderIdentity !== NAME && !expired) continue;
      await leases.replaceNamespacedLease({ ...LEASE, body: { ...lease, spec: { ...lease.spec, holderIdentity: NAME, renewTime: now } } });
      return lease;
    } catch (error) {
      if (![409, "ECONNREFUSED"].includes(error.code)) console.log(`${NAME} lease ${error.code ?? error.message}`);
    }
  }
}

await lead();
console.log(`${NAME} leads`);
setInterval(() => { void lead(); }, 1000);
const informer = k8s.makeInformer(config, "/apis/shed.example/v1/namespaces/default/lamps", () => objects.listNamespacedCustomObject({ ...GROUP, namespace: "default" }));
const changed = worker(informer);
informer.on("add", changed);
informer.on("update", changed);
informer.on("error", (error) => { console.log(`${NAME} watch ended ${error?.code ?? error?.message ?? ""}`); setTimeout(() => { void informer.start().catch(() => undefined); }, 500); });
for (;;) {
  try { await informer.start(); break; } catch { await new Promise((resolve) => setTimeout(resolve, 500)); }
}
