/** What things cost. Source: cel-go common/cost.go */
export const STRING_FACTOR = 0.1;
export const REGEX_FACTOR = 0.25;
export const LIST_COST = 10;
export const MAP_COST = 30;
export const STRUCT_COST = 40;
