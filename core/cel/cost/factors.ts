/** What things cost. Source: cel-go common/cost.go */
export const STRING_FACTOR = 0.1;
export const REGEX_FACTOR = 0.25;
export const LIST_COST = 10;
export const MAP_COST = 30;
export const STRUCT_COST = 40;

/** Comparisons, by their overloads, that cost more the longer what they compare is. */
export const COMPARES_STRINGS: ReadonlySet<string> = new Set(["less", "less_equals", "greater", "greater_equals"].flatMap((name) => [`${name}_string`, `${name}_bytes`]).concat("equals", "not_equals"));
