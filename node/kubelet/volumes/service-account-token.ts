/**
 * Tokens of service accounts, bound to the pod that gets them, renewed after four fifths of their life or a day.
 *
 * Source: kubernetes v1.36 pkg/kubelet/token/token_manager.go
 */
import type { TokenRequest } from "../../../core/api/gen/authentication.v1.ts";
import type { Pod, ServiceAccountTokenProjection } from "../../../core/api/gen/core.v1.ts";
import type { Client } from "../../../core/client/client.ts";
import { SERVICE_ACCOUNTS } from "../../../core/client/resources.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import { Places } from "../../../core/lifecycle/places.ts";
import type { Random } from "../../../core/lifecycle/random.ts";
import type { Log } from "../../../core/observe/log.ts";

const LIFE_SECONDS_DEFAULT = 3600;
const AGE_MS_MAX = 24 * 3600 * 1000;
const LIFE_LEFT_FRACTION = 0.2;
const JITTER_MS = 10_000;
/** Asked for at the same time for one pod, which has room for ten thousand: each is signed where everybody else is answered, too. */
const AT_ONCE_MAX = 4;

/**
 * Renewed by the clock, which is right after a restart, or by its age, which is right where the clock is behind the server's; by that alone where the clock is so far ahead that it was due when it came.
 * And by the server's clock: where that is set, as after a start in 1970, no token holds any more that it gave before, whatever ours says.
 */
interface Held { readonly token: string; readonly expiresMs: number; readonly renewMs: number; readonly renewUptimeMs: number; readonly expiresUptimeMs: number; readonly isDueAtBirth: boolean }

export interface TokenSource {
  /** With its end. */
  held(pod: Pod, projection: ServiceAccountTokenProjection): Promise<{ readonly token: string; readonly expiresMs: number }>;
  token(pod: Pod, projection: ServiceAccountTokenProjection): Promise<string>;
  forget(podUid: string): void;
}

interface Deps {
  readonly client: Client;
  readonly clock: Clock;
  /** The server's clock; absent, or undefined: nobody has told. */
  readonly serverMs?: (() => number | undefined) | undefined;
  readonly random: Random;
  readonly log: Log;
  readonly signal: AbortSignal;
}

export function tokenSource({ client, clock, serverMs = () => undefined, random, log, signal }: Deps): TokenSource {
  const held = new Map<string, Map<string, Held>>(); // by pod uid, then by what was asked for

  const turns = new Map<string, Places>(); // by pod uid

  /** In its turn, after which others have theirs. */
  async function requestInTurn(pod: Pod, projection: ServiceAccountTokenProjection, known: () => Held | undefined): Promise<Held> {
    const { uid } = pod.metadata;
    const places = turns.get(uid) ?? new Places(AT_ONCE_MAX);
    turns.set(uid, places);
    await places.take(signal);
    try {
      return known() ?? await request(pod, projection);
    } finally {
      setImmediate(() => places.give());
    }
  }

  async function request({ metadata, spec }: Pod, { audience, expirationSeconds = LIFE_SECONDS_DEFAULT }: ServiceAccountTokenProjection): Promise<Held> {
    const body = {
      apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", metadata: {},
      spec: { audiences: audience ? [audience] : [], expirationSeconds, boundObjectRef: { apiVersion: "v1", kind: "Pod", name: metadata.name, uid: metadata.uid } },
    };
    const name = { metadata: { name: spec.serviceAccountName ?? "default", namespace: metadata.namespace } };
    const { spec: given, status } = await client.resource(SERVICE_ACCOUNTS).createSubresource<TokenRequest>(name, "token", body, { signal });
    if (!status?.token) throw new Error("the API server answered without a token");
    const expiresMs = Date.parse(status.expirationTimestamp ?? "");
    const lifeMs = (given.expirationSeconds ?? expirationSeconds) * 1000; // the server may give less than was asked for
    const jitterMs = random.next() * JITTER_MS;
    const issuedMs = expiresMs - lifeMs;
    const renewMs = Math.min(issuedMs + AGE_MS_MAX, expiresMs - lifeMs * LIFE_LEFT_FRACTION) - jitterMs;
    const uptimeMs = clock.uptimeMs();
    return { token: status.token, expiresMs, renewMs, renewUptimeMs: uptimeMs + renewMs - issuedMs, expiresUptimeMs: uptimeMs + lifeMs, isDueAtBirth: clock.nowMs() >= renewMs };
  }

  function isFresh({ renewMs, renewUptimeMs, isDueAtBirth }: Held): boolean { return (isDueAtBirth || clock.nowMs() < renewMs) && clock.uptimeMs() < renewUptimeMs && (serverMs() ?? 0) < renewMs; }
  function isGood({ expiresMs, expiresUptimeMs, isDueAtBirth }: Held): boolean { return isDueAtBirth ? clock.uptimeMs() < expiresUptimeMs : clock.nowMs() < expiresMs; }

  async function current(pod: Pod, projection: ServiceAccountTokenProjection): Promise<Held> {
    const { uid } = pod.metadata;
    const key = JSON.stringify([projection.audience ?? "", projection.expirationSeconds ?? LIFE_SECONDS_DEFAULT]);
    const old = held.get(uid)?.get(key);
    if (old && isFresh(old)) return old;
    try {
      const fresh = await requestInTurn(pod, projection, () => {
        const now = held.get(uid)?.get(key);
        return now && isFresh(now) ? now : undefined;
      });
      const ofPod = held.get(uid) ?? new Map<string, Held>();
      held.set(uid, ofPod.set(key, fresh));
      return fresh;
    } catch (cause) {
      if (old && isGood(old)) {
        log.warn("service account token not renewed, the old one is still good", { pod: pod.metadata.name, namespace: pod.metadata.namespace, error: cause });
        return old;
      }
      throw new Error(`failed to fetch token: ${(cause as Error).message}`, { cause });
    }
  }

  return {
    held: current,
    token: async (pod, projection) => (await current(pod, projection)).token,
    forget(podUid) {
      held.delete(podUid);
      turns.delete(podUid);
    },
  };
}
