/**
 * Names of images: [host[:port]/]path[:tag][@digest].
 *
 * Source: github.com/distribution/reference (grammar), kubernetes v1.36 pkg/util/parsers/parsers.go
 */
const PATH_COMPONENT = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*";
const HOST = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])(?:\\.(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]))*|\\[[a-fA-F0-9:]+\\]";
const REFERENCE = new RegExp(`^((?:(?:${HOST})(?::[0-9]+)?/)?${PATH_COMPONENT}(?:/${PATH_COMPONENT})*)(?::([\\w][\\w.-]{0,127}))?(?:@([A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}))?$`);
const NAME_BYTES_MAX = 255;

/** With the tag "latest" where the name has neither tag nor digest. Throws an Error when it is no name of an image. */
export function withDefaultTag(image: string): string {
  const parts = REFERENCE.exec(image);
  if (!parts) {
    const upper = /[A-Z]/.test(image) && REFERENCE.test(image.toLowerCase());
    throw new Error(`couldn't parse image name "${image}": ${upper ? "invalid reference format: repository name must be lowercase" : "invalid reference format"}`);
  }
  const [, name = "", tag, digest] = parts;
  if (name.length > NAME_BYTES_MAX) throw new Error(`couldn't parse image name "${image}": repository name must not be more than ${NAME_BYTES_MAX} characters`);
  return tag === undefined && digest === undefined ? `${image}:latest` : image;
}

/** host/path, with Docker's host and "library/" where they are understood. */
export function repositoryOf(image: string): string {
  const name = REFERENCE.exec(image)?.[1] ?? image;
  const slash = name.indexOf("/");
  const first = slash < 0 ? "" : name.slice(0, slash);
  if (slash >= 0 && (/[.:]/.test(first) || first === "localhost" || first !== first.toLowerCase())) return name;
  return slash < 0 ? `docker.io/library/${name}` : `docker.io/${name}`;
}
