/**
 * What of the Gateway API is served here, by the names that its conformance suite has for it: a GatewayClass says so in its status, and the suite asks for no more.
 *
 * Source: https://github.com/kubernetes-sigs/gateway-api v1.6 pkg/features
 */
const NAMES = `
BackendTLSPolicy BackendTLSPolicySANValidation
GRPCRoute GRPCRouteNamedRouteRule
Gateway GatewayAddressEmpty GatewayHTTPListenerIsolation GatewayHTTPSListenerDetectMisdirectedRequests GatewayPort8080
HTTPRoute HTTPRoute303RedirectStatusCode HTTPRoute307RedirectStatusCode HTTPRoute308RedirectStatusCode HTTPRouteBackendProtocolH2C HTTPRouteBackendProtocolWebSocket
HTTPRouteBackendRequestHeaderModification HTTPRouteBackendRequestRedirect HTTPRouteBackendTimeout HTTPRouteBackendURLRewrite HTTPRouteCORS HTTPRouteHostRewrite HTTPRouteMethodMatching
HTTPRouteNamedRouteRule HTTPRouteParentRefPort HTTPRoutePathRedirect HTTPRoutePathRewrite HTTPRoutePortRedirect HTTPRouteQueryParamMatching HTTPRouteRequestMirror
HTTPRouteRequestMultipleMirrors HTTPRouteRequestPercentageMirror HTTPRouteRequestTimeout HTTPRouteResponseHeaderModification HTTPRouteSchemeRedirect
ReferenceGrant
TCPRoute
TLSRoute TLSRouteModeMixed TLSRouteModeTerminate
`;

/** Sorted, as the API wants them. */
export const SUPPORTED_FEATURES: readonly { readonly name: string }[] = NAMES.trim().split(/\s+/).toSorted().map((name) => ({ name }));

/** Whether CRDs of this version of the Gateway API know the field; undefined: they do not say which they are. */
export function knowsFeatures(bundleVersion: string | undefined): boolean {
  const [, major, minor] = /^v?(\d+)\.(\d+)\./.exec(bundleVersion ?? "") ?? [];
  return major !== undefined && (bundleVersion!.includes("-dev") || Number(major) > 1 || (Number(major) === 1 && Number(minor) >= 4));
}
