export function admissionPlugins(_: unknown): [] { return []; }
