/**
 * Secret (v1). Its type says which keys there must be; types nobody knows are fine.
 *
 * Source: kubernetes v1.36 pkg/registry/core/secret/strategy.go, pkg/apis/core/validation/validation.go ValidateSecret
 */
import { parseJson } from "../../api/codec/json.ts";
import { type FieldError, invalid, key, required, tooLong } from "../../api/meta/field-error.ts";
import type { Secret } from "../../api/gen/core.v1.ts";
import { configMapKey } from "../../api/meta/names.ts";
import { jsonKindOf } from "../../api/patch/json-value.ts";
import { defineResource } from "../generic/resource.ts";
import { immutable, problems } from "./checks/values.ts";
import { keyPairProblem } from "./key-pair.ts";
import { base64Bytes, DATA_BYTES_MAX, unchangedIfImmutable } from "./config-map.ts";

const SERVICE_ACCOUNT_ANNOTATION = "kubernetes.io/service-account.name";

export const secrets = defineResource<Secret>({
  group: "", version: "v1", kind: "Secret", plural: "secrets", updateOrder: "change first",
  generation: false,

  defaults(secret) {
    if (secret.stringData) {
      secret.data = { ...secret.data };
      for (const [name, value] of Object.entries(secret.stringData)) secret.data[name] = Buffer.from(value, "utf8").toString("base64");
      delete secret.stringData;
    }
    secret.type ||= "Opaque";
  },
  prepareForUpdate(next, old) { next.type ||= old.type; },

  *validate(secret) {
    const { data = {}, metadata, type } = secret;
    let bytes = 0;
    for (const [name, value] of Object.entries(data)) {
      yield* problems(key("data", name), name, configMapKey(name));
      bytes += base64Bytes(value);
    }
    if (bytes > DATA_BYTES_MAX) yield tooLong("data", DATA_BYTES_MAX);
    if (type === "kubernetes.io/service-account-token" && !metadata.annotations?.[SERVICE_ACCOUNT_ANNOTATION]) yield required(key("metadata.annotations", SERVICE_ACCOUNT_ANNOTATION));
    yield* validateKeys(type, data);
  },
  *validateUpdate(next, old, emptied = []) {
    yield* immutable("type", next.type ?? "", old.type ?? "");
    yield* unchangedIfImmutable(next, old, ["data"], emptied);
  },
  *warnings({ type, data = {} }) {
    if (type !== "kubernetes.io/tls") return;
    const problem = keyPairProblem(decoded(data["tls.crt"]), decoded(data["tls.key"]));
    if (problem !== undefined) yield problem;
  },
  fields: ({ type }) => ({ type: type ?? "" }),
});

function decoded(base64 = ""): string { return Buffer.from(base64, "base64").toString("latin1"); }

function* validateKeys(type: string | undefined, data: Readonly<Record<string, string>>): Iterable<FieldError> {
  const missing = (name: string): FieldError[] => (Object.hasOwn(data, name) ? [] : [required(key("data", name))]);
  switch (type) {
    case "kubernetes.io/dockercfg": yield* validateJson(".dockercfg", data); break;
    case "kubernetes.io/dockerconfigjson": yield* validateJson(".dockerconfigjson", data); break;
    case "kubernetes.io/basic-auth":
      if (!Object.hasOwn(data, "username") && !Object.hasOwn(data, "password")) yield* [...missing("username"), ...missing("password")];
      break;
    case "kubernetes.io/ssh-auth":
      if (!data["ssh-privatekey"]) yield required(key("data", "ssh-privatekey"));
      break;
    case "kubernetes.io/tls": yield* [...missing("tls.crt"), ...missing("tls.key")]; break;
  }
}

function* validateJson(name: string, data: Readonly<Record<string, string>>): Iterable<FieldError> {
  const path = key("data", name);
  const encoded = data[name];
  if (encoded === undefined) { yield required(path); return; }
  const problem = jsonProblem(Buffer.from(encoded, "base64").toString("utf8"));
  if (problem !== undefined) yield invalid(path, "<secret contents redacted>", problem);
}

/** In the words of Go's decoder. */
function jsonProblem(text: string): string | undefined {
  try {
    const { value } = parseJson(text);
    if (typeof value === "object" && !Array.isArray(value)) return undefined;
    return `json: cannot unmarshal ${jsonKindOf(value)} into Go value of type map[string]interface {}`;
  } catch (error) {
    return (error as Error).message;
  }
}
