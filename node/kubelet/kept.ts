/** Of a pod that still exists. */
export interface Kept {
  /** Dead ones of each container, at least one; negative: all. */
  readonly perContainer: number;
  /** Those that ended less than this ago are kept besides. */
  readonly ageMinMs: number;
}
