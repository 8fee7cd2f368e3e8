/**
 * Distinguished names: who a certificate speaks of. Kubernetes reads the common name as the user, organizations as groups, and,
 * if present once, an attribute of its own as the user's uid.
 *
 * Standard: RFC 5280 section 4.1.2.4
 * Source:   kubernetes v1.36 staging/src/k8s.io/apiserver/pkg/authentication/request/x509/x509.go
 */
import { type Asn1, expectTag, oid, readChildren, readOid, readString, sequence, setOf, TAG, text } from "./asn1.ts";

const OID_COMMON_NAME = "2.5.4.3";
const OID_ORGANIZATION = "2.5.4.10";
const OID_KUBERNETES_UID = "1.3.6.1.4.1.57683.2";

export interface Subject {
  readonly commonName: string;
  /** In the order written. */
  readonly organizations: readonly string[];
  /** The uid attribute, as often as it stands there. */
  readonly uids?: readonly string[];
}

/** A Name: organizations first, then the common name, as Go writes them. */
export function encodeSubject({ commonName, organizations, uids = [] }: Subject): Uint8Array {
  const sets: Uint8Array[] = [];
  if (organizations.length > 0) sets.push(setOf(...organizations.map((name) => attribute(OID_ORGANIZATION, name))));
  if (commonName !== "") sets.push(setOf(attribute(OID_COMMON_NAME, commonName)));
  for (const uid of uids) sets.push(setOf(attribute(OID_KUBERNETES_UID, uid)));
  return sequence(...sets);
}

function attribute(type: string, value: string): Uint8Array {
  return sequence(oid(type), text(/^[A-Za-z0-9 '()+,\-./:=?]*$/.test(value) ? TAG.printableString : TAG.utf8String, value));
}

/** With several common names the last one counts, as in Go. Attributes of other types are skipped. */
export function decodeSubject(name: Asn1): Subject {
  expectTag(name, TAG.sequence, "name");
  let commonName = "";
  const organizations: string[] = [];
  const uids: string[] = [];
  for (const set of readChildren(name)) {
    for (const pair of readChildren(expectTag(set, TAG.set, "name"))) {
      const [type, value] = readChildren(expectTag(pair, TAG.sequence, "name"));
      const attributeType = readOid(type);
      if (!value) continue;
      if (attributeType === OID_COMMON_NAME) commonName = readString(value);
      else if (attributeType === OID_ORGANIZATION) organizations.push(readString(value));
      else if (attributeType === OID_KUBERNETES_UID) uids.push(readString(value));
    }
  }
  return { commonName, organizations, uids };
}
