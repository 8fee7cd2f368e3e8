/**
 * Values of a query, as Go's conversion to the options of a request reads them.
 *
 * Source: kubernetes v1.36 apimachinery/pkg/runtime/conversion.go
 */

/** Only an absent value, "0" and "false" are false. */
export function isTrue(value: string | null): boolean { return value !== null && value !== "0" && value.toLowerCase() !== "false"; }
