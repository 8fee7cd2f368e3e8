/**
 * Makes a container image without a container engine: files in, an OCI image layout as a tar out, the same bytes every time.
 *
 * The layout (github.com/opencontainers/image-spec, image-layout.md) is what `coracle images import` and `ctr images import` read. The name an
 * importer gives the image is the annotation io.containerd.image.name. Layers are stored as plain tar: the archive around it is compressed.
 */
import { createHash } from "node:crypto";
import { tar, type TarEntry } from "./tar.ts";

export interface Image {
  /** The full reference, registry and tag included. */
  readonly reference: string;
  /** One per architecture, in Go's words: amd64, arm64. */
  readonly platforms: readonly { readonly architecture: string; readonly files: readonly TarEntry[] }[];
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  readonly user?: string;
  readonly environment?: readonly string[];
  readonly workingDirectory?: string;
}

interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly platform?: { readonly architecture: string; readonly os: string };
  readonly annotations?: Record<string, string>;
}

/** The image as a tar of an OCI layout. */
export function imageTar(image: Image): Buffer {
  const blobs = new Map<string, Uint8Array>();
  const add = (mediaType: string, bytes: Uint8Array): Descriptor => {
    const hex = createHash("sha256").update(bytes).digest("hex");
    blobs.set(hex, bytes);
    return { mediaType, digest: `sha256:${hex}`, size: bytes.length };
  };
  const json = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value));

  const manifests = image.platforms.map(({ architecture, files }) => {
    const layer = add("application/vnd.oci.image.layer.v1.tar", tar(files));
    const config = add("application/vnd.oci.image.config.v1+json", json({
      architecture, os: "linux", created: "1970-01-01T00:00:00Z",
      config: {
        Env: image.environment ?? ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
        ...(image.entrypoint && { Entrypoint: image.entrypoint }), ...(image.command && { Cmd: image.command }),
        ...(image.user !== undefined && { User: image.user }), ...(image.workingDirectory !== undefined && { WorkingDir: image.workingDirectory }),
      },
      rootfs: { type: "layers", diff_ids: [layer.digest] },
      history: [{ created: "1970-01-01T00:00:00Z", created_by: "coracle" }],
    }));
    const manifest = json({ schemaVersion: 2, mediaType: "application/vnd.oci.image.manifest.v1+json", config, layers: [layer] });
    return { ...add("application/vnd.oci.image.manifest.v1+json", manifest), platform: { architecture, os: "linux" } };
  });
  const named = { annotations: { "io.containerd.image.name": image.reference, "org.opencontainers.image.ref.name": image.reference.split(":").at(-1)! } };
  const [first] = manifests;
  const top = manifests.length === 1 && first
    ? { ...first, ...named }
    : { ...add("application/vnd.oci.image.index.v1+json", json({ schemaVersion: 2, mediaType: "application/vnd.oci.image.index.v1+json", manifests })), ...named };
  return tar([
    { path: "oci-layout", data: json({ imageLayoutVersion: "1.0.0" }) },
    { path: "index.json", data: json({ schemaVersion: 2, mediaType: "application/vnd.oci.image.index.v1+json", manifests: [top] }) },
    { path: "blobs", type: "directory" }, { path: "blobs/sha256", type: "directory" },
    ...[...blobs].map(([hex, data]) => ({ path: `blobs/sha256/${hex}`, data })),
  ]);
}
