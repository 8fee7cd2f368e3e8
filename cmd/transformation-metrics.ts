/** How often values are sealed and opened, how long that takes, and what goes wrong with it. Source: kubernetes v1.36 apiserver/pkg/storage/value/{metrics,transformer}.go */
import type { Clock } from "../core/lifecycle/clock.ts";
import { doubling, type Metrics } from "../core/observe/metrics.ts";
import type { Provider } from "../storage/encryption/provider.ts";

/** In seconds. */
const LATENCIES = doubling(5e-6, 25);

/** Returns the provider, counted. */
export function transformationMeter(metrics: Metrics, clock: Pick<Clock, "uptimeMs">): (provider: Provider) => Provider {
  const operations = metrics.counter(
    "apiserver_storage_transformation_operations_total",
    "[ALPHA] Total number of transformations. Successful transformation will have a status 'OK' and a varied status string when the transformation fails. The status, resource, and transformation_type fields can be used for alerting purposes. For example, you can monitor for encryption/decryption failures using the transformation_type (e.g., from_storage for decryption and to_storage for encryption). Additionally, these fields can be used to ensure that the correct transformers are applied to each resource.",
  );
  const latencies = metrics.histogram("apiserver_storage_transformation_duration_seconds", "[ALPHA] Latencies in seconds of value transformation operations.", LATENCIES);

  return (provider) => {
    if (provider.prefix === "") return provider; // nothing is transformed
    const transformer_prefix = transformerOf(provider.prefix);

    function counted(transformation_type: "from_storage" | "to_storage", key: Buffer, does: () => Buffer | Promise<Buffer>): Buffer | Promise<Buffer> {
      const startMs = clock.uptimeMs();
      const count = (status: string): void => {
        operations.inc({ resource: resourceOf(key.toString()), status, transformation_type, transformer_prefix });
        if (status === "OK") latencies.observe((clock.uptimeMs() - startMs) / 1000, { transformation_type, transformer_prefix });
      };
      const failed = (error: unknown): never => {
        count("unknown-non-grpc");
        throw error;
      };
      try {
        const made = does();
        if (made instanceof Promise) return made.then((bytes) => { count("OK"); return bytes; }, failed);
        count("OK");
        return made;
      } catch (error) {
        return failed(error);
      }
    }

    return {
      prefix: provider.prefix,
      seal: (plain, context) => counted("to_storage", context, () => provider.seal(plain, context)),
      open: (sealed, context) => counted("from_storage", context, () => provider.open(sealed, context)),
      ...(provider.isStale && { isStale: (sealed: Buffer) => provider.isStale!(sealed) }), ...(provider.trouble && { trouble: () => provider.trouble!() }), ...(provider.close && { close: () => provider.close!() }),
    };
  };
}

/** Of ciphers without the name of the key, of a key service with its own: k8s:enc:aescbc:v1:, k8s:enc:kms:v2:vault: */
function transformerOf(prefix: string): string { return prefix.startsWith("k8s:enc:kms:") ? prefix : prefix.replace(/[^:]*:$/, ""); }

/** /registry/apps/deployments/… is deployments.apps */
function resourceOf(key: string): string {
  const [, , group = "", plural = ""] = key.split("/", 4);
  return group === "core" ? plural : `${plural}.${group}`;
}
