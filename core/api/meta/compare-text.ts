/** The order of texts in which Kubernetes sorts names: by their units, whatever the machine's language. */
export function compareText(a: string, b: string): number { return a < b ? -1 : a > b ? 1 : 0; }
