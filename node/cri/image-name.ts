/**
 * Names of images: [host[:port]/]path[:tag][@digest].
 *
 * Source: github.com/distribution/reference (grammar), kubernetes v1.36 pkg/util/parsers/parsers.go
 */
const PATH_COMPONENT = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*";
const HOST = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])(?:\\.(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]))*|\\[[a-fA-F0-9:]+\\]";
const REFERENCE = new RegExp(`^((?:(?:${HOST})(?::[0-9]+)?/)?${PATH_COMPONENT}(?:/${PATH_COMPONENT})*)(?::([\\w][\\w.-]{0,127}))?(?:@([A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}))?$`);
const IDENTIFIER = /^[a-f0-9]{64}$/;
const NAME_BYTES_MAX = 255;
/** A name of that length, a tag and a digest of the longest kind; what is longer is not looked at any more closely. */
const LENGTH_MAX = 1024;

/** With the tag "latest" where the name has neither tag nor digest. Throws an Error when it is no name of an image. */
export function withDefaultTag(image: string): string {
  if (image.length > LENGTH_MAX) throw new Error(`couldn't parse image name "${image.slice(0, NAME_BYTES_MAX)}…": invalid reference format`);
  const wrong = (why: string): Error => new Error(`couldn't parse image name "${image}": ${why}`);
  if (IDENTIFIER.test(image)) throw wrong(`invalid repository name (${image}), cannot specify 64-byte hexadecimal strings`);
  const untagged = domainAndRemote(image).remote.split(":")[0] ?? "";
  if (untagged !== untagged.toLowerCase()) throw wrong(`invalid reference format: repository name (${untagged}) must be lowercase`);
  const parts = REFERENCE.exec(image);
  if (!parts) throw wrong(REFERENCE.test(image.toLowerCase()) ? "repository name must be lowercase" : "invalid reference format"); // its host is none but for that
  const [, name = "", tag, digest] = parts;
  if (domainAndRemote(name).remote.length > NAME_BYTES_MAX) throw wrong(`repository name must not be more than ${NAME_BYTES_MAX} characters`);
  const problem = digest === undefined ? undefined : digestProblem(digest);
  if (problem !== undefined) throw wrong(problem);
  return tag === undefined && digest === undefined ? `${image}:latest` : image;
}

/** In hexadecimal digits. */
const DIGEST_LENGTHS: Readonly<Record<string, number>> = { sha256: 64, sha384: 96, sha512: 128 };

/** Source: github.com/opencontainers/go-digest (Validate) */
function digestProblem(digest: string): string | undefined {
  const colon = digest.indexOf(":");
  const [algorithm, encoded] = [digest.slice(0, colon), digest.slice(colon + 1)];
  const length = Object.hasOwn(DIGEST_LENGTHS, algorithm) ? DIGEST_LENGTHS[algorithm] : undefined;
  if (length === undefined) return algorithm === algorithm.toLowerCase() ? "unsupported digest algorithm" : "invalid checksum digest format";
  if (encoded.length !== length) return "invalid checksum digest length";
  return encoded === encoded.toLowerCase() ? undefined : "invalid checksum digest format";
}

/** Why it is no name of an image, in the words of who parses it; undefined: it is one. */
export function nameProblem(image: string): string | undefined {
  const parts = image.length > LENGTH_MAX ? null : REFERENCE.exec(image);
  if (!parts) return image.length <= LENGTH_MAX && REFERENCE.test(image.toLowerCase()) ? "repository name must be lowercase" : "invalid reference format";
  return parts[1]!.length > NAME_BYTES_MAX ? `repository name must not be more than ${NAME_BYTES_MAX} characters` : undefined;
}

/** host/path, with Docker's host and "library/" where they are understood. */
export function repositoryOf(image: string): string {
  const { domain, remote } = domainAndRemote(REFERENCE.exec(image)?.[1] ?? image);
  return `${domain}/${remote}`;
}

/**
 * In full, as a runtime knows it: what pods call it is made that before it is looked for, of a tag and a digest the digest alone. Throws an Error when it is no name of an image.
 *
 * Source: github.com/distribution/reference (ParseDockerRef)
 */
export function fullName(image: string): string {
  const [, , tag = "latest", digest] = REFERENCE.exec(withDefaultTag(image)) ?? [];
  return `${repositoryOf(image)}${digest === undefined ? `:${tag}` : `@${digest}`}`;
}

/** "foo" is docker.io and library/foo; a first part that looks like a host is one. */
function domainAndRemote(name: string): { readonly domain: string; readonly remote: string } {
  const slash = name.indexOf("/");
  const first = slash < 0 ? "" : name.slice(0, slash);
  const isHost = /[.:]/.test(first) || first === "localhost" || first !== first.toLowerCase();
  const domain = isHost && first !== "index.docker.io" ? first : "docker.io";
  const remote = isHost ? name.slice(slash + 1) : name;
  return { domain, remote: domain === "docker.io" && !remote.includes("/") ? `library/${remote}` : remote };
}

/** The repository as it is written: a right to one tag of it is a right to the image. */
export function withoutTag(image: string): string {
  const name = image.split("@")[0]!;
  const colon = name.lastIndexOf(":");
  return colon > name.lastIndexOf("/") ? name.slice(0, colon) : name;
}
