/**
 * Bits of packets' marks that more than one of our tables of nftables knows.
 *
 * Source: kubernetes v1.36 pkg/proxy/apis/config/v1alpha1/defaults.go (masqueradeBit)
 */

/** The proxy has this packet masqueraded, in its own table, where the mark is taken off again. */
export const MASQUERADE_MARK = "0x4000";
