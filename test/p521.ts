/** A server that many a library does not talk to: a certificate on the curve P-521, and no newer TLS than 1.2. */

/** Of 127.0.0.1, for a hundred years. */
export const P521_CERT = `-----BEGIN CERTIFICATE-----
MIICDTCCAW+gAwIBAgIUeNSrz0hVvacWuUtCeqldnHh8zicwCgYIKoZIzj0EAwIw
DzENMAsGA1UEAwwEcDUyMTAgFw0yNjExMjkyMDUzMTlaGA8yMTI2MTEwNTIwNTMx
OVowDzENMAsGA1UEAwwEcDUyMTCBmzAQBgcqhkjOPQIBBgUrgQQAIwOBhgAEAcGF
Afj9cGu5vRoA+gFrunxyptlpVNc0pMEcl3jGG5eT+bJgyksu+s+QniqcFCpVtPCh
FxBULv99kosfwkaCaOt0AV7e5GCv8plv+V/xX3GdIHmOprOJquafGx6wsCiVJjYv
qTdNDLVcj2kePaFmEbTsPMiKtmP1cOV88KcKmvwBrpvjo2QwYjAdBgNVHQ4EFgQU
W/NaHFQRO9fQglUWyN6R2G7e868wHwYDVR0jBBgwFoAUW/NaHFQRO9fQglUWyN6R
2G7e868wDwYDVR0TAQH/BAUwAwEB/zAPBgNVHREECDAGhwR/AAABMAoGCCqGSM49
BAMCA4GLADCBhwJCAfAEmYqjblcDJxcfidtl4DjNL9gpvEb1Xbv/Me/5f/miw1sf
I6l1bZKJTpNmgyWFH3Z1gV1XnS+XVVFKMolW2XVGAkEklM8YRgpW1L5ls65vVoB0
WC4+EzJbtqO/j1TA4Dy82KYZryhYSeXX+PSSzXutkvMq6fuvAlPtQBxqTWpGPJPv
ag==
-----END CERTIFICATE-----
`;
const KEY = `-----BEGIN PRIVATE KEY-----
MIHuAgEAMBAGByqGSM49AgEGBSuBBAAjBIHWMIHTAgEBBEIBlwMU6cjcjpnOLLJl
JhlhT4eInMUjyflsJVyrgG1Rgv9K8VK/X3HssuGjSuwcoTVMxjDc031EsHFAEbEu
PHZxCgWhgYkDgYYABAHBhQH4/XBrub0aAPoBa7p8cqbZaVTXNKTBHJd4xhuXk/my
YMpLLvrPkJ4qnBQqVbTwoRcQVC7/fZKLH8JGgmjrdAFe3uRgr/KZb/lf8V9xnSB5
jqaziarmnxsesLAolSY2L6k3TQy1XI9pHj2hZhG07DzIirZj9XDlfPCnCpr8Aa6b
4w==
-----END PRIVATE KEY-----
`;

export const P521_SERVER = { key: KEY, cert: P521_CERT, ecdhCurve: "P-521", maxVersion: "TLSv1.2" } as const;
