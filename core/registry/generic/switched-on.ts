/** Which of the feature gates that are off by default were switched on, for definitions: some keep a field then, or let pass what they refuse otherwise. */
let switchedOn: ReadonlySet<string> = new Set();

/** Of the whole process, as the facts of the API are: said once, before anything is served. */
export function keepFieldsOf(gates: ReadonlySet<string>): void { switchedOn = gates; }

/** Whether fields of this gate are kept, or values of it allowed, also where there were none before. */
export function keepsFieldsOf(gate: string): boolean { return switchedOn.has(gate); }
