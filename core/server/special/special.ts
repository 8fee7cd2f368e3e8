/** What answers the requests that the generic verbs do not: actions on pods, tokens, reviews. Connections (logs, exec, proxies) are in node-proxy.ts. */
import type { SelfSubjectReview, TokenRequest, TokenReview } from "../../api/gen/authentication.v1.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { reviewSelf, reviewToken, type TokenReviewOptions } from "../../authn/reviews.ts";
import { defaultExpiration, type TokenIssuer } from "../../authn/token-issuer.ts";
import { timestamp } from "../../lifecycle/clock.ts";
import { inOrder } from "../../registry/generic/object-meta.ts";
import { checkAcceptable } from "../acceptable.ts";
import type { Answer } from "../answer.ts";
import type { ResourceRequestInfo } from "../request-info.ts";
import type { ResourceHandler, Scope } from "../scope.ts";
import { decodeObject } from "../verbs/body.ts";
import { placeInNamespace } from "../verbs/incoming.ts";
import { recordOwner } from "../verbs/managed-fields.ts";
import { writeQueryOf } from "../verbs/write-options.ts";
import { writeOptions } from "../verbs/write.ts";
import { bindPod } from "./binding.ts";
import { type Component, getComponentStatus, listComponentStatuses } from "./component-statuses.ts";
import { evictPod } from "./eviction.ts";

export interface SpecialDeps {
  readonly tokens: TokenIssuer;
  readonly tokenReviews: TokenReviewOptions;
  /** Answers SubjectAccessReviews and their kin. Throws StatusError. */
  review(scope: { readonly kind: string; readonly object: ApiObject; readonly namespace: string; readonly user: Scope["user"] }): Promise<ApiObject>;
  /** Logs, exec, attach, port-forward, proxies. */
  connections(info: ResourceRequestInfo): ResourceHandler | undefined;
  /** Parts of the control plane, for componentstatuses. */
  readonly components?: readonly Component[];
}

export function specialHandlers({ tokens, tokenReviews, review, connections, components = [] }: SpecialDeps): (info: ResourceRequestInfo) => ResourceHandler | undefined {
  const table: Readonly<Record<string, ResourceHandler>> = {
    "create /pods/binding": bindPod,
    "create /bindings": bindPod,
    "create /pods/eviction": evictPod,
    "get /componentstatuses": (scope) => getComponentStatus(scope, components),
    "list /componentstatuses": (scope) => listComponentStatuses(scope, components),
    "create /serviceaccounts/token": (scope) => createToken(scope, tokens),
    "create authentication.k8s.io/tokenreviews": (scope) => answerTo(scope, async (object) =>
      (await reviewToken(object as unknown as TokenReview, tokenReviews, scope.signal)) as unknown as ApiObject),
    "create authentication.k8s.io/selfsubjectreviews": (scope) => answerTo(scope, async (object) =>
      reviewSelf(object as unknown as SelfSubjectReview, scope.user, timestamp(scope.server.clock.nowMs())) as unknown as ApiObject),
  };
  return (info) => {
    const { verb, group, resource, subresource } = info;
    const found = table[`${verb} ${group}/${resource}${subresource ? `/${subresource}` : ""}`];
    if (found) return found;
    if (group === "authorization.k8s.io" && verb === "create")
      return (scope) => answerTo(scope, (object) => review({ kind: scope.served.row.kind, object, namespace: info.namespace, user: scope.user }));
    return connections(info);
  };
}

/** Objects that are answered rather than stored. */
async function answerTo(scope: Scope, answer: (object: ApiObject) => Promise<ApiObject>): Promise<Answer> {
  checkAcceptable(scope, false);
  const query = writeQueryOf(scope, "CreateOptions");
  const object = await decodeObject(scope);
  wipeSystemFields(object);
  placeInNamespace(scope, object);
  await recordOwner(scope, object, undefined, scope.server.clock.nowMs());
  object.metadata = inOrder(object).metadata;
  const { admit, validate } = writeOptions(scope, "CREATE", query);
  await admit(object, undefined);
  await validate?.(object, undefined);
  return { type: "object", status: 201, object: await answer(object) };
}

/** What the system says of objects nobody else does. Mutates `object`. Source: kubernetes v1.36 apiserver/pkg/registry/rest/meta.go WipeObjectMetaSystemFields */
function wipeSystemFields({ metadata }: ApiObject): void {
  for (const field of ["creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"]) delete (metadata as unknown as Record<string, unknown>)[field];
}

async function createToken(scope: Scope, tokens: TokenIssuer): Promise<Answer> {
  checkAcceptable(scope, false);
  const { info, signal, warnings, audit } = scope;
  const query = writeQueryOf(scope, "CreateOptions");
  const object = await decodeObject(scope);
  defaultExpiration(object as unknown as TokenRequest);
  audit?.requestObject(object);
  placeInNamespace(scope, object);
  await recordOwner(scope, object, undefined, scope.server.clock.nowMs());
  object.metadata = inOrder(object).metadata;
  const { admit, validate } = writeOptions(scope, "CREATE", query);
  await admit(object, undefined);
  const issued = await tokens.tokenRequest({ namespace: info.namespace, name: info.name }, object as unknown as TokenRequest, {
    signal,
    warn: (text) => void warnings.push(text),
    annotate: (key, value) => audit?.annotate(key, value),
    admit: async (request) => validate?.(inOrder(request as unknown as ApiObject), undefined),
  });
  return { type: "object", status: 201, object: issued as unknown as ApiObject };
}
