/** A pod's volume that is a LUN: its secret is read, then it is shown or mapped. */
import type { Pod, SecretReference } from "../../../../core/api/gen/core.v1.ts";
import type { IscsiSource } from "../../../../core/api/meta/iscsi-names.ts";
import type { Client } from "../../../../core/client/client.ts";
import { SECRETS } from "../../../../core/client/resources.ts";
import type { Mounts } from "../../../os/mount.ts";
import { podDirectory, volumeDirectory } from "../pod-directories.ts";
import type { ReadyVolume } from "../ready-volume.ts";
import { giveToGroup } from "../volume-directory.ts";
import { type IscsiDisk, iscsiDisk } from "./iscsi-disk.ts";
import type { IscsiVolumes } from "./iscsi-volumes.ts";

interface Deps {
  readonly dataDir: string;
  readonly client: Client;
  readonly mounts: Pick<Mounts, "isMountPoint" | "unmount">;
  readonly iscsi: IscsiVolumes;
}

/** Throws MountFailure, or an Error for the user. */
export async function setUpIscsi({ dataDir, client, mounts, iscsi }: Deps, pod: Pod, source: IscsiSource, use: Pick<IscsiDisk, "name" | "options" | "readOnly" | "block">, signal: AbortSignal): Promise<ReadyVolume> {
  const disk = async (): Promise<IscsiDisk> => iscsiDisk(source, { ...use, secret: await chapSecret(client, pod, source, signal) });
  const { readOnly, block, name } = use;
  if (block) return { hostPath: await iscsi.map(await disk(), pod.metadata.uid, signal), readOnly, block, managed: false };
  const directory = volumeDirectory(podDirectory(dataDir, pod.metadata.uid), "kubernetes.io/iscsi", name);
  if (!mounts.isMountPoint(directory)) {
    await iscsi.show(await disk(), directory, signal);
    try {
      if (!readOnly) await giveToGroup(pod, directory, { readOnly });
    } catch (error) {
      mounts.unmount(directory); // what is mounted is its group's
      throw error;
    }
  }
  return { hostPath: directory, readOnly, managed: !readOnly, isMeasured: true };
}

async function chapSecret(client: Client, pod: Pod, { secretRef, chapAuthDiscovery, chapAuthSession }: IscsiSource, signal: AbortSignal): Promise<Record<string, string>> {
  if (!secretRef?.name || !(chapAuthDiscovery || chapAuthSession)) return {};
  const { name, namespace = pod.metadata.namespace ?? "" }: SecretReference = secretRef;
  const { data = {} } = await client.resource(SECRETS).get({ metadata: { name, namespace } }, { signal }).catch((cause: Error) => {
    throw new Error(`couldn't get secret ${namespace}/${name} error: ${cause.message}`, { cause });
  });
  return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value as unknown as string, "base64").toString()]));
}
